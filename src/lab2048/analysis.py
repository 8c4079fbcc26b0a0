"""A position and its moves: what they do, what they are exactly worth, and what players think."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from lab2048.game import Board, Direction, Rules, Spawn

if TYPE_CHECKING:
    from lab2048.player import Player
    from lab2048.solve.table import MoveValue, Table


class Opinion(NamedTuple):
    """What a player thinks of the moves of a position."""

    player: str
    meaning: str
    """What its values are."""
    values: dict[Direction, float]
    """Of the legal moves; empty for a player that only chooses."""
    choice: Direction | None
    """The move it makes; None if there is none."""
    points: bool = False
    """Whether the values are expected scores."""
    marks: Mapping[Direction, str] = MappingProxyType({})
    """How good the legal moves are, as far as the player can tell (`lab2048.marks`)."""


def opinion(player: Player, board: Board, word: int = 0) -> Opinion:
    """What a player thinks of a position; one that draws does so with this random word."""
    from lab2048.player import Player, PlayerError

    if board.is_terminal:
        return Opinion(player.spec, player.meaning, {}, None, player.points)
    try:
        values = player.values(board, word)
    except PlayerError:  # one that only chooses
        values = {}
    if values and type(player).choose_many is Player.choose_many:
        choice = _pick(player, values, word)  # asked again, it would take as long once more
    else:
        choice = player.choose(board, word)
    marks = _marks(player, values)
    return Opinion(player.spec, player.meaning, values, choice, player.points, marks)


def _marks(player: Player, values: dict[Direction, float]) -> dict[Direction, str]:
    """The mark of each move that a player has given a value."""
    import numpy as np

    from lab2048.marks import mark, settle

    if not values:
        return {}
    found = settle(np.array([list(values.values())]), player)[0]
    best = float(found.max())
    return {d: mark(best - float(q), best, player) for d, q in zip(values, found, strict=True)}


def _pick(player: Player, values: dict[Direction, float], word: int) -> Direction:
    """The move that a player makes with these values."""
    import numpy as np

    from lab2048.choice import pick

    found = np.array([[values.get(d, np.nan) for d in Direction]])
    return Direction(int(pick(found, np.array([word], np.uint64), player.splits, player.tie)[0]))


def opinions(board: Board, rules: Rules, specs: Sequence[str]) -> list[Opinion]:
    """What players think of a position."""
    from lab2048.players import make_player

    return [opinion(make_player(spec, rules), board) for spec in specs]


def as_json(
    board: Board,
    rules: Rules,
    table: Table | None,
    after: str | None = None,
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
            str(direction): _move_json(board, direction, values.get(direction), table)
            for direction in Direction
        },
    }
    if opinions:
        found["players"] = {each.player: opinion_json(each) for each in opinions}
    if after is not None:
        found["spawns"] = [
            {
                "cell": spawn.cell,
                "tile": 1 << spawn.rank,
                "probability": spawn.probability,
                "board": str(spawn.board),
                "value": value,
            }
            for spawn, value in spawns_after(board, rules, table, after)
        ]
    return found


def _move_json(
    board: Board, direction: Direction, value: MoveValue | None, table: Table | None
) -> dict[str, Any]:
    """One of the four moves."""
    from lab2048.marks import mark

    legal, reward, after = board.move(direction)
    best = value.q + value.regret if value else 0.0
    lost = value.regret if value and not value.optimal else 0.0
    return {
        "legal": legal,
        "reward": reward if legal else None,
        "after": str(after) if legal else None,
        "after_value": value.after_value if value else None,
        "q": value.q if value else None,
        "regret": value.regret if value else None,
        "optimal": value.optimal if value else None,
        "mark": mark(lost, best, table) if value and table else None,
    }


def opinion_json(opinion: Opinion) -> dict[str, Any]:
    """What a player thinks, with null for what is illegal, or minus infinity."""
    return {
        "meaning": opinion.meaning,
        "points": opinion.points,
        "values": {
            str(d): value if value is not None and math.isfinite(value) else None
            for d, value in ((d, opinion.values.get(d)) for d in Direction)
        },
        "marks": {str(d): opinion.marks.get(d) for d in Direction},
        "choice": None if opinion.choice is None else str(opinion.choice),
    }


def spawns_after(
    board: Board, rules: Rules, table: Table | None, move: str
) -> list[tuple[Spawn, float | None]]:
    """The spawns after a move, with their values if there is a table."""
    legal, _, after = board.move(move)
    if not legal:
        raise ValueError(f"{move} is not legal on {board}")
    if table is not None:
        return list(table.spawns(after))
    return [(spawn, None) for spawn in rules.spawns(after)]
