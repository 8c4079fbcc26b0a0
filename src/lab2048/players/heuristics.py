"""Heuristic values of positions: sums over their rows and columns, looked up in tables.

A heuristic values an afterstate, the board after a move and before the spawn:

    H(x) = sum over rows of T_r(row) + sum over columns of T_c(column)

or, for `snake`, the larger of the two sums. Every T is a table of all lines of its length; rows, or
columns, with the same weights share one. A `Line` has the weights of a line's cells and shape. A
search adds the rewards on the way to a heuristic that is `scored`; the others already count the
tiles that a merge makes. A dead end is worth `dead`.

Any other function of a board can be a heuristic too: see `register_heuristic`.
"""

from __future__ import annotations

import inspect
import re
import zlib
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from lab2048.engine.arrays import Floats, Pairs, Singles, Slides
from lab2048.engine.closures import KernelError
from lab2048.engine.jit import U, fragment, kernel
from lab2048.engine.packed import rank_at
from lab2048.engine.slides import pairs, reverse_line, table
from lab2048.game import Rules

Evaluate = Callable[[U, U, Any, int, int], float]
"""The value of an afterstate, from the board, its transpose, an `Evaluator`, rows and columns."""

FREE, MERGE, UNEVEN, UNEVEN_POWER, SUM, SUM_POWER, ROUGH, BASE = range(8)
"""Indices of the weights of a line's shape; see `line_value`."""


class Line(NamedTuple):
    """The weights of a line: of the tile and of the rank in each cell, and of its shape."""

    tiles: tuple[float, ...]
    ranks: tuple[float, ...]
    shape: tuple[float, ...] = (0.0,) * 8


class Heuristic(NamedTuple):
    """How a position is valued, on a board of any size."""

    about: str
    rows: Callable[[Rules], list[Line]]
    cols: Callable[[Rules], list[Line]]
    scored: bool = False
    """Whether a search adds the rewards of the moves on the way."""
    larger: bool = False
    """Whether the larger of the two sums counts, instead of both."""
    dead: float = 0.0
    """The value of a state without a legal move."""
    symmetric: bool = True
    """Whether all images of a board have the same value."""
    evaluate: Evaluate | None = None
    """A registered function that values boards, in place of lines."""
    fingerprint: str = ""
    """Of the code of that function."""


class Evaluator(NamedTuple):
    """A heuristic for one board, and the tables of its moves: the argument of a search kernel."""

    across: Pairs
    down: Pairs
    across_rewards: Slides
    down_rewards: Slides
    table: Singles
    row_step: U
    """The offset from one row's table to the next; 0 if all rows share one."""
    col_start: U
    """The offset of the first column's table."""
    col_step: U
    larger: bool
    scored: bool
    dead: float


# -- lines ---------------------------------------------------------------------------------------


@kernel("float64(uint64, int64, float64[::1], float64[::1], float64[::1])")
def line_value(line: U, length: int, tiles: Floats, ranks: Floats, shape: Floats) -> float:
    """The value of a line.

    Its cells: weight times tile, and weight times rank. Its shape: free cells; pairs of equal tiles
    with only free cells between them, which can merge; how far it is from monotonically rising or
    falling, whichever is less, by powers of ranks; the sum of powers of ranks; how much
    neighbouring tiles differ.
    """
    value = shape[BASE]
    rises = falls = 0.0
    before = last = U(0)  # the cell before this one, and the last tile
    for cell in range(length):
        rank = rank_at(line, cell)
        if rank == U(0):
            value += shape[FREE]
        else:
            value += tiles[cell] * np.float64(U(1) << rank) + ranks[cell] * np.float64(rank)
            value -= shape[SUM] * np.float64(rank) ** shape[SUM_POWER]
            if rank == last:
                value += shape[MERGE]
            elif before != U(0):
                value -= shape[ROUGH] * abs(np.float64(rank) - np.float64(before))
            last = U(0) if rank == last else rank
        if cell > 0:
            step = np.float64(rank) ** shape[UNEVEN_POWER]
            step -= np.float64(before) ** shape[UNEVEN_POWER]
            rises += max(step, 0.0)
            falls += max(-step, 0.0)
        before = rank
    return float(value - shape[UNEVEN] * min(rises, falls))


