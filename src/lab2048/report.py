"""Results as a page: one HTML file with its pictures inside, that needs no network."""

from __future__ import annotations

import html
import io
import shlex
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, PercentFormatter

import lab2048
from lab2048.home import replacing, write_atomically
from lab2048.measure import WHY_LOSSES_EXCEED, order, reach_rate
from lab2048.palette import line_style
from lab2048.solve.plots import STYLE

Result = dict[str, Any]

WIDTH = 8.0

PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light; }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem;
       color: #222; background: #fff; }}
h1 {{ font-size: 1.6rem; }} h2 {{ font-size: 1.25rem; margin-top: 2.5rem; }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; }}
.wide {{ overflow-x: auto; }}
th, td {{ padding: .25rem .7rem; text-align: right; border-bottom: 1px solid #ddd;
          white-space: nowrap; }}
th:first-child, td:first-child {{ text-align: left; }}
th {{ border-bottom: 2px solid #888; }}
figure {{ margin: 1.5rem 0; }} figure svg {{ max-width: 100%; height: auto; }}
figcaption, footer, .note {{ color: #555; font-size: .9rem; }}
pre {{ background: #f4f4f4; padding: .6rem .8rem; overflow-x: auto; }}
code {{ font-size: .92em; }}
</style>
<h1>{title}</h1>
{body}
<footer><p>Made by lab2048 {version} on {date} with</p><pre>{command}</pre></footer>
</html>
"""


def write_report(results: Sequence[Result], path: Path, arguments: Sequence[str]) -> None:
    """Write the page about results, of one board or several."""
    body = []
    for board, group in by_board(results):
        body.append(f"<h2>{html.escape(board)}</h2>")
        body.append(_table(group))
        body.append(_note(group))
        for _, caption, figure in figures(group):
            body.append(
                f"<figure>{svg(figure)}<figcaption>{html.escape(caption)}</figcaption></figure>"
            )
        body.append(_mistakes(group))
    facts = page_facts("Players of 2048, measured", arguments)
    write_atomically(path, PAGE.format(body="\n".join(body), **facts))


def page_facts(title: str, arguments: Sequence[str]) -> dict[str, str]:
    """What a page says about itself."""
    return {
        "title": html.escape(title),
        "version": lab2048.__version__,
        "date": datetime.now().strftime("%Y-%m-%d"),
        "command": html.escape(shlex.join(["lab2048", *arguments])),
    }


def write_plots(results: Sequence[Result], folder: Path) -> list[Path]:
    """Save every picture as a vector file; where they are."""
    paths = []
    for board, group in by_board(results):
        for title, _, figure in figures(group):
            paths.append(folder / f"{board}-{title}.svg")
            with mpl.rc_context(STYLE), replacing(paths[-1]) as path:
                figure.savefig(path, format="svg", bbox_inches="tight")
    return paths


def by_board(results: Sequence[Result]) -> Iterator[tuple[str, list[Result]]]:
    """The results of each board, best first."""
    for board in dict.fromkeys(each["board"] for each in results):
        group = [each for each in results if each["board"] == board]
        yield board, sorted(group, key=order)


# -- tables --------------------------------------------------------------------------------------


def _table(group: Sequence[Result]) -> str:
    """The figures of all players."""
    exact = any(each["exact"] for each in group)
    optimal = any(each["optimal"] for each in group)
    head = ["player", "games", "mean score", "95%", "median", "best", "largest tiles"]
    head += ["exact mean", "exact loss"] * exact
    head += ["loss a game", "95%", "agrees"] * optimal
    head += ["moves/s"]
    rows = [_row(each, exact, optimal) for each in group]
    cells = "\n".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    titles = "".join(f"<th>{name}</th>" for name in head)
    return f'<div class="wide"><table><tr>{titles}</tr>\n{cells}\n</table></div>'


def _row(each: Result, exact: bool, optimal: bool) -> list[str]:
    """The cells of a player."""
    score = each["score"]
    tiles = [f"{tile}: {100 * facts['rate']:.3g}%" for tile, facts in each["reach"].items()]
    row = [
        f"<code>{html.escape(each['player'])}</code>",
        f"{each['games']:,}",
        f"{score['mean']:,.1f}",
        _interval(score["ci95"]),
        f"{score['median']:,.0f}",
        f"{score['max']:,}",
        ", ".join(tiles[-2:]),
    ]
    if exact:
        found = each["exact"]
        row += [_number(found and found["value"]), _number(found and found["regret"])]
    if optimal:
        loss = each["optimal"]["regret_per_game"]
        row += [_number(loss["mean"]), _interval(loss["ci95"])]
        row += [f"{100 * each['optimal']['agreement']:.2f}%"]
    speed = each["moves_per_second"]
    return [*row, f"{speed:,.0f}" if speed else "-"]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.2f}"


def _interval(ends: Sequence[float] | None) -> str:
    return f"{ends[0]:,.1f} to {ends[1]:,.1f}" if ends else "-"


def _note(group: Sequence[Result]) -> str:
    """What the figures mean."""
    first = group[0]
    words = [f"Seed {first['seed']}, p4 {first['p4']:g}. Intervals of means are bootstrapped."]
    best = next((e["exact"]["optimal_value"] for e in group if e["exact"]), None)
    if best is not None:
        words.append(f"Perfect play scores {best:,.2f} on average from a start drawn by the rules.")
    if any(each["optimal"] for each in group):
        words.append(
            "Loss is the expected score given away by moves that are not optimal, by the table of "
            "the solved game; a player agrees where its move is optimal."
        )
        words.append(f"{WHY_LOSSES_EXCEED}.")
    if any(each["exact"] for each in group):
        words.append("What is exact is computed from the player's choices, without any game.")
    if any(each["timed"] for each in group):
        words.append("Players with a time limit play other games on other machines.")
    return f'<p class="note">{" ".join(words)}</p>'


def _mistakes(group: Sequence[Result]) -> str:
    """The largest mistakes of each player."""
    rows = []
    for each in group:
        for mistake in (each["optimal"] or {}).get("worst", [])[:3]:
            cells = (each["player"], mistake["board"], mistake["move"])
            shown = "".join(f"<td><code>{html.escape(cell)}</code></td>" for cell in cells)
            rows.append(f"<tr>{shown}<td>{mistake['regret']:,.1f}</td></tr>")
    if not rows:
        return ""
    head = "<tr><th>player</th><th>board</th><th>move</th><th>loss</th></tr>"
    return (
        f'<h3>Largest mistakes</h3><div class="wide"><table>{head}\n'
        + "\n".join(rows)
        + "\n</table></div>"
    )


# -- pictures ------------------------------------------------------------------------------------


def figures(group: Sequence[Result]) -> Iterator[tuple[str, str, Figure]]:
    """The pictures of a board's results: a name, a caption, the picture."""
    with mpl.rc_context(STYLE):
        yield "scores", "Scores of all games: quartiles, 5% and 95%, and the mean.", _scores(group)
        yield "reach", "How many games made each tile.", _reach(group)
        judged = [each for each in group if each["optimal"]]
        if judged:
            caption = "Expected loss a move where the best and the worst move differ by d(s)."
            yield "loss-by-gap", caption, _by_gap(judged, "regret_per_move")
            caption = "How often the move is optimal, by d(s); where all moves are alike it is."
            yield "agreement-by-gap", caption, _by_gap(judged, "agreement")
            caption = "Expected loss a move in the course of a game: age is the sum of the tiles."
            yield "loss-by-age", caption, _by_age(judged)


def _styles(group: Sequence[Result]) -> Iterator[tuple[Result, dict[str, Any]]]:
    """Each player with a colour and a mark of its own."""
    for number, each in enumerate(group):
        yield each, {**line_style(number), "label": each["player"]}


def _scores(group: Sequence[Result]) -> Figure:
    """Boxes of scores, the best player on top."""
    figure = Figure(figsize=(WIDTH, 0.9 + 0.42 * len(group)))
    axes = figure.subplots()
    scores = [np.maximum(each["scores"], 1) for each in group]
    parts = axes.boxplot(
        scores,
        orientation="horizontal",
        whis=(5, 95),
        showfliers=False,
        showmeans=True,
        widths=0.6,
        patch_artist=True,
        meanprops={"marker": "D", "markerfacecolor": "#d55e00", "markeredgecolor": "none"},
        medianprops={"color": "#222"},
    )
    for box in parts["boxes"]:
        box.set(facecolor="#cfe3f1", edgecolor="#0072b2")
    axes.set_yticks(range(1, len(group) + 1), [each["player"] for each in group])
    axes.invert_yaxis()
    if max(map(np.median, scores)) > 20 * max(1.0, min(map(np.median, scores))):
        axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(_thousands))
    best = next((e["exact"]["optimal_value"] for e in group if e["exact"]), None)
    if best is not None:
        axes.axvline(best, color="#7f7f7f", ls="--", lw=1)
        axes.annotate(
            " perfect play", (best, 0.3), color="#555", fontsize=8, va="bottom", ha="left"
        )
    axes.set_xlabel("score")
    axes.grid(visible=False, axis="y")
    return figure


def _reach(group: Sequence[Result]) -> Figure:
    """The share of games that reached each tile."""
    figure = Figure(figsize=(WIDTH, 4.2))
    axes = figure.subplots()
    tiles = sorted({int(tile) for each in group for tile in each["reach"]})
    for each, look in _styles(group):
        axes.plot(range(len(tiles)), [reach_rate(each, tile) for tile in tiles], **look)
    axes.set_xticks(range(len(tiles)), [str(tile) for tile in tiles])
    axes.set_xlabel("tile")
    axes.set_ylabel("games that made it")
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    _legend(axes)
    return figure


def _by_gap(group: Sequence[Result], what: str) -> Figure:
    """Loss or agreement in the bins of d(s)."""
    figure = Figure(figsize=(WIDTH, 4.2))
    axes = figure.subplots()
    bins = group[0]["optimal"]["by_gap"][1:]
    for each, look in _styles(group):
        found = [part[what] for part in each["optimal"]["by_gap"][1:]]
        values = [np.nan if value is None else value for value in found]
        axes.plot(range(len(bins)), values, **look)
    axes.set_xticks(range(len(bins)), [_bin_name(part) for part in bins])
    axes.set_xlabel("d(s): best less worst move (score)")
    if what == "agreement":
        axes.set_ylabel("moves that are optimal")
        axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        axes.set_ylim(-0.02, 1.02)
    else:
        _loss_axis(axes)
    _legend(axes)
    return figure


def _by_age(group: Sequence[Result]) -> Figure:
    """Loss a move in the course of a game."""
    figure = Figure(figsize=(WIDTH, 4.2))
    axes = figure.subplots()
    for each, look in _styles(group):
        bins = [part for part in each["optimal"]["by_age"] if part["moves"] >= 20]
        middles = [(part["above"] + part["to"]) / 2 for part in bins]
        axes.plot(middles, [part["regret_per_move"] for part in bins], **look)
    axes.set_xlabel("age (sum of the tiles)")
    axes.set_xscale("log", base=2)  # short games are bad games, and there are many
    axes.xaxis.set_major_formatter(FuncFormatter(_plain))
    _loss_axis(axes)
    _legend(axes)
    return figure


def _loss_axis(axes: Axes) -> None:
    """Losses upwards, from none over small to large."""
    axes.set_ylabel("loss a move (score)")
    axes.set_yscale("symlog", linthresh=0.1)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(FuncFormatter(_plain))


def _bin_name(part: dict[str, Any]) -> str:
    """The bounds of a bin."""
    if part["to"] is None:
        return f"above {part['above']:,.0f}"
    return f"{part['above']:,.0f} to {part['to']:,.0f}"


def _legend(axes: Axes) -> None:
    """The players, beside the picture."""
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=9)


def _thousands(number: float, _: int) -> str:
    return f"{number:,.0f}"


def _plain(number: float, _: int) -> str:
    return f"{number:g}"


def svg(figure: Figure) -> str:
    """A picture as an element of a page."""
    out = io.StringIO()
    with mpl.rc_context({**STYLE, "svg.fonttype": "none", "svg.hashsalt": "lab2048"}):
        figure.savefig(out, format="svg", bbox_inches="tight", metadata={"Date": None})
    text = out.getvalue()
    return text[text.index("<svg") :]
