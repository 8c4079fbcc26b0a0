"""The command `probe`: a position, its moves, and what they are worth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from lab2048.game import Board, Direction, Rules
from lab2048.wording import precise

if TYPE_CHECKING:
    from lab2048.solve.table import MoveValue, Table

ON_THE_FLY = 8
"""Boards of up to so many cells are solved when they are asked for; it takes about a second."""


def table_for(
    rules: Rules, path: str | None, objective: str, gamma: float
) -> tuple[Table | None, str]:
    """The table to look positions up in; if there is none, what to do about it."""
    from lab2048.solve.problem import MAX_CELLS, Problem

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


class Opinion(NamedTuple):
    """What a player thinks of the moves of a position."""

    player: str
    meaning: str
    """What its values are."""
    values: dict[Direction, float]
    choice: Direction | None
    """The move it makes; None if there is none."""


def opinions(board: Board, rules: Rules, specs: Sequence[str]) -> list[Opinion]:
    """What players think of a position."""
    if not specs:
        return []
    from lab2048.player import PlayerError
    from lab2048.players import make_player

    found = []
    for spec in specs:
        player = make_player(spec, rules)
        try:
            values = player.values(board) if not board.is_terminal else {}
        except PlayerError:  # one that only chooses
            values = {}
        choice = None if board.is_terminal else player.choose(board)
        if values and getattr(player, "timed", False):  # asked again, it may think otherwise
            choice = max(values, key=lambda direction: values[direction])
        found.append(Opinion(player.spec, getattr(player, "meaning", ""), values, choice))
    return found


def as_json(
    board: Board,
    rules: Rules,
    table: Table | None,
    after: str | None,
    opinions: Sequence[Opinion] = (),
) -> dict[str, Any]:
    """The object that `probe --json` prints; null stands for what is illegal, or not solved."""
    values = table.moves(board) if table else {}
    found: dict[str, Any] = {
        "board": str(board),
        "rules": {
            "rows": rules.rows,
            "cols": rules.cols,
            "p4": table.rules.p4 if table else rules.p4,
        },
        "objective": table.problem.goal if table else None,
        "gamma": table.problem.gamma if table else None,
        "terminal": board.is_terminal,
        "value": table.value(board) if table else None,
        "moves": {
            str(direction): _move_json(board, direction, values.get(direction))
            for direction in Direction
        },
    }
    if opinions:
        found["players"] = {
            each.player: {
                "meaning": each.meaning,
                "values": {str(d): each.values.get(d) for d in Direction},
                "choice": None if each.choice is None else str(each.choice),
            }
            for each in opinions
        }
    if after is not None:
        found["spawns"] = [
            {
                "cell": spawn.cell,
                "tile": 1 << spawn.rank,
                "probability": spawn.probability,
                "board": str(spawn.board),
                "value": value,
            }
            for spawn, value in _spawns(board, rules, table, after)
        ]
    return found


def _move_json(board: Board, direction: Direction, value: MoveValue | None) -> dict[str, Any]:
    """One of the four moves."""
    legal, reward, after = board.move(direction)
    return {
        "legal": legal,
        "reward": reward if legal else None,
        "after": str(after) if legal else None,
        "after_value": value.after_value if value else None,
        "q": value.q if value else None,
        "regret": value.regret if value else None,
        "optimal": value.optimal if value else None,
    }


def _spawns(
    board: Board, rules: Rules, table: Table | None, move: str
) -> list[tuple[Any, float | None]]:
    """The spawns after a move, with their values if there is a table."""
    legal, _, after = board.move(move)
    if not legal:
        raise ValueError(f"{move} is not legal on {board}")
    if table is not None:
        return list(table.spawns(after))
    return [(spawn, None) for spawn in rules.spawns(after)]


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
    spawns = _spawns(board, rules, table, after) if after is not None else []
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
