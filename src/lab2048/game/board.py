"""Boards as immutable tuples of ranks: moves and symmetries.

This is plain Python, exact through the 131072 tile. It needs no compilation, and games that outgrow
packed boards (`engine.packed`) continue on it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import IntEnum
from functools import cache, lru_cache
from typing import NamedTuple, SupportsIndex

from lab2048.game.notation import (
    DIGITS,
    MAX_RANK,
    Size,
    Source,
    check_shape,
    parse_cells,
    short,
    where,
    whole,
)

MAX_PACKED_RANK = 15
"""The largest rank in a packed board: the 32768 tile."""
MAX_AGE = 2**18 - 4
"""4 + 8 + ... + 131072, the largest age that a game can reach; so two 131072s never meet."""


class Direction(IntEnum):
    """The four moves, in the order used everywhere, files included.

    >>> Direction.LEFT, str(Direction(1))
    (<Direction.LEFT: 3>, 'right')
    """

    UP = 0
    RIGHT = 1
    DOWN = 2
    LEFT = 3

    def __str__(self) -> str:
        return self.name.lower()


class Move(NamedTuple):
    """The result of sliding a board; for an illegal move, `after` is the board itself.

    >>> move = Board.parse("2 2 / 4 .").move("left")
    >>> move.legal, move.reward, str(move.after)
    (True, 4, '4 . / 4 .')
    """

    legal: bool
    reward: int
    after: Board


class Canonical(NamedTuple):
    """The smallest image of a board, and the number of the symmetry that leads to it.

    >>> Board.parse("2 . / . 4").canonical()
    Canonical(board=Board.parse('. 4 / 2 .'), symmetry=2)
    """

    board: Board
    symmetry: int


@dataclass(frozen=True, slots=True)
class Board:
    """An immutable board: the rank of each cell, row by row (0 is empty, rank r is tile 2**r).

    >>> board = Board.parse("2 4 . / . 8 . / 2 . .")
    >>> board.max_tile, board.age, board.empty
    (8, 16, 5)
    >>> print(board.move(Direction.UP).after)
    4 4 . / . 8 . / . . .
    """

    ranks: tuple[int, ...]
    rows: int
    cols: int

    def __post_init__(self) -> None:
        rows, cols = check_shape(self.rows, self.cols)
        ranks = tuple(self.ranks) if isinstance(self.ranks, Iterable) else ()
        if len(ranks) != rows * cols:
            raise ValueError(f"a {rows}x{cols} board has {rows * cols} cells, not {len(ranks)}")
        for cell, rank in enumerate(ranks):
            value = whole(rank)
            if value is None or not 0 <= value <= MAX_RANK:
                raise ValueError(
                    f"{where(cell, cols)}: {short(rank)} is not a rank; ranks are 0 to {MAX_RANK}"
                )
        object.__setattr__(self, "ranks", tuple(map(int, ranks)))
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "cols", cols)
        if self.age > MAX_AGE:
            raise ValueError(f"the tiles add up to {self.age}; no game goes past {MAX_AGE}")

    # -- other forms ------------------------------------------------------------------------

    @classmethod
    def parse(cls, source: Source, size: Size = None) -> Board:
        """Parse a board from text, a nested list of tiles, or hexadecimal ranks.

        - `"2 4 . / . 8 . / 2 . ."`: tiles, with `.` or `0` for empty cells; rows are separated by
          `/`, `;` or line breaks, cells by spaces or commas
        - `[[2, 4, 0], [0, 8, 0], [2, 0, 0]]`: the same as nested lists (or their JSON text)
        - `"120030100"`: one rank per cell, row by row; `g` and `h` stand for 65536 and 131072.
          The board is square, unless `size` says otherwise.

        With `size` (`"3x3"` or `(3, 3)`), a board of any other size raises a `ValueError`.
        """
        return cls(*parse_cells(source, size))

    @classmethod
    def from_packed(cls, packed: int, rows: int, cols: int) -> Board:
        """Unpack a board from an integer, with cell 0 in the lowest four bits."""
        rows, cols = check_shape(rows, cols)
        value = whole(packed)
        if value is None or not 0 <= value < 16 ** (rows * cols):
            raise ValueError(
                f"a packed {rows}x{cols} board is a whole number below 16**{rows * cols}, "
                f"not {short(packed)}"
            )
        return cls(tuple(value >> 4 * cell & 15 for cell in range(rows * cols)), rows, cols)

    @property
    def packed(self) -> int:
        """The board as one integer, cell 0 in the lowest four bits; tiles up to 32768 only."""
        if max(self.ranks) > MAX_PACKED_RANK:
            raise ValueError(f"a packed board holds tiles up to 32768, not {self.max_tile}")
        return sum(rank << 4 * cell for cell, rank in enumerate(self.ranks))

    @property
    def tiles(self) -> tuple[tuple[int, ...], ...]:
        """The tiles, row by row; 0 for an empty cell."""
        flat = [1 << rank if rank else 0 for rank in self.ranks]
        return tuple(
            tuple(flat[start : start + self.cols]) for start in range(0, len(flat), self.cols)
        )

    @property
    def hex(self) -> str:
        """The ranks, one digit per cell, as `parse` reads them."""
        return "".join(DIGITS[rank] for rank in self.ranks)

    def __str__(self) -> str:
        return " / ".join(" ".join(str(tile or ".") for tile in row) for row in self.tiles)

    def __repr__(self) -> str:
        return f"Board.parse('{self}')"

    def _repr_svg_(self) -> str:
        """The board as a picture, for notebooks."""
        from lab2048.game.drawing import svg

        return svg(self.ranks, self.cols, str(self))

    def grid(self) -> str:
        """The board as text, one line per row, with aligned columns."""
        words = [[str(tile or ".") for tile in row] for row in self.tiles]
        width = max(len(word) for row in words for word in row)
        return "\n".join(" ".join(word.rjust(width) for word in row) for row in words)

    # -- properties -------------------------------------------------------------------------

    @property
    def age(self) -> int:
        """The sum of the tiles: a move keeps it, a spawn adds 2 or 4."""
        return sum(1 << rank for rank in self.ranks if rank)

    @property
    def empty(self) -> int:
        """The number of empty cells."""
        return self.ranks.count(0)

    @property
    def empty_cells(self) -> tuple[int, ...]:
        """The indices of the empty cells, row by row."""
        return tuple([cell for cell, rank in enumerate(self.ranks) if rank == 0])

    @property
    def max_tile(self) -> int:
        """The largest tile, 0 on an empty board."""
        rank = max(self.ranks)
        return 1 << rank if rank else 0

    @property
    def merged(self) -> int:
        """The score of building every tile from 2s: the sum of tile * (rank - 1).

        A game's score is this minus 4 for every 4 that spawned.
        """
        return sum((rank - 1) << rank for rank in self.ranks if rank)

    @property
    def legal_moves(self) -> tuple[Direction, ...]:
        """The directions that change the board, lowest number first."""
        return tuple(direction for direction in Direction if self.move(direction).legal)

    @property
    def is_terminal(self) -> bool:
        """Whether no move is legal."""
        return not any(self.move(direction).legal for direction in Direction)

    # -- moves and symmetries ---------------------------------------------------------------

    def move(self, direction: SupportsIndex | str) -> Move:
        """Slide every tile as far as it goes; equal tiles that meet merge, each once.

        A direction is a `Direction`, its number, or its name in lower case.
        """
        return _move(self, checked_direction(direction))

    def place(self, cell: int, rank: int) -> Board:
        """Return the board with a tile of this rank on an empty cell."""
        where_, what = whole(cell), whole(rank)
        if where_ is None or not 0 <= where_ < len(self.ranks) or self.ranks[where_] != 0:
            raise ValueError(f"{short(cell)} is not the number of an empty cell of {self}")
        if what in (1, 2):  # the other tiles, at most 15, cannot sum to more than MAX_AGE - 4
            ranks = (*self.ranks[:where_], what, *self.ranks[where_ + 1 :])
            return trusted(ranks, self.rows, self.cols)
        return Board((*self.ranks[:where_], rank, *self.ranks[where_ + 1 :]), self.rows, self.cols)

    def image(self, symmetry: int) -> Board:
        """The image under a symmetry, whose bits say: transpose (4), then mirror (1), flip (2).

        Numbers below 4 keep the board's size; on a rectangle the others swap rows and columns.
        """
        symmetry = _checked_symmetry(symmetry)
        ranks = _image(self.rows, self.cols, symmetry)(self.ranks)
        rows, cols = (self.cols, self.rows) if symmetry & 4 else (self.rows, self.cols)
        return trusted(ranks, rows, cols)

    def canonical(self) -> Canonical:
        """The smallest image, compared as packed integers, and the first symmetry that gives it."""
        symmetries = range(8 if self.rows == self.cols else 4)
        images = [_image(self.rows, self.cols, s)(self.ranks)[::-1] for s in symmetries]
        best = images.index(min(images))
        return Canonical(trusted(images[best][::-1], self.rows, self.cols), best)

    def stand_in(self) -> Board:
        """A substitute with tiles up to 32768, for players of packed boards.

        While there is a tile above 32768, all tiles above the largest missing rank are halved. That
        keeps the order and equality of tiles, so the same moves are legal. A board with a legal
        move has at most 15 different tiles, so there always is a missing rank.
        """
        ranks = self.ranks
        while max(ranks) > MAX_PACKED_RANK:
            missing = max(set(range(1, max(ranks))) - set(ranks), default=0)
            if missing == 0:
                raise ValueError(f"no move is legal on {self}, so it has no stand-in")
            ranks = tuple(rank - 1 if rank > missing else rank for rank in ranks)
        return trusted(ranks, self.rows, self.cols)


def trusted(ranks: tuple[int, ...], rows: int, cols: int) -> Board:
    """Make a `Board` without checks, from ranks that are known to be valid."""
    board = object.__new__(Board)
    object.__setattr__(board, "ranks", ranks)
    object.__setattr__(board, "rows", rows)
    object.__setattr__(board, "cols", cols)
    return board


_NAMED = {str(direction): direction for direction in Direction}
_NUMBERED = "0 (up), 1 (right), 2 (down) or 3 (left)"


def checked_direction(direction: object) -> int:
    """The direction as a number from 0 to 3, or a `ValueError`."""
    if direction.__class__ is Direction:
        return direction  # the common case, which needs no check
    named = _NAMED.get(direction) if isinstance(direction, str) else None
    value = whole(direction) if named is None else named
    if value is None or not 0 <= value <= 3:
        words = "up, right, down or left" if isinstance(direction, str) else _NUMBERED
        raise ValueError(f"a direction is {words}, not {short(direction)}")
    return value


@lru_cache(maxsize=1 << 12)  # a check for legal moves is soon followed by a move
def _move(board: Board, direction: int) -> Move:
    """`Board.move` for a checked direction."""
    lines, back = _lines(board.rows, board.cols, direction)
    slid: tuple[int, ...] = ()
    reward = 0
    for line in lines:
        ranks, gained = _slide(line(board.ranks))
        slid += ranks
        reward += gained
    after: tuple[int, ...] = back(slid)
    if after == board.ranks:
        return Move(False, 0, board)
    return Move(True, reward, trusted(after, board.rows, board.cols))


Getter = Callable[[tuple[int, ...]], tuple[int, ...]]


@cache
def _lines(rows: int, cols: int, direction: int) -> tuple[tuple[Getter, ...], Getter]:
    """Getters of the lines, each from the wall that tiles slide to, and one that puts them back."""
    if direction in (Direction.UP, Direction.DOWN):
        lines = [range(c, rows * cols, cols) for c in range(cols)]
    else:
        lines = [range(r * cols, (r + 1) * cols) for r in range(rows)]
    if direction in (Direction.RIGHT, Direction.DOWN):
        lines = [line[::-1] for line in lines]
    order = [cell for line in lines for cell in line]
    back = [order.index(cell) for cell in range(rows * cols)]
    return tuple(operator.itemgetter(*line) for line in lines), operator.itemgetter(*back)


@lru_cache(maxsize=1 << 16)
def _slide(line: tuple[int, ...]) -> tuple[tuple[int, ...], int]:
    """Slide a line towards its first cell; return it and the reward."""
    slid: list[int] = []
    reward = 0
    open_to_merge = False
    for rank in line:
        if rank == 0:
            continue
        if open_to_merge and slid[-1] == rank:
            slid[-1] += 1
            reward += 1 << slid[-1]
            open_to_merge = False
        else:
            slid.append(rank)
            open_to_merge = True
    return (*slid, *[0] * (len(line) - len(slid))), reward


def _checked_symmetry(symmetry: object) -> int:
    """The symmetry as a number from 0 to 7, or a `ValueError`."""
    value = whole(symmetry)
    if value is None or not 0 <= value <= 7:
        raise ValueError(f"a symmetry is a number from 0 to 7, not {short(symmetry)}")
    return value


@cache
def _image(rows: int, cols: int, symmetry: int) -> Getter:
    """A getter that permutes the ranks of a board into those of its image."""
    grid = [[r * cols + c for c in range(cols)] for r in range(rows)]
    if symmetry & 4:
        grid = [list(column) for column in zip(*grid, strict=True)]
    if symmetry & 1:
        grid = [row[::-1] for row in grid]
    if symmetry & 2:
        grid = grid[::-1]
    return operator.itemgetter(*(cell for row in grid for cell in row))


def direction_on_image(direction: SupportsIndex | str, symmetry: int) -> Direction:
    """The move on the image that does what `direction` does on the board.

    >>> direction_on_image("left", 1)  # symmetry 1 mirrors the board
    <Direction.RIGHT: 1>
    """
    d, symmetry = checked_direction(direction), _checked_symmetry(symmetry)
    if symmetry & 4:
        d = 3 - d  # up and left change places, right and down too
    return Direction(_reflected(d, symmetry))


def direction_from_image(direction: SupportsIndex | str, symmetry: int) -> Direction:
    """The move on the board that does what `direction` does on its image.

    >>> direction_from_image("right", 1)
    <Direction.LEFT: 3>
    """
    symmetry = _checked_symmetry(symmetry)
    d = _reflected(checked_direction(direction), symmetry)
    return Direction(3 - d if symmetry & 4 else d)


def _reflected(direction: int, symmetry: int) -> int:
    """The direction after mirroring (1: left, right) and flipping (2: up, down)."""
    reflect = 1 if direction in (Direction.RIGHT, Direction.LEFT) else 2
    return direction ^ 2 if symmetry & reflect else direction
