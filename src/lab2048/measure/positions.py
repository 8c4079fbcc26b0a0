"""A position and its moves: what they do, what they are exactly worth, and what players think."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from lab2048.game import P4, Board, Direction, Rules, Spawn
from lab2048.game.notation import Source
from lab2048.tabular import Tabular

if TYPE_CHECKING:
    from lab2048.players.player import Player
    from lab2048.solver.problem import Problem
    from lab2048.solver.table import MoveValue, Table
    from lab2048.solver.tables import Make, TableLike


class Opinion(NamedTuple):
    """What a player thinks of the moves of a position."""

    player: str
    meaning: str
    """What its values mean."""
    values: dict[Direction, float]
    """Of the legal moves; empty for a player that only chooses."""
    choice: Direction | None
    """The move it makes; None if no move is legal."""
    points: bool = False
    """Whether the values are expected scores."""
    marks: Mapping[Direction, str] = MappingProxyType({})
    """How good the legal moves are, as far as the player can tell (`lab2048.measure.marks`)."""


def opinion(player: Player, board: Board, word: int = 0) -> Opinion:
    """What a player thinks of a position; `word` is its random word, if it draws."""
    from lab2048.players.player import Player, PlayerError

    if board.is_terminal:
        return Opinion(player.spec, player.meaning, {}, None, player.points)
    try:
        values = player.values(board, word)
    except PlayerError:  # one that only chooses
        values = {}
    if values and type(player).choose_many is Player.choose_many:
        choice = _pick(player, values, word)  # asking again would repeat the whole search
    else:
        choice = player.choose(board, word)
    marks = _marks(player, values)
    return Opinion(player.spec, player.meaning, values, choice, player.points, marks)


def _marks(player: Player, values: dict[Direction, float]) -> dict[Direction, str]:
    """The mark of each move that a player has given a value."""
    import numpy as np

    from lab2048.measure.marks import mark, settle

    if not values:
        return {}
    found = settle(np.array([list(values.values())]), player)[0]
    best = float(found.max())
    return {d: mark(best - float(q), best, player) for d, q in zip(values, found, strict=True)}


def _pick(player: Player, values: dict[Direction, float], word: int) -> Direction:
    """The move that a player makes with these values."""
    import numpy as np

    from lab2048.players.ties import pick

    found = np.array([[values.get(d, np.nan) for d in Direction]])
    return Direction(int(pick(found, np.array([word], np.uint64), player.splits, player.tie)[0]))


def opinions(board: Board, rules: Rules, players: Sequence[str | Player]) -> list[Opinion]:
    """Return what players think of a position."""
    from lab2048.players.registry import player

    return [opinion(player(each, rules), board) for each in players]


@dataclass(frozen=True)
class ProbedMove:
    """What one of the four moves does, and what it is worth if the board is solved."""

    legal: bool
    reward: int | None
    after: Board | None
    """The afterstate."""
    exact: MoveValue | None
    """Value, q and regret; None if the move is not legal, or the board not solved."""
    mark: str | None
    """best, good, slip, mistake or blunder."""


@dataclass(frozen=True)
class Probed(Tabular):
    """A position: its moves, their exact values, and what players think of them.

    >>> found = probe("2 2 / 4 .", players=["greedy"])
    >>> found.moves[Direction.DOWN].mark, str(found.opinions[0].choice)
    ('blunder', 'right')
    """

    board: Board
    rules: Rules
    problem: Problem | None
    """What the table was solved for; None if there is no table."""
    value: float | None
    """The exact value of the position."""
    moves: Mapping[Direction, ProbedMove]
    opinions: Sequence[Opinion] = ()
    spawns: Sequence[tuple[Spawn, float | None]] | None = None
    """The possible spawns after the move `after`, each with the value of its state."""

    @property
    def best(self) -> tuple[Direction, ...]:
        """The optimal moves; empty if the board is not solved, or no move is legal."""
        return tuple(d for d, move in self.moves.items() if move.exact and move.exact.optimal)

    def as_json(self) -> dict[str, Any]:
        """Return what `lab2048 probe --json` prints; figures that do not exist are null."""
        found: dict[str, Any] = {
            "board": str(self.board),
            "rules": {"rows": self.rules.rows, "cols": self.rules.cols, "p4": self.rules.p4},
            "objective": self.problem.goal if self.problem else None,
            "gamma": self.problem.gamma if self.problem else None,
            "terminal": self.board.is_terminal,
            "value": self.value,
            "moves": {str(d): _move_json(move) for d, move in self.moves.items()},
        }
        if self.opinions:
            found["players"] = {each.player: opinion_json(each) for each in self.opinions}
        if self.spawns is not None:
            found["spawns"] = [_spawn_json(spawn, value) for spawn, value in self.spawns]
        return found

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per move; None for figures of illegal moves and unsolved boards."""
        return [
            {
                "move": str(direction),
                "reward": move.reward,
                "q": move.exact and move.exact.q,
                "regret": move.exact and move.exact.regret,
                "mark": move.mark,
                **{each.player: each.values.get(direction) for each in self.opinions},
            }
            for direction, move in self.moves.items()
        ]

    def _repr_html_(self) -> str:
        """Return the board as a picture, with its moves."""
        return f"{self.board._repr_svg_()}{super()._repr_html_()}"


