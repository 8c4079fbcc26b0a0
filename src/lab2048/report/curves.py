"""Plots of training curves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from lab2048.learn.checkpoint import Record
from lab2048.learn.curve import curve, measured
from lab2048.learn.registry import find_learner

if TYPE_CHECKING:
    from lab2048.learn.result import TrainedRuns


SCORES = {
    "exact": "exact mean score",
    "judged": "mean score by judged games",
    "": "mean score of the last block",
}
"""The label of the score axis, by what was measured."""


def plot_runs(runs: TrainedRuns, path: Path) -> None:
    """Draw the curves of training runs into a file, with the plot of their learner."""
    PLOTS[find_learner(runs[0].kind).plot](runs, path)


def plot_scores(runs: TrainedRuns, path: Path) -> None:
    """Draw the curve of training runs of one kind: their mean, with its interval."""
    first = runs[0]
    label = getattr(first.settings, "method", first.kind)
    logs = [run.log for run in runs]
    plot_curves({label: logs}, path, first.perfect, first.settings.counted)


@contextmanager
def picture(path: Path, panels: int = 1) -> Iterator[list[Any]]:
    """Axes side by side to draw into; the file is written when the block ends."""
    import matplotlib as mpl
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter

    from lab2048.report.pictures import STYLE, save_picture, thousands

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8, 5) if panels == 1 else (5 * panels, 4), layout="tight")
        found = figure.subplots(1, panels, squeeze=False)[0].tolist()
        for axes in found:
            axes.xaxis.set_major_formatter(FuncFormatter(thousands))
        yield found
        save_picture(figure, path)


def draw_perfect(axes: Any, perfect: float | None) -> None:
    """Draw a line at the value of perfect play, if it is known; start scores at 0."""
    from matplotlib.ticker import FuncFormatter

    from lab2048.report.pictures import thousands

    if perfect is not None:
        axes.axhline(perfect, color="#7f7f7f", ls="--", lw=1)
        axes.annotate(
            f"perfect play, {perfect:,.1f}", (1, perfect), xycoords=("axes fraction", "data"),
            xytext=(0, 4), textcoords="offset points", ha="right", fontsize=8, color="#555",
        )  # fmt: skip
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(FuncFormatter(thousands))


def plot_curves(
    methods: Mapping[str, Sequence[Sequence[Record]]],
    path: Path,
    perfect: float | None = None,
    counted: str = "games",
) -> None:
    """Draw the curve of each method, the mean of its runs with the interval, into a file."""
    from lab2048.game.colours import line_style

    curves = {name: curve(runs, counted) for name, runs in methods.items()}
    if not all(curves.values()):
        raise ValueError("there is no curve to draw: no block of games is in the log of every run")
    with picture(path) as (axes,):
        for number, (name, points) in enumerate(curves.items()):
            games, mean = [p.count for p in points], np.array([p.mean for p in points])
            half = np.nan_to_num(np.array([p.half for p in points]))
            draw_band(axes, games, mean - half, mean + half, number)
            axes.plot(games, mean, label=name, **line_style(number))
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
        draw_perfect(axes, perfect)
        axes.set_xlabel(f"{counted} of training")
        kinds = {measured(runs) for runs in methods.values()}
        axes.set_ylabel(SCORES[kinds.pop() if len(kinds) == 1 else ""])
        axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))


def draw_band(axes: Any, xs: ArrayLike, low: ArrayLike, high: ArrayLike, number: int) -> None:
    """Draw the interval of a line, in its colour."""
    from lab2048.game.colours import line_style

    color = line_style(number)["color"]
    axes.fill_between(xs, low, high, color=color, alpha=0.15, lw=0)


def plot_epochs(networks: Mapping[str, Sequence[Record]], path: Path) -> None:
    """Draw loss and accuracy of networks by epoch, also on test data where recorded."""
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    from lab2048.game.colours import line_style

    with picture(path, panels=2) as panels:
        for axes, key in zip(panels, ("loss", "accuracy"), strict=True):
            lines = [(name, key, records) for name, records in networks.items()]
            lines += [(f"{n}, test", f"test_{key}", records) for n, records in networks.items()]
            for number, (label, each, records) in enumerate(lines):
                points = [(record["epoch"], record[each]) for record in records if each in record]
                if points:
                    axes.plot(*zip(*points, strict=True), label=label, **line_style(number))
            axes.set_xlabel("epoch")
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
            axes.set_ylabel("moves that are right" if key == "accuracy" else "loss")
        panels[1].yaxis.set_major_formatter(PercentFormatter(1))
        panels[0].legend()


def plot_self_play(
    networks: Mapping[str, Sequence[Record]], path: Path, perfect: float | None = None
) -> None:
    """Draw the mean score of self-play by moves, and that of the policy without search."""
    from lab2048.game.colours import line_style

    with picture(path) as (axes,):
        number = 0
        for name, records in networks.items():
            moves = [record["moves"] for record in records]
            label = f"{name}, self-play with search"
            axes.plot(moves, [r["mean"] for r in records], label=label, **line_style(number))
            number += 1
            bare = [
                (r["moves"], r["bare"]["mean"], *r["bare"]["ci95"]) for r in records if "bare" in r
            ]
            if bare:
                xs, means, low, high = zip(*bare, strict=True)
                draw_band(axes, xs, low, high, number)
                axes.plot(xs, means, label=f"{name}, policy alone", **line_style(number))
                number += 1
        draw_perfect(axes, perfect)
        axes.set_xlabel("moves of self-play")
        axes.set_ylabel("mean score")
        axes.legend(loc="lower right")


PLOTS: dict[str, Callable[[TrainedRuns, Path], None]] = {
    "scores": plot_scores,
    "epochs": lambda runs, path: plot_epochs({run.name: run.log for run in runs}, path),
    "self-play": lambda runs, path: plot_self_play(
        {run.name: run.log for run in runs}, path, runs[0].perfect
    ),
}
"""The function that draws a learner's curve, by `plot` of its entry in the registry."""
