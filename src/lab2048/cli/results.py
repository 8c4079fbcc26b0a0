"""Results of an evaluation as a table for the terminal."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lab2048.cli.console import new_table, output
from lab2048.formatting import number

if TYPE_CHECKING:
    from rich.table import Table as Grid


def show_results(results: list[dict[str, Any]]) -> None:
    """Print the results as a table, best first, and notes on how to read it."""
    from lab2048.measure.figures import WHY_LOSSES_EXCEED

    console = output()
    console.print(results_grid(results, console.width))
    first = results[0]
    games = "1 game" if first["games"] == 1 else f"{first['games']:,} games"
    words = [f"{games} per player on {first['board']}, seed {first['seed']}"]
    words += ["+/-: 95%"]
    if any(each["optimal"] for each in results):
        words.append("loss: expected score given away per game (= exact, ~ sampled)")
    if any(each["timed"] for each in results):
        words.append("with a time limit, games differ from machine to machine")
    console.print("; ".join(words), style="dim", highlight=False)
    if any(each["optimal"] and not each["exact"] for each in results):
        console.print(
            f"{WHY_LOSSES_EXCEED}; --exact computes the loss itself.", style="dim", highlight=False
        )
    for each in results[1:] if len(results) <= 4 else []:
        paired = each["paired"]["difference"]
        ends = paired["ci95"]
        inside = f" (95%: {ends[0]:+,.1f} to {ends[1]:+,.1f})" if ends else ""
        print(f"{each['player']} less {each['paired']['against']}: {paired['mean']:+,.1f}{inside}")


def results_grid(results: list[dict[str, Any]], width: int) -> Grid:
    """A table with one row per player, best first; minor columns are left out if it is too wide."""
    from lab2048.measure.evaluation import ranked

    grid = new_table(tight=True)
    columns = _columns(results)
    name = max(len("player"), *(len(each["player"]) for each in results))
    while len(columns) > 2 and name + 2 + sum(_width(c) for c in columns) > width:
        least = max(range(len(columns)), key=lambda place: columns[place][1])
        del columns[least]
    grid.add_column("player", overflow="fold")
    for title, _, _ in columns:
        grid.add_column(title, justify="right", no_wrap=True)
    for place in ranked(results):
        grid.add_row(results[place]["player"], *(cells[place] for _, _, cells in columns))
    return grid


Column = tuple[str, int, list[str]]
"""A title, the rank by which the column is left out (largest first), and its cells."""


def _columns(results: list[dict[str, Any]]) -> list[Column]:
    """All columns that the results have figures for."""
    from lab2048.measure.evaluation import half_width, loss_text

    def column(title: str, rank: int, cell: Callable[[dict[str, Any]], str]) -> Column:
        return title, rank, [cell(each) for each in results]

    columns = [
        column("mean score", 0, lambda e: f"{e['score']['mean']:,.1f}"),
        column("+/-", 2, lambda e: half_width(e["score"]["ci95"])),
        column("median", 7, lambda e: f"{e['score']['median']:,.0f}"),
        column("best", 8, lambda e: f"{e['score']['max']:,}"),
    ]
    if any(each["exact"] for each in results):
        columns.append(
            column("exact mean", 1, lambda e: number(e["exact"] and e["exact"]["value"]))
        )
    if any(each["optimal"] for each in results):
        agrees = column("agrees", 3, lambda e: f"{e['optimal']['agreement']:.1%}")
        columns += [column("loss", 1, loss_text), agrees]
    for place, tile in enumerate(telling_tiles(results)):
        columns.append((f"{tile}", 5 + place, [rate_text(each, tile) for each in results]))
    speed = column("moves/s", 6, lambda e: speed_text(e["moves_per_second"]))
    return [*columns, speed]


def _width(column: Column) -> int:
    """The width of a column, including the space beside it."""
    return 3 + max(len(column[0]), *(len(cell) for cell in column[2]))


def telling_tiles(results: list[dict[str, Any]]) -> list[int]:
    """The two largest tiles that some player reached in at least 1% of its games."""
    often = {
        int(tile)
        for each in results
        for tile, facts in each["reach"].items()
        if facts["rate"] >= 0.01
    }
    return sorted(often)[-2:]


def rate_text(result: dict[str, Any], tile: int) -> str:
    """The share of games that reached a tile, as a percentage."""
    from lab2048.measure.figures import reach_rate

    rate = reach_rate(result, tile)
    return f"{rate:.1%}" if 0 < rate < 0.9995 else f"{rate:.0%}"


def speed_text(value: float | None) -> str:
    """Moves per second, rounded to three digits."""
    if value is None:
        return "-"
    digits = max(0, len(str(int(value))) - 3)
    return f"{round(value / 10**digits) * 10**digits:,}"