def probe(
    board: Board | Source,
    table: TableLike = True,
    *,
    p4: float | None = None,
    objective: str | None = None,
    gamma: float | None = None,
    after: str | None = None,
    players: Sequence[str | Player] = (),
) -> Probed:
    """Return what every move does to a position, and its exact value if the board is solved.

    `table` is a `Table`, the name of one, True for that of the board if it is solved or small,
    False for none. `after` is a move whose spawns are wanted; `players` are asked for their
    opinions.

    >>> found = probe("2 2 / 4 .")
    >>> [str(move) for move in found.best], round(found.value, 4)
    (['right', 'left'], 64.9077)
    """
    position = board if isinstance(board, Board) else Board.parse(board)
    rules = Rules(position.rows, position.cols, P4 if p4 is None else p4)
    asked = {"p4": p4, "objective": objective, "gamma": gamma}
    with answering_position(rules, table, asked) as found:
        rules = rules if found is None else found.rules
        return probed(position, rules, found, after, opinions(position, rules, players))


def position_table(
    rules: Rules, name: str | None, asked: Mapping[str, Any], make: Make | None = None
) -> Table | None:
    """Return the table to look positions up in; None if the board is not solved.

    It is the one with this name, which must agree with the facts in `asked` (objective, p4 and
    gamma that are not None), or else that of the board with these facts.
    """
    from lab2048.solver.tables import table_for

    problem, agree = _asked_for(rules, asked)
    return table_for(problem, name, make, agree=agree)


def answering_position(
    rules: Rules, table: TableLike, asked: Mapping[str, Any]
) -> AbstractContextManager[Table | None]:
    """The table that answers for a position (`table_answering`), with the facts in `asked`."""
    from lab2048.solver.tables import table_answering

    problem, agree = _asked_for(rules, asked)
    return table_answering(problem, table, agree=agree)


def _asked_for(rules: Rules, asked: Mapping[str, Any]) -> tuple[Problem | Rules, list[str]]:
    """The problem of a position (its rules if it is too large), and the facts that must agree."""
    from lab2048.solver.problem import MAX_CELLS, Problem

    given = {key: value for key, value in asked.items() if value is not None}
    problem = rules if rules.cells > MAX_CELLS else Problem.of(rules, **given)
    return problem, ["board", *given]


def probed(
    board: Board,
    rules: Rules,
    table: Table | None,
    after: str | None = None,
    opinions: Sequence[Opinion] = (),
) -> Probed:
    """Return a position with what an open table, if there is one, knows about it."""
    values = table.moves(board) if table else {}
    return Probed(
        board,
        table.rules if table else rules,
        table.problem if table else None,
        table.value(board) if table else None,
        {d: _move(board, d, values.get(d), table) for d in Direction},
        tuple(opinions),
        None if after is None else spawns_after(board, rules, table, after),
    )


def _move(
    board: Board, direction: Direction, value: MoveValue | None, table: Table | None
) -> ProbedMove:
    """One of the four moves."""
    from lab2048.measure.marks import mark

    legal, reward, after = board.move(direction)
    if not legal:
        return ProbedMove(False, None, None, None, None)
    if value is None or table is None:
        return ProbedMove(True, reward, after, None, None)
    lost = 0.0 if value.optimal else value.regret
    return ProbedMove(True, reward, after, value, mark(lost, value.q + value.regret, table))


def _move_json(move: ProbedMove) -> dict[str, Any]:
    """A move as plain values."""
    value = move.exact
    return {
        "legal": move.legal,
        "reward": move.reward,
        "after": None if move.after is None else str(move.after),
        "after_value": value.after_value if value else None,
        "q": value.q if value else None,
        "regret": value.regret if value else None,
        "optimal": value.optimal if value else None,
        "mark": move.mark,
    }


def _spawn_json(spawn: Spawn, value: float | None) -> dict[str, Any]:
    """A spawn as plain values."""
    return {
        "cell": spawn.cell,
        "tile": 1 << spawn.rank,
        "probability": spawn.probability,
        "board": str(spawn.board),
        "value": value,
    }


def opinion_json(opinion: Opinion) -> dict[str, Any]:
    """An opinion as plain values; illegal moves and infinite values are null."""
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
