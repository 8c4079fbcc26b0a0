"""The command `probe`: a position, its moves, and what they are worth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lab2048.analysis import Opinion, spawns_after
from lab2048.game import Board, Direction, Rules
from lab2048.wording import precise

if TYPE_CHECKING:
    from lab2048.solve.table import MoveValue, Table


def table_for(
    rules: Rules, path: str | None, objective: str, gamma: float
) -> tuple[Table | None, str]:
    """The table to look positions up in; if there is none, what to do about it."""
    from lab2048.solve.problem import MAX_CELLS, ON_THE_FLY, Problem

    if path is not None:
        from lab2048.cli_solve import folder_of
        from lab2048.solve.table import Table

        return Table(folder_of(path)), ""
    if rules.cells > MAX_CELLS:
        return None, ""
    problem = Problem.of(rules, objective=objective, gamma=gamma)
    from lab2048.solve.table import command_for, find_table, open_table

    if find_table(problem) is not None:
        return open_table(problem), ""
    if rules.cells <= ON_THE_FLY:
        from lab2048.cli_solve import solved

        return solved(problem), ""
    return None, f"for exact values, solve the board once: {command_for(problem)}"


def check_asked(table: Table, asked: dict[str, Any]) -> None:
    """A `ValueError` if a table that was named is of another problem than was asked for."""
    for name, value in asked.items():
        if (found := table.problem.as_json()[name]) != value:
            raise ValueError(f"the table in {table.path} has {name} {found}, not {value}")


def show(
    board: Board,
    rules: Rules,
    table: Table | None,
    after: str | None,
    opinions: Sequence[Opinion],
    hint: str,
) -> None:
    """The position and its moves, a line each."""
    # what may be refused comes first: nothing is printed then
    values = table.moves(board) if table else {}
    spawns = spawns_after(board, rules, table, after) if after is not None else []
    print(board.grid())
    facts = [
        rules.name,
        f"age {board.age}",
        f"{board.empty} empty",
        f"largest tile {board.max_tile}",
    ]
    print(", ".join(facts + ["no move is legal"] * board.is_terminal))
    image, symmetry = board.canonical()
    print(f"canonical {image} by symmetry {symmetry}")
    if table is not None:
        discount = f", gamma {table.problem.gamma:g}" if table.problem.gamma != 1 else ""
        print(
            f"value {precise(table.value(board))} "
            f"({table.problem.goal}, p4 {table.rules.p4:g}{discount})"
        )
    print()
    if after is not None:
        print(f"after {after}: {board.move(after).after}")
        print()
        _show_spawns(spawns, table is not None)
    else:
        _show_moves(board, values)
    for each in opinions:
        _show_opinion(each)
    if hint:
        print()
        print(hint)


def _show_moves(board: Board, values: dict[Direction, MoveValue]) -> None:
    """All four moves."""
    exact = f"{'q':>14}{'regret':>12}" if values else ""
    print(f"move   reward{exact}  afterstate")
    for direction in Direction:
        legal, reward, after = board.move(direction)
        if not legal:
            print(f"{direction!s:5}  {'':6}{' ' * len(exact)}  not legal")
            continue
        numbers = ""
        if values:
            value = values[direction]
            regret = "best" if value.optimal else precise(value.regret)
            numbers = f"{precise(value.q):>14}{regret:>12}"
        print(f"{direction!s:5}  {reward:6}{numbers}  {after}")


def _show_opinion(opinion: Opinion) -> None:
    """What a player thinks of the moves, the best one first."""
    print()
    print(f"{opinion.player}: {opinion.meaning}")
    if not opinion.values and opinion.choice is not None:
        print(f"{opinion.choice!s:5}  its move")
    for direction, value in sorted(opinion.values.items(), key=lambda pair: -pair[1]):
        mark = "  its move" if direction == opinion.choice else ""
        print(f"{direction!s:5}{precise(value):>14}{mark}")


def _show_spawns(spawns: list[tuple[Any, float | None]], exact: bool) -> None:
    """What may come after a move."""
    print("tile  chance" + f"{'value':>14}" * exact + "  state")
    for spawn, value in spawns:
        shown = f"{precise(value):>14}" if value is not None else ""
        print(f"{1 << spawn.rank:4}  {100 * spawn.probability:5.2f}%{shown}  {spawn.board}")