@kernel("void(float32[::1], int64, float64[::1], float64[::1], float64[::1])")
def fill_lines(out: Singles, length: int, tiles: Floats, ranks: Floats, shape: Floats) -> None:
    """Write the values of all lines of a length.

    If a line and its reverse have the same value, they are rounded to the same number.
    """
    even = True
    for cell in range(length):
        back = length - 1 - cell
        even &= tiles[cell] == tiles[back] and ranks[cell] == ranks[back]
    for line in range(1 << (4 * length)):
        chosen = min(U(line), reverse_line(U(line), length)) if even else U(line)
        out[line] = np.float32(line_value(chosen, length, tiles, ranks, shape))


# -- the heuristics ------------------------------------------------------------------------------


def grid_rows(grid: Floats) -> list[Line]:
    """Lines that weight their tiles by a grid."""
    return [Line(tuple(row), (0.0,) * len(row)) for row in grid.tolist()]


def nothing(length: int, lines: int) -> list[Line]:
    """Lines that count nothing."""
    return [Line((0.0,) * length, (0.0,) * length)] * lines


def slope(rules: Rules) -> Floats:
    """Zhou's matrix alpha on a board of any size: 1 in the last cell, 1 more per step from it."""
    steps = np.add.outer(np.arange(rules.rows)[::-1], np.arange(rules.cols)[::-1])
    return np.asarray(steps + 1.0, np.float64)


def snake(rules: Rules, vertical: bool = False) -> Floats:
    """The powers of 2, largest first, along a path that winds through the rows, or columns."""
    rows, cols = (rules.cols, rules.rows) if vertical else (rules.rows, rules.cols)
    grid: Floats = 2.0 ** np.arange(rules.cells, dtype=np.float64)[::-1].reshape(rows, cols)
    grid[1::2] = grid[1::2, ::-1]
    return grid


def snake_order(rules: Rules) -> list[int]:
    """The cells along the snake, from the heaviest."""
    return [int(cell) for cell in np.argsort(-snake(rules).ravel(), kind="stable")]


def shaped(length: int, lines: int, shape: dict[int, float], edge: float = 0.0) -> list[Line]:
    """Lines that count their shape, with the same weights, and the ranks on the board's edge."""
    weights = tuple(shape.get(place, 0.0) for place in range(8))
    none = (0.0,) * length
    outer = Line(none, (edge,) * length, weights)
    return [outer if line in (0, lines - 1) else Line(none, none, weights) for line in range(lines)]


SHAPE = {FREE: 2.7, UNEVEN: 1.0, UNEVEN_POWER: 1.0, ROUGH: 0.1}
SHAPE_EDGE = 0.3
SHAPE_DEAD = -100.0
# the best of six sets tried, each in 12 games with 3 ms per move; see benchmarks/tune_rows.py
ROWS = {
    FREE: 305.0,
    MERGE: 933.0,
    UNEVEN: 53.6,
    UNEVEN_POWER: 3.75,
    SUM: 14.4,
    SUM_POWER: 3.58,
}
ROWS_DEAD = -1_360_000.0


def rows_heuristic(shape: dict[int, float], dead: float) -> Heuristic:
    """The heuristic that counts the shape of all rows and columns with these weights."""
    return Heuristic(
        "free cells, possible merges, monotonicity and ranks of every row and column",
        lambda rules: shaped(rules.cols, rules.rows, shape),
        lambda rules: shaped(rules.rows, rules.cols, shape),
        dead=dead,
    )


