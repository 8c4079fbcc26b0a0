"""Parse boards, sizes and numbers as people write them.

Every error message is one line that says what is wrong and what would be right.
"""

from __future__ import annotations

import json
import math
import operator
import os
import re
import reprlib
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import SupportsIndex, TypeVar

SHAPES = [(r, c) for r in range(2, 7) for c in range(2, 7) if r * c <= 16]
"""All board sizes."""
MAX_RANK = 17
"""The largest rank that the rules allow on 16 cells: the 131072 tile."""
DIGITS = "0123456789abcdefgh"
"""One digit per rank: hexadecimal, and two more for 65536 and 131072."""

Cells = tuple[tuple[int, ...], int, int]
"""The rank of each cell, row by row; the number of rows; the number of columns."""
Source = str | Iterable[Iterable[int]]
Size = str | tuple[int, int] | None
Number = TypeVar("Number", int, float)

_EXAMPLE = "'2 4 . / . 8 . / 2 . .'"
_TILES = "tiles are powers of two from 2 to 131072, and . or 0 is an empty cell"
_RANK_OF_TILE = {0: 0} | {1 << rank: rank for rank in range(1, MAX_RANK + 1)}


def short(value: object) -> str:
    """The value for an error message: on one line, shortened if it is long."""
    return " ".join(reprlib.repr(value).split())


def whole(value: object) -> int | None:
    """The value as an int if it is a whole number (not a bool, not a float), else None."""
    if value.__class__ is int:  # the common case: looking for __index__ takes 15 times as long
        return value
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        return None
    try:
        return operator.index(value)
    except TypeError:  # an array of several numbers has __index__ too
        return None


def parse_number(text: str, kind: type[Number]) -> Number:
    """Parse an `int` or a `float`, or raise a `ValueError`; digits are ASCII, as in a board."""
    if not text.isascii() or "_" in text:  # Python itself accepts the digits of any script
        raise ValueError(f"{short(text)} is not a number in the digits 0 to 9")
    return kind(text)


def checked_threads(threads: object) -> int:
    """The number of threads as an int (None: one per core), or a `ValueError`."""
    count = (os.cpu_count() or 1) if threads is None else whole(threads) or 0
    if not 1 <= count <= 1024:
        raise ValueError(f"threads are a whole number from 1 to 1024, not {short(threads)}")
    return count


FACTORS = {"": 1, "k": 1000, "m": 1_000_000}


def counted(text: str, what: str = "games", low: int = 1, high: int = 10**12) -> int:
    """Parse a count such as 5000, 200k or 1.5M, or raise a `ValueError`."""
    found = re.fullmatch(r"([0-9]{1,20}\.?[0-9]{0,20})([kKmM]?)", text.strip())
    value = Decimal(found[1]) * FACTORS[found[2].lower()] if found else None
    if value is None or value != int(value):
        raise ValueError(f"a number of {what} is written like 5000, 200k or 1M, not {text[:40]!r}")
    if not low <= value <= high:
        raise ValueError(f"the number of {what} is from {low:,} to {high:,}, not {text[:40]}")
    return int(value)


def where(cell: int, cols: int) -> str:
    """The row and column of a cell, counted from 1."""
    return f"row {cell // cols + 1}, column {cell % cols + 1}"


def check_shape(rows: object, cols: object) -> tuple[int, int]:
    """Rows and columns as ints, or a `ValueError` that says which sizes are allowed."""
    r, c = whole(rows), whole(cols)
    if r is None or c is None or (r, c) not in SHAPES:
        asked = f"{r}x{c}" if r is not None and c is not None else f"{short(rows)} by {short(cols)}"
        raise ValueError(
            f"a board has 2 to 6 rows, 2 to 6 columns and at most 16 cells, not {asked}"
        )
    return r, c


def parse_shape(text: str) -> tuple[int, int]:
    """Parse a board size such as `4x3` into rows and columns."""
    size = text if isinstance(text, str) else ""
    match = re.fullmatch(r"\s*([0-9]{1,4})\s*[xX×]\s*([0-9]{1,4})\s*", size)
    if match is None:
        raise ValueError(f"a board size is written ROWSxCOLS, such as 4x4, not {short(text)}")
    return check_shape(int(match[1]), int(match[2]))


