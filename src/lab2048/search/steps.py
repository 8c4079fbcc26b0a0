"""One step of a search: all moves of a state, all spawns of an afterstate. Pieces for kernels."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import types
from numpy.typing import NDArray

from lab2048 import chance
from lab2048.board import (
    OVERFLOW,
    Words,
    all_cells,
    count,
    occupied,
    pairs,
    reward_rows,
    slide_both,
    transpose,
)
from lab2048.game import Rules
from lab2048.jit import Kernels, U
from lab2048.search.heuristics import Evaluator, Floats, evaluate, snake_order
from lab2048.time_limit import Flag, stop_flag

ROWS = COLS = 0
"""The board that a kernel is compiled for."""


class Spawning(NamedTuple):
    """How tiles spawn, how much of it a search looks at, and whether it goes on."""

    two: float
    """The chance of a 2, and of a 4."""
    four: float
    threshold: Words
    """`chance.four_threshold`, where spawns are drawn."""
    cutoff: float
    """What is less likely than this is not looked into; 0 if all is."""
    cells: int
    """At how many empty cells a search looks; 0 if at all of them."""
    order: NDArray[np.int64]
    """All cells, in the order in which they are looked at."""
    stop: Flag
    """`time_limit.stop_flag`: 1 once the search is to end."""


def spawning(rules: Rules, cutoff: float = 0.0, cells: int = 0) -> Spawning:
    """How tiles spawn by the rules."""
    threshold = np.array(chance.four_threshold(rules.p4), np.uint64)
    order = np.array(snake_order(rules), np.int64)
    return Spawning(1 - rules.p4, rules.p4, threshold, float(cutoff), cells, order, stop_flag())


def make_moves(state: U, by: Any, afters: Words, gains: Floats) -> None:
    """Write the afterstate of each direction, 0 if it is illegal, and what the move gains.

    That is its reward if the heuristic is `scored`, otherwise nothing.
    """
    turned = transpose(state, ROWS, COLS)
    left, right = slide_both(state, by.across, ROWS, COLS)
    up, down = slide_both(turned, by.down, COLS, ROWS)
    afters[0] = transpose(up, COLS, ROWS) if up != turned else U(0)
    afters[1] = right if right != state else U(0)
    afters[2] = transpose(down, COLS, ROWS) if down != turned else U(0)
    afters[3] = left if left != state else U(0)
    across = vertical = 0.0
    if by.scored:
        across = np.float64(reward_rows(state, by.across_rewards, ROWS, COLS) & ~U(OVERFLOW))
        vertical = np.float64(reward_rows(turned, by.down_rewards, COLS, ROWS) & ~U(OVERFLOW))
    gains[0] = gains[2] = vertical
    gains[1] = gains[3] = across


def open_cells(after: U, spawns: Any) -> U:
    """The mask of the empty cells that are looked at."""
    empty = ~occupied(after) & all_cells(ROWS, COLS)
    if spawns.cells == 0 or count(empty) <= U(spawns.cells):
        return empty
    chosen = U(0)
    left = spawns.cells
    for place in range(ROWS * COLS):
        cell = U(1) << U(4 * spawns.order[place])
        if left > 0 and empty & cell:
            chosen |= cell
            left -= 1
    return chosen


def worth(after: U, by: Any) -> float:
    """The heuristic value of an afterstate."""
    return evaluate(after, transpose(after, ROWS, COLS), by, ROWS, COLS)


class Steps(NamedTuple):
    """The kernels above for one board, and the types of what searches are given."""

    kernels: Kernels
    by: Any
    spawns: Any


@cache
def steps(rows: int, cols: int) -> Steps:
    """Compile the kernels above for a board."""
    rules = Rules(rows, cols)
    none, lines = np.empty(0, np.uint32), np.empty(0, np.float32)
    by = numba.typeof(
        Evaluator(pairs(cols), pairs(rows), none, none, lines, U(0), U(0), U(0), False, False, 0.0)
    )
    spawns = numba.typeof(spawning(rules))
    words, floats = types.uint64[::1], types.float64[::1]
    kernels = Kernels(rules.name, lean=True, ROWS=rows, COLS=cols)
    kernels.add(make_moves, types.void(types.uint64, by, words, floats))
    kernels.add(open_cells, types.uint64(types.uint64, spawns))
    kernels.add(worth, types.float64(types.uint64, by))
    return Steps(kernels, by, spawns)
