"""The page about a game that was reviewed: its graph, its mistakes, all its moves."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path

from matplotlib import rc_context
from matplotlib.figure import Figure

from lab2048.game import Board
from lab2048.home import write_atomically
from lab2048.palette import css, text_colour, tile_colour
from lab2048.records import Record
from lab2048.report import PAGE, page_facts, svg
from lab2048.review import Step, summary, worst
from lab2048.solve.plots import STYLE


def write_review(
    record: Record, steps: Sequence[Step], by: str, path: Path, arguments: Sequence[str]
) -> None:
    """Write the page about a game."""
    found = summary(steps)
    accuracy = "-" if found["accuracy"] is None else f"{found['accuracy']:.1%}"
    facts = [
        f"score {record.score:,}",
        f"largest tile {record.max_tile}",
        f"{found['moves']:,} moves",
        f"lost {found['loss']:,.1f}",
        f"accuracy {accuracy}",
    ]
    body = [
        f"<p><code>{html.escape(record.player)}</code> on {record.rules.name}: "
        f"{', '.join(facts)}; by {html.escape(by)}.</p>",
        f"<figure>{svg(_graph(steps))}</figure>",
        "<h2>The largest mistakes</h2>",
    ]
    for step in worst(steps):
        body.append(
            f"<h3>Move {step.number}: {step.move}, better {step.best} "
            f"(lost {step.regret:,.1f})</h3>{_board(step.board)}"
        )
    body.append("<h2>All moves</h2>" + _moves(steps))
    title = f"A game of 2048 by {record.player}"
    write_atomically(path, PAGE.format(body="\n".join(body), **page_facts(title, arguments)))


def _graph(steps: Sequence[Step]) -> Figure:
    """The value before each move, and the loss so far."""
    numbers = [step.number for step in steps]
    with rc_context(STYLE):
        figure = Figure(figsize=(8, 4.6))
        above, below = figure.subplots(2, 1, sharex=True)
        above.plot(numbers, [step.value for step in steps], color="#0072b2", lw=1.2)
        above.set_ylabel("value of the best move")
        below.fill_between(numbers, [step.loss for step in steps], color="#d55e00", alpha=0.25)
        below.plot(numbers, [step.loss for step in steps], color="#d55e00", lw=1.2)
        for step in worst(steps):
            below.plot([step.number], [step.loss], "o", color="#222", ms=4)
        below.set_ylabel("loss so far")
        below.set_xlabel("move")
        figure.align_ylabels()
        return figure


def _board(board: Board) -> str:
    """A board as a small table."""
    rows = []
    for r, tiles in enumerate(board.tiles):
        cells = []
        for c, tile in enumerate(tiles):
            rank = board.ranks[r * board.cols + c]
            back, front = (css(colour(rank)) for colour in (tile_colour, text_colour))
            look = f"background:{back};color:{front};width:3.2rem;height:3.2rem;text-align:center"
            cells.append(f'<td style="{look};border:3px solid #fff">{tile or ""}</td>')
        rows.append(f"<tr>{''.join(cells)}</tr>")
    return f"<table>{''.join(rows)}</table>"


def _moves(steps: Sequence[Step]) -> str:
    """Every move in a line."""
    head = "<tr><th>move</th><th>board</th><th>made</th><th>better</th><th>lost</th>"
    head += "<th>loss so far</th></tr>"
    rows = []
    for step in steps:
        better = "" if step.regret == 0 else str(step.best)
        lost = "" if step.regret == 0 else f"{step.regret:,.2f}"
        cells = [step.number, f"<code>{step.board}</code>", step.move, better, lost]
        shown = "".join(f"<td>{cell}</td>" for cell in [*cells, f"{step.loss:,.2f}"])
        rows.append(f"<tr>{shown}</tr>")
    return f'<div class="wide"><table>{head}{"".join(rows)}</table></div>'