HEURISTICS = {
    "rows": rows_heuristic(ROWS, ROWS_DEAD),
    "shape": Heuristic(
        "free cells, monotonicity, smoothness, and large tiles on the edge",
        lambda rules: shaped(rules.cols, rules.rows, SHAPE, SHAPE_EDGE),
        lambda rules: shaped(rules.rows, rules.cols, SHAPE, SHAPE_EDGE),
        dead=SHAPE_DEAD,
    ),
    "snake": Heuristic(
        "powers of 2 along a snake times the tiles (Zhou's beta), by rows or by columns",
        lambda rules: grid_rows(snake(rules)),
        lambda rules: grid_rows(snake(rules, vertical=True)),
        larger=True,
        symmetric=False,
    ),
    "alpha": Heuristic(
        "weights that fall from the first corner to the last times the tiles (Zhou's alpha)",
        lambda rules: grid_rows(slope(rules)),
        lambda rules: nothing(rules.rows, rules.cols),
        symmetric=False,
    ),
    "zero": Heuristic(
        "nothing: only the rewards on the way count",
        lambda rules: nothing(rules.cols, rules.rows),
        lambda rules: nothing(rules.rows, rules.cols),
        scored=True,
    ),
}
DEFAULT = "rows"


def evaluate_of(name: str) -> Evaluate:
    """The function that values boards by a heuristic, in kernels."""
    return HEURISTICS[name].evaluate or line_sums


def evaluator(name: str, rules: Rules) -> Evaluator:
    """The tables of a heuristic on a board."""
    return _evaluator(HEURISTICS[name], rules.rows, rules.cols)


@lru_cache(maxsize=8)
def _evaluator(heuristic: Heuristic, rows: int, cols: int) -> Evaluator:
    """The same, for any p4; tables of lines of six cells take 67 MB each, so few are kept."""
    return build_evaluator(heuristic, Rules(rows, cols))


def build_evaluator(heuristic: Heuristic, rules: Rules) -> Evaluator:
    """Build the tables of a heuristic on a board; rows that all have the same weights share one."""
    rows, row_step = _tables(heuristic.rows(rules), rules.cols)
    cols, col_step = _tables(heuristic.cols(rules), rules.rows)
    return Evaluator(
        pairs(rules.cols),
        pairs(rules.rows),
        table(rules.cols),
        table(rules.rows),
        np.concatenate([rows, cols]),
        U(row_step),
        U(len(rows)),
        U(col_step),
        heuristic.larger,
        heuristic.scored,
        heuristic.dead,
    )


def _tables(lines: list[Line], length: int) -> tuple[Singles, int]:
    """The tables of all rows, or columns, and the offset from one to the next."""
    size = 16**length
    if not lines:
        return np.empty(0, np.float32), 0
    if len(set(lines)) == 1:
        lines, step = lines[:1], 0
    else:
        step = size
    out = np.empty(size * len(lines), np.float32)
    for number, line in enumerate(lines):
        weights = [np.array(part, np.float64) for part in line]
        fill_lines(out[number * size : (number + 1) * size], length, *weights)
    return out, step


# -- registered heuristics -----------------------------------------------------------------------

BoardValue = Callable[[U, int, int], float]
"""The value of a packed board, from the board, its rows and its columns."""


