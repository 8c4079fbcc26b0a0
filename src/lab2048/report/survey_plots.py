"""Plots of surveys."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, PercentFormatter

from lab2048.report.pictures import STYLE, save_picture, thousands
from lab2048.solver.objective import discount_text
from lab2048.solver.survey import Survey

BLUE, ORANGE, GREEN, GREY = "#0072b2", "#d55e00", "#009e73", "#7f7f7f"
"""Colours that colour-blind readers can tell apart."""


def plot_survey(survey: Survey, folder: Path) -> list[Path]:
    """Save the pictures of a survey. Return the paths."""
    title = _title(survey.problem)
    with mpl.rc_context(STYLE):
        return [
            _save(_by_move(survey, title), folder / "by-move.png"),
            _save(_by_age(survey, title), folder / "by-age.png"),
            _save(_tiles(survey, title), folder / "tiles.png"),
        ]


def plot_sweep(rows: Sequence[dict[str, Any]], title: str, path: Path) -> Path:
    """Save the picture of scores and tiles by p4. Return its path."""
    p4 = [row["p4"] for row in rows]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.5, 7))
        above, below = figure.subplots(2, 1, sharex=True)
        mean = np.array([row["mean"] for row in rows])
        spread = np.array([row["deviation"] for row in rows])
        above.fill_between(p4, mean - spread, mean + spread, color=BLUE, alpha=0.15, lw=0)
        above.plot(p4, mean, "o-", color=BLUE, ms=4)
        above.set_ylabel("score: mean ± one deviation")
        above.yaxis.set_major_formatter(FuncFormatter(thousands))
        above.set_title(f"{title}: optimal play and the chance of a 4")
        tiles = sorted({tile for row in rows for tile in row["reach"]})
        shown = [t for t in tiles if min(row["reach"].get(t, 0.0) for row in rows) < 0.995]
        colours = mpl.colormaps["viridis"](np.linspace(0, 0.85, max(1, len(shown))))
        for tile, colour in zip(shown, colours, strict=False):
            chances = [row["reach"].get(tile, 0.0) for row in rows]
            below.plot(p4, chances, "o-", color=colour, ms=4, label=f"{tile}")
        below.set_ylabel("games that reach the tile")
        below.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        below.set_ylim(-0.02, 1.02)
        below.set_xlabel("p4, the chance that a new tile is a 4")
        below.legend(title="tile", loc="center left", bbox_to_anchor=(1.0, 0.5))
        return _save(figure, path)


def _title(problem: dict[str, Any]) -> str:
    """The title of a picture."""
    words = [problem["board"], f"p4 = {problem['p4']:g}"]
    return ", ".join(words + discount_text(problem["gamma"], "gamma = {:g}"))


def _save(figure: Figure, path: Path) -> Path:
    figure.tight_layout()
    return save_picture(figure, path)


def _line(axes: Axes, x: Sequence[int], y: Sequence[float | None], **style: Any) -> None:
    """Draw a line with gaps where there is no number."""
    axes.plot(x, [np.nan if number is None else number for number in y], **style)


def _by_move(survey: Survey, title: str) -> Figure:
    """The gap by move number, and where games end."""
    moves = survey.by_move
    numbers = list(range(len(moves.visits)))
    figure = Figure(figsize=(7.5, 6.5))
    above, below = figure.subplots(2, 1, sharex=True)
    often = [visits > 1e-5 for visits in moves.visits]  # means over hardly any games say nothing
    gap = [g if seen else None for g, seen in zip(moves.gap, often, strict=True)]
    margin = [m if seen else None for m, seen in zip(moves.margin, often, strict=True)]
    coming = [number + 1 for number in numbers]  # the gap is that of the move to be made
    _line(above, coming, gap, color=BLUE, lw=1.2, label="gap d(s): best less worst move")
    _line(above, coming, margin, color=ORANGE, lw=1.2, label="margin: best less second best")
    above.set_ylabel("mean difference of q (score)")
    above.yaxis.set_major_formatter(FuncFormatter(thousands))
    above.legend(loc="best")
    how = "exact" if moves.games is None else f"from {moves.games:,} games"
    above.set_title(f"{title}: optimal play by move number ({how})")
    below.bar(numbers, moves.ends, width=1.0, color=GREY)
    below.set_ylabel("games that end after this move")
    below.yaxis.set_major_formatter(PercentFormatter(1))
    below.set_xlabel("move number")
    shown = [n for n, end in zip(numbers, moves.ends, strict=True) if end > 1e-5]
    below.set_xlim(0, max(shown, default=1) + 1)
    return figure


def _by_age(survey: Survey, title: str) -> Figure:
    """How many states there are, and how much the moves differ, by age."""
    ages = survey.by_age
    figure = Figure(figsize=(7.5, 6.5))
    above, below = figure.subplots(2, 1, sharex=True)
    above.plot(ages.age, ages.states, color=BLUE, lw=1, label="states")
    above.plot(ages.age, ages.afterstates, color=ORANGE, lw=1, label="afterstates")
    above.set_ylabel("canonical boards of this age")
    above.yaxis.set_major_locator(MaxNLocator(integer=True))
    above.yaxis.set_major_formatter(FuncFormatter(thousands))
    above.legend(loc="upper right")
    above.set_title(f"{title}: layers and gaps by age")
    often = [visits > 1e-5 for visits in ages.visits]
    weighted = [g if seen else None for g, seen in zip(ages.visited_gap, often, strict=True)]
    _line(below, ages.age, ages.gap, color=GREY, lw=1, label="gap, over all states")
    _line(below, ages.age, ages.margin, color=GREEN, lw=1, label="margin, over all states")
    _line(below, ages.age, weighted, color=BLUE, lw=1, label="gap, weighted by visits")
    below.set_ylabel("mean difference of q (score)")
    below.yaxis.set_major_formatter(FuncFormatter(thousands))
    below.set_xlabel("age (sum of the tiles)")
    below.legend(loc="upper right")
    return figure


def _tiles(survey: Survey, title: str) -> Figure:
    """The largest tile at the end, and the chance to reach each."""
    tiles = sorted(survey.reach)
    figure = Figure(figsize=(7.5, 3.8))
    axes = figure.subplots()
    places = np.arange(len(tiles))
    reach = [survey.reach[tile] for tile in tiles]
    final = [survey.final_tile.get(tile, 0.0) for tile in tiles]
    axes.bar(places - 0.2, reach, 0.4, color=BLUE, label="reached")
    axes.bar(places + 0.2, final, 0.4, color=ORANGE, label="largest at the end")
    bars = zip([*places - 0.2, *places + 0.2], reach + final, strict=True)
    for place, chance in bars:
        if chance >= 0.00005:  # smaller labels would be mostly zeros
            axes.annotate(
                f"{100 * chance:.3g}", (place, chance), ha="center", va="bottom", fontsize=8
            )
    axes.set_xticks(places, [str(tile) for tile in tiles])
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes.yaxis.set_major_locator(MaxNLocator(6))
    axes.set_ylim(0, 1.12)
    axes.set_xlabel("tile")
    axes.set_ylabel("games, in per cent")
    axes.set_title(f"{title}: tiles under optimal play")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=2)
    return figure