def parse_cells(source: Source, size: Size = None) -> Cells:
    """Parse the cells of a board in any form that `lab2048.game.Board.parse` accepts."""
    if isinstance(size, tuple | list) and len(size) == 2:
        shape: tuple[int, int] | None = check_shape(*size)
    else:
        shape = None if size is None else parse_shape(size)
    if not isinstance(source, str):
        ranks, rows, cols = _from_tiles(source)
    elif source.lstrip().startswith("["):
        ranks, rows, cols = _from_json(source)
    elif re.fullmatch(r"\s*[0-9a-hA-H]{3,}\s*", source):
        ranks, rows, cols = _from_digits(source.strip(), shape)
    else:
        ranks, rows, cols = _from_text(source)
    if shape is not None and shape != (rows, cols):
        raise ValueError(f"the board is {rows}x{cols}, not {shape[0]}x{shape[1]}")
    return ranks, rows, cols


def _from_text(text: str) -> Cells:
    """Parse rows of tiles, separated by `/`, `;` or line breaks; cells by spaces or commas."""
    lines = re.split(r"\s*[/;\n]\s*", text.strip())
    rows = [line.replace(",", " ").split() for line in lines]
    if not any(rows):
        raise ValueError(f"the board is empty text; write rows of tiles, such as {_EXAMPLE}")
    if not re.search(r"[0-9.]", text):
        raise ValueError(f"{short(text)} is not a board; write rows of tiles, such as {_EXAMPLE}")
    return _from_rows([[_number(cell) for cell in row] for row in rows], rows)


def _number(text: str) -> int | None:
    """The number written in a cell (`.` is 0), or None if it is not a number."""
    if text == ".":
        return 0
    return int(text) if re.fullmatch(r"[0-9]{1,7}", text) else None


def _from_json(text: str) -> Cells:
    """Parse the JSON text of a nested list of tiles."""
    try:
        source = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError(
            f"{short(text)} is not a nested list; write it like [[2, 4], [0, 8]]"
        ) from None
    return _from_tiles(source)


def _from_tiles(source: object) -> Cells:
    """Convert rows of tiles that are given as numbers."""
    try:
        rows = [list(row) for row in source]  # type: ignore[attr-defined]
    except TypeError:
        raise ValueError(
            f"{short(source)} is not a board; write it like {_EXAMPLE} or [[2, 4], [0, 8]]"
        ) from None
    return _from_rows([[whole(tile) for tile in row] for row in rows], rows)


def _from_rows(tiles: list[list[int | None]], written: Sequence[Sequence[object]]) -> Cells:
    """Convert rows of tiles to ranks; `written` holds them as given, for messages."""
    cols = len(tiles[0]) if tiles else 0
    for number, row in enumerate(tiles, 1):
        if len(row) != cols:
            raise ValueError(
                f"row {number} has {len(row)} cells and row 1 has {cols}; "
                "every row needs the same number"
            )
    check_shape(len(tiles), cols)
    ranks = []
    for cell, tile in enumerate(tile for row in tiles for tile in row):
        rank = _RANK_OF_TILE.get(-1 if tile is None else tile)
        if rank is None:
            given = written[cell // cols][cell % cols]
            plain = isinstance(given, str) and given.isprintable() and len(given) <= 20
            raise ValueError(
                f"{where(cell, cols)}: {given if plain else short(given)} is not a tile; {_TILES}"
            )
        ranks.append(rank)
    return tuple(ranks), len(tiles), cols


def _from_digits(digits: str, shape: tuple[int, int] | None) -> Cells:
    """Parse one rank digit per cell; the board is square unless a shape is given."""
    side = math.isqrt(len(digits))
    rows, cols = shape or (side, side)
    if len(digits) != rows * cols:
        wanted = (
            f"a {rows}x{cols} board has {rows * cols} of them"
            if shape
            else "a square board has 4, 9 or 16 of them; any other needs its size, RxC"
        )
        raise ValueError(f"{short(digits)} has {len(digits)} ranks; {wanted}")
    rows, cols = check_shape(rows, cols)
    return tuple(DIGITS.index(digit) for digit in digits.lower()), rows, cols