def register_heuristic(
    name: str,
    value: BoardValue,
    *,
    about: str = "",
    scored: bool = False,
    dead: float = 0.0,
    symmetric: bool = False,
) -> None:
    """Add a heuristic of your own: every search then takes it, as in `expectimax:heuristic=NAME`.

    `value` gets an afterstate as a packed board (`lab2048.engine.packed` says how, and has kernels
    to take it apart), its rows and its columns, and returns a number. Numba compiles it, so it must
    use only what Numba supports of Python, and depend on nothing but its arguments.

    `scored` says whether a search adds the rewards of its moves to it, `dead` is the value of a
    state without a legal move, `symmetric` says whether all images of a board have the same value.
    A function that is defined again, as in a notebook, replaces itself; no other heuristic may have
    its name. A heuristic is registered for this process only, and compiled again in each.

    >>> from lab2048 import player, register_heuristic
    >>> from lab2048.engine.packed import rank_at
    >>> def last_corner(board, rows, cols):
    ...     return 100.0 * rank_at(board, rows * cols - 1)
    >>> register_heuristic("last-corner", last_corner, scored=True)
    >>> player("minimax:depth=1,heuristic=last-corner", "2x2").values("4 4 / . .")
    {<Direction.RIGHT: 1>: 8.0, <Direction.DOWN: 2>: 200.0, <Direction.LEFT: 3>: 8.0}
    >>> del HEURISTICS["last-corner"]  # so that it can be forgotten
    """
    function = getattr(value, "py_func", value)  # it may have been compiled already
    if not re.fullmatch(r"[a-z][a-z0-9_-]*", name):
        raise ValueError(f"a heuristic's name is of small letters and digits, not {name!r}")
    _check_shape(function)
    fingerprint = _fingerprint(function)
    before = HEURISTICS.get(name)
    if before is not None and before.fingerprint.partition(" ")[0] != _where(function):
        raise ValueError(f"there is a heuristic {name} already")
    try:
        compiled = kernel("float64(uint64, int64, int64)", keep=False)(function)
    except KernelError as error:
        raise KernelError(f"the heuristic {name}: {error}") from error
    HEURISTICS[name] = Heuristic(
        about or (inspect.getdoc(function) or "registered").splitlines()[0],
        lambda rules: [],
        lambda rules: [],
        scored,
        dead=float(dead),
        symmetric=symmetric,
        evaluate=_evaluate_by(compiled),
        fingerprint=fingerprint,
    )


def _check_shape(function: Any) -> None:
    """Raise a `TypeError` unless it is a function of a board, its rows and its columns."""
    try:
        inspect.signature(function).bind(0, 0, 0)
        fits = inspect.isfunction(function)
    except (TypeError, ValueError):
        fits = False
    if not fits:
        raise TypeError(
            "a heuristic is a function of a packed board, its rows and its columns, "
            f"as in def value(board, rows, cols); not {function!r}"
        )


def _where(function: Callable[..., Any]) -> str:
    """Where a function is defined."""
    return f"{function.__module__}.{function.__qualname__}".replace(" ", "_")


def _fingerprint(function: Callable[..., Any]) -> str:
    """Where a function is defined, and a hash of its code and constants; not of what it calls."""
    code = function.__code__
    used = [cell.cell_contents for cell in function.__closure__ or ()]
    used += [function.__globals__.get(name) for name in code.co_names]
    constants = [each for each in used if isinstance(each, bool | int | float | np.generic | tuple)]
    text = f"{code.co_code!r} {code.co_consts!r} {code.co_names!r} {constants!r}"
    return f"{_where(function)} {zlib.crc32(text.encode()):08x}"


def _evaluate_by(value: BoardValue) -> Evaluate:
    """Wrap a function of a board as one that kernels call."""

    @fragment
    def evaluate(board: U, turned: U, by: Any, rows: int, cols: int) -> float:
        return float(value(board, rows, cols))

    return evaluate


# -- for kernels ---------------------------------------------------------------------------------


@fragment
def line_sums(board: U, turned: U, by: Any, rows: int, cols: int) -> float:
    """The value of an afterstate, by an `Evaluator`; `turned` is the board transposed."""
    row, column = (U(1) << U(4 * cols)) - U(1), (U(1) << U(4 * rows)) - U(1)
    across = down = 0.0
    for r in range(rows):
        line = (board >> U(4 * cols * r)) & row
        across += np.float64(by.table[U(r) * by.row_step + line])
    for c in range(cols):
        line = (turned >> U(4 * rows * c)) & column
        down += np.float64(by.table[by.col_start + U(c) * by.col_step + line])
    return max(across, down) if by.larger else across + down
