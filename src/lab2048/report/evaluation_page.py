"""The page of evaluation results: one self-contained HTML file with its pictures."""

from __future__ import annotations

import html
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
from lab2048.game.colours import line_style
from lab2048.home import write_atomically
from lab2048.measure.figures import WHY_LOSSES_EXCEED, order, reach_rate
from lab2048.report.pictures import STYLE, save_picture, svg, thousands

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
       color: #222; background: #fff; overflow-wrap: break-word; }}
h1 {{ font-size: 1.6rem; }} h2 {{ font-size: 1.25rem; margin-top: 2.5rem; }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; }}
.wide {{ overflow-x: auto; }}
th, td {{ padding: .25rem .5rem; text-align: right; border-bottom: 1px solid #ddd; }}
th:first-child, td:first-child {{ text-align: left; }}
th {{ border-bottom: 2px solid #888; vertical-align: bottom; }}
td code {{ overflow-wrap: anywhere; }}
.players td {{ vertical-align: top; }} .players td:first-child {{ min-width: 9rem; }}
.players small {{ display: block; color: #555; white-space: nowrap; }}
@media (max-width: 64rem) {{
  th, td {{ padding: .25rem .35rem; }}
  .players, .players tbody {{ display: block; }} .players tr:first-child {{ display: none; }}
  .players tr {{ display: flex; flex-wrap: wrap; gap: .1rem 1rem; padding: .5rem 0;
                border-bottom: 1px solid #ddd; }}
  .players td {{ border: 0; padding: 0; text-align: left; }}
  .players td.player {{ flex: 1 0 min(100%, 17rem); min-width: 0; font-weight: 600; }}
  .players td.first {{ flex: 1 0 5.6rem; }} .players td.first::before {{ display: block; }}
  .players small {{ white-space: normal; }}
  .players td::before {{ color: #555; font-size: .85rem; content: attr(data-label) " "; }}
  .players td.player::before {{ content: none; }}
  .players tr::after {{ content: ""; flex-basis: 100%; order: 1; }}
  .players td.more {{ order: 2; font-size: .9rem; }}
}}
figure {{ margin: 1.5rem 0; }} figure svg {{ max-width: 100%; height: auto; }}
figcaption, footer, .note {{ color: #555; font-size: .9rem; }}
pre {{ background: #f4f4f4; padding: .6rem .8rem; overflow-x: auto; }}
code {{ font-size: .92em; }}
</style>
<h1>{title}</h1>
{body}
<footer>{made}</footer>
</html>
"""


def write_report(results: Sequence[Result], path: Path, arguments: Sequence[str]) -> None:
    """Write the page about results, of one board or several."""
    body = []
    for board, group in by_board(results):
        body.append(f"<h2>{html.escape(board)}</h2>")
        body.append(_table(group, _note(group)))
        for _, caption, figure in figures(group):
            body.append(
                f"<figure>{svg(figure)}<figcaption>{html.escape(caption)}</figcaption></figure>"
            )
        body.append(_mistakes(group))
    facts = page_facts("Players of 2048, measured", arguments)
    write_atomically(path, PAGE.format(body="\n".join(body), **facts))


def page_facts(title: str, arguments: Sequence[str]) -> dict[str, str]:
    """Title and footer of a page; the arguments are those of the command that made it."""
    made = f"Made by lab2048 {lab2048.__version__} on {datetime.now():%Y-%m-%d}"
    if arguments:
        command = html.escape(shlex.join(["lab2048", *arguments]))
        made = f"<p>{made} with</p><pre>{command}</pre>"
    return {"title": html.escape(title), "made": made if arguments else f"<p>{made}</p>"}


def write_plots(results: Sequence[Result], folder: Path) -> list[Path]:
    """Save every picture as a vector file. Return the paths."""
    paths = []
    for board, group in by_board(results):
        for title, _, figure in figures(group):
            paths.append(save_picture(figure, folder / f"{board}-{title}.svg"))
    return paths


def by_board(results: Sequence[Result]) -> Iterator[tuple[str, list[Result]]]:
    """The results of each board, best first."""
    for board in dict.fromkeys(each["board"] for each in results):
        group = [each for each in results if each["board"] == board]
        yield board, sorted(group, key=order)


# -- tables --------------------------------------------------------------------------------------


def _table(group: Sequence[Result], footnote: str) -> str:
    """The figures of all players as a table, and a footnote.

    The main columns come first; on a narrow page, the rest of a row has lines of its own.
    """
    optimal = any(each["optimal"] for each in group)
    head = ["player", "mean score", *["loss per game", "agrees"] * optimal]
    first = len(head)
    head += ["games", "median", "best", "largest tiles", "moves/s"]
    kinds = ["player", *["first"] * (first - 1), *["more"] * (len(head) - first)]
    rows = []
    for each in group:
        cells = zip(_row(each, optimal), kinds, head, strict=True)
        shown = [
            f'<td class="{kind}" data-label="{name}">{cell}</td>' for cell, kind, name in cells
        ]
        rows.append(f"<tr>{''.join(shown)}</tr>")
    titles = "".join(f"<th>{name}</th>" for name in head)
    return (
        f'<div class="wide"><table class="players"><tr>{titles}</tr>\n'
        + "\n".join(rows)
        + f'\n</table></div>\n<p class="note">{html.escape(footnote)}</p>'
    )


def _row(each: Result, optimal: bool) -> list[str]:
    """The cells of a player."""
    exact = each["exact"] or {"value": None, "regret": None}
    tiles = [f"{tile}:&nbsp;{100 * facts['rate']:.3g}%" for tile, facts in each["reach"].items()]
    row = [_spec(each["player"]), _figure(exact["value"], each["score"])]
    if optimal:
        row.append(_figure(exact["regret"], each["optimal"]["regret_per_game"]))
        row.append(f"{100 * each['optimal']['agreement']:.2f}%")
    speed = each["moves_per_second"]
    return [
        *row,
        f"{each['games']:,}",
        f"{each['score']['median']:,.0f}",
        f"{each['score']['max']:,}",
        ", ".join(tiles[-2:]),
        f"{speed:,.0f}" if speed else "-",
    ]


def _spec(player: str) -> str:
    """The name of a player, which may wrap after a colon or a comma."""
    shown = html.escape(player).replace(":", ":<wbr>").replace(",", ",<wbr>")
    return f"<code>{shown}</code>"


def _figure(exact: float | None, played: Result) -> str:
    """A mean: the exact one where it is known, and that of the games with its 95% interval."""
    ends = played["ci95"]
    within = f"<small>{ends[0]:,.1f} to {ends[1]:,.1f}</small>" if ends else ""
    if exact is None:
        return f"{played['mean']:,.1f}{within}"
    return f"{exact:,.2f}<small>exact</small><small>played: {played['mean']:,.1f}</small>{within}"


def _note(group: Sequence[Result]) -> str:
    """What the figures mean."""
    first = group[0]
    words = [f"Seed {first['seed']}, p4 {first['p4']:g}."]
    words.append("Below a mean is its 95% interval, bootstrapped.")
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
        words.append("Exact figures are computed from the player's choices, without any game.")
    if any(each["timed"] for each in group):
        words.append("Players with a time limit play other games on other machines.")
    return " ".join(words)


def _mistakes(group: Sequence[Result]) -> str:
    """The largest mistakes of each player."""
    rows = []
    for each in group:
        for mistake in (each["optimal"] or {}).get("worst", [])[:3]:
            cells = [_spec(each["player"])]
            cells += [f"<code>{html.escape(mistake[name])}</code>" for name in ("board", "move")]
            shown = "".join(f"<td>{cell}</td>" for cell in [*cells, f"{mistake['regret']:,.1f}"])
            rows.append(f"<tr>{shown}</tr>")
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
            caption = "Expected loss per move where the best and the worst move differ by d(s)."
            yield "loss-by-gap", caption, _by_gap(judged, "regret_per_move")
            caption = "How often the move is optimal, by d(s); where all moves are alike it is."
            yield "agreement-by-gap", caption, _by_gap(judged, "agreement")
            caption = "Expected loss per move in the course of a game: age is the sum of the tiles."
            yield "loss-by-age", caption, _by_age(judged)


def _styles(group: Sequence[Result]) -> Iterator[tuple[Result, dict[str, Any]]]:
    """Each player with its label, colour and line style."""
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
    axes.xaxis.set_major_formatter(FuncFormatter(thousands))
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
    """Loss per move in the course of a game."""
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
    """Scale the axis of losses: linear near 0, then logarithmic."""
    axes.set_ylabel("loss per move (score)")
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


def _plain(number: float, _: int) -> str:
    return f"{number:g}"
