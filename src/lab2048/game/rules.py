"""The rules of a game: the size of its board, and the chance that a new tile is a 4."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import NamedTuple, cast

from lab2048.game.board import Board
from lab2048.game.notation import Source, check_shape, parse_shape, short, whole

P4 = 0.1
"""The chance of a 4 in the standard game."""
Position = Board | Source | int
"""A board in any form that `Rules.position` accepts."""


class Spawn(NamedTuple):
    """One outcome of the chance event after a move.

    >>> spawns = Rules(2, 2).spawns(Board.parse("2 4 / 8 ."))
    >>> [(spawn.cell, spawn.rank, spawn.probability) for spawn in spawns]
    [(3, 1, 0.9), (3, 2, 0.1)]
    """

    cell: int
    rank: int
    probability: float
    board: Board


@dataclass(frozen=True, slots=True)
class Rules:
    """The board's size and the chance that a new tile is a 4.

    Both sides are 2 to 6 and there are at most 16 cells.

    >>> Rules(4, 3).cells
    12
    """

    rows: int
    cols: int
    p4: float = P4

    def __post_init__(self) -> None:
        rows, cols = check_shape(self.rows, self.cols)
        real = isinstance(self.p4, Real) and not isinstance(self.p4, bool)
        try:
            p4 = float(self.p4) + 0.0 if real else math.nan  # + 0.0 turns -0.0 into 0.0
        except OverflowError:
            p4 = math.nan
        if not 0 <= p4 <= 1:  # nan fails this too
            raise ValueError(
                f"p4, the chance of a 4, is a number from 0 to 1, not {short(self.p4)}"
            )
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "cols", cols)
        object.__setattr__(self, "p4", p4)

    @classmethod
    def parse(cls, size: str, p4: float = P4) -> Rules:
        """The rules for a board size such as `4x3`."""
        return cls(*parse_shape(size), p4)

    @property
    def cells(self) -> int:
        """The number of cells."""
        return self.rows * self.cols

    @property
    def name(self) -> str:
        """The board's size as text, such as `4x3`."""
        return f"{self.rows}x{self.cols}"

    @property
    def symmetries(self) -> int:
        """The number of symmetries: 8 for a square board, otherwise 4."""
        return 8 if self.rows == self.cols else 4

    def spawns(self, after: Board) -> list[Spawn]:
        """Every outcome of the spawn after a move, cell by cell, the 2 before the 4.

        Impossible outcomes (4s when p4 is 0, 2s when it is 1) are left out.
        """
        self.check(after)
        empty = after.empty_cells
        if not empty:
            raise ValueError(f"no cell is empty, so nothing can spawn on {after}")
        kinds = [(rank, p) for rank, p in ((1, 1 - self.p4), (2, self.p4)) if p > 0]
        return [
            Spawn(cell, rank, p / len(empty), after.place(cell, rank))
            for cell in empty
            for rank, p in kinds
        ]

    def position(self, given: Position) -> Board:
        """Read a board in any form: a `Board`, what `Board.parse` accepts, or a packed integer.

        Ranks as digits and packed integers are read in this size; other forms have a size of their
        own, which is not checked (see `check`).
        """
        if isinstance(given, Board):
            return given
        if isinstance(given, str):  # digits do not tell the number of rows
            return Board.parse(given, self.name if given.strip().isalnum() else None)
        if (packed := whole(given)) is not None:
            return Board.from_packed(packed, self.rows, self.cols)
        return Board.parse(cast(Source, given))

    def check(self, board: Board) -> None:
        """Raise a `ValueError` unless the board has this size."""
        if (board.rows, board.cols) != (self.rows, self.cols):
            raise ValueError(f"the board is {board.rows}x{board.cols}, the rules are {self.name}")
