"""One step of a search: the moves of a state, the spawns of an afterstate, and its value.

Searches are built from these kernels, whatever values the boards: `steps` makes them for a
heuristic, and `lab2048.learn.ntuple_player` makes others for a network.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import types

from lab2048.engine.array_types import FLOATS, WORDS
from lab2048.engine.arrays import Counts, Floats, Words
from lab2048.engine.jit import U, kernel
from lab2048.engine.packed import count, empty_cells, transpose
from lab2048.engine.slides import OVERFLOW, pairs, reward_rows, slide_both
from lab2048.engine.spawns import four_threshold
from lab2048.game import Rules
from lab2048.players.heuristics import Evaluate, Evaluator, line_sums, snake_order
from lab2048.players.time_limit import Flag, stop_flag

MakeMoves = Callable[[U, Any, Words, Floats], None]
OpenCells = Callable[[U, Any], U]
Worth = Callable[[U, Any], float]


class Spawning(NamedTuple):
    """How tiles spawn, which spawns a search considers, and whether it goes on."""

    two: float
    """The probability of a 2; `four` is that of a 4."""
    four: float
    threshold: Words
    """`spawns.four_threshold`, for searches that draw spawns."""
    cutoff: float
    """Prune what is less likely than this; 0 disables pruning."""
    cells: int
    """The number of empty cells that a search considers; 0 for all of them."""
    order: Counts
    """All cells, in the order in which they are considered."""
    stop: Flag
    """`time_limit.stop_flag`: 1 once the search is to end."""


def spawning(rules: Rules, cutoff: float = 0.0, cells: int = 0) -> Spawning:
    """The `Spawning` of a search on a board of these rules."""
    two, four, threshold = 1 - rules.p4, rules.p4, four_threshold(rules)
    order = np.array(snake_order(rules), np.int64)
    return Spawning(two, four, threshold, float(cutoff), cells, order, stop_flag())


SPAWNING = numba.typeof(spawning(Rules(2, 2)))
"""The Numba type of a `Spawning`."""


class Steps(NamedTuple):
    """The kernels that a search on one board is built from, and the type of its evaluator."""

    rows: int
    cols: int
    by: Any
    """The Numba type of what boards are valued by, such as an `Evaluator`."""
    make_moves: MakeMoves
    open_cells: OpenCells
    worth: Worth


def make_moves_kernel(rows: int, cols: int, by: Any) -> MakeMoves:
    """The kernel that makes all moves of a state."""

    @kernel(types.void(types.uint64, by, WORDS, FLOATS), lean=True)
    def make_moves(state: U, by: Any, afters: Words, gains: Floats) -> None:
        """Write the afterstate of each direction, 0 if it is illegal, and what the move gains.

        The gain is the reward if rewards count, and otherwise 0.
        """
        turned = transpose(state, rows, cols)
        left, right = slide_both(state, by.across, rows, cols)
        up, down = slide_both(turned, by.down, cols, rows)
        afters[0] = transpose(up, cols, rows) if up != turned else U(0)
        afters[1] = right if right != state else U(0)
        afters[2] = transpose(down, cols, rows) if down != turned else U(0)
        afters[3] = left if left != state else U(0)
        across = vertical = 0.0
        if by.scored:
            across = np.float64(reward_rows(state, by.across_rewards, rows, cols) & ~U(OVERFLOW))
            vertical = np.float64(reward_rows(turned, by.down_rewards, cols, rows) & ~U(OVERFLOW))
        gains[0] = gains[2] = vertical
        gains[1] = gains[3] = across

    return make_moves


@cache
def open_cells_kernel(rows: int, cols: int) -> OpenCells:
    """The kernel that finds the cells where a search lets tiles spawn."""

    @kernel(types.uint64(types.uint64, SPAWNING), lean=True)
    def open_cells(after: U, spawns: Any) -> U:
        """The mask of the empty cells that the search considers."""
        empty = empty_cells(after, rows, cols)
        if spawns.cells == 0 or count(empty) <= U(spawns.cells):
            return empty
        chosen = U(0)
        left = spawns.cells
        for place in range(rows * cols):
            cell = U(1) << U(4 * spawns.order[place])
            if left > 0 and empty & cell:
                chosen |= cell
                left -= 1
        return chosen

    return open_cells


def worth_kernel(rows: int, cols: int, by: Any, evaluate: Evaluate) -> Worth:
    """The kernel that values an afterstate."""

    @kernel(types.float64(types.uint64, by), lean=True)
    def worth(after: U, by: Any) -> float:
        """The heuristic value of an afterstate."""
        return evaluate(after, transpose(after, rows, cols), by, rows, cols)

    return worth


@cache
def steps(rows: int, cols: int, evaluate: Evaluate = line_sums) -> Steps:
    """The kernels for a board and a heuristic; `heuristics.evaluate_of` gives its `evaluate`."""
    by = evaluator_type(rows, cols)
    return Steps(
        rows,
        cols,
        by,
        make_moves_kernel(rows, cols, by),
        open_cells_kernel(rows, cols),
        worth_kernel(rows, cols, by, evaluate),
    )


def evaluator_type(rows: int, cols: int) -> Any:
    """The Numba type of an `Evaluator` on a board."""
    none, lines = np.empty(0, np.uint32), np.empty(0, np.float32)
    return numba.typeof(
        Evaluator(pairs(cols), pairs(rows), none, none, lines, U(0), U(0), U(0), False, False, 0.0)
    )
