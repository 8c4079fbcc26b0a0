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
    bounded,
    count,
    legal,
    occupied,
    pairs,
    reward_rows,
    slide_both,
    transpose,
)
from lab2048.game import Rules
from lab2048.jit import Kernels, U, kernel
from lab2048.lanes import CHOICE, CHOICES, Counts
from lab2048.search.heuristics import Evaluator, Floats, evaluate, snake_order

ROWS = COLS = 0
"""The board that a kernel is compiled for."""


class Spawning(NamedTuple):
    """How tiles spawn, and how much of it a search looks at."""

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


def spawning(rules: Rules, cutoff: float = 0.0, cells: int = 0) -> Spawning:
    """How tiles spawn by the rules."""
    threshold = np.array(chance.four_threshold(rules.p4), np.uint64)
    order = np.array(snake_order(rules), np.int64)
    return Spawning(1 - rules.p4, rules.p4, threshold, float(cutoff), cells, order)


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
    kernels = Kernels(rules.name, ROWS=rows, COLS=cols)
    kernels.add(make_moves, types.void(types.uint64, by, words, floats))
    kernels.add(open_cells, types.uint64(types.uint64, spawns))
    kernels.add(worth, types.float64(types.uint64, by))
    return Steps(kernels, by, spawns)


# -- from values to moves ------------------------------------------------------------------------


@kernel("int64(float64[::1], float64)")
def best_of(values: Floats, tie: float) -> int:
    """The mask of the moves with the best value, or nearly (`Player.tie`); 0 if none is legal."""
    best = -np.inf
    for direction in range(4):
        if not np.isnan(values[direction]):
            best = max(best, values[direction])
    slack = tie * max(abs(best), 1.0) if best > -np.inf else 0.0
    mask = 0
    for direction in range(4):
        if values[direction] >= best - slack:
            mask |= 1 << direction
    return mask


@kernel("void(float64[:, ::1], uint64[::1], boolean, float64, int64[::1])")
def pick_moves(values: Floats, words: Words, split: bool, tie: float, moves: Counts) -> None:
    """Write a best move of each row: the first, or the one that a word draws; -1 if none is."""
    for i in range(len(values)):
        mask = best_of(values[i], tie)
        left = np.int64(0)
        if split and mask:
            left = np.int64(bounded(words[i], CHOICES[mask])[0])
        moves[i] = -1 if mask == 0 else np.int64((CHOICE[mask] >> U(8 * left)) & U(3))


def pick(values: Floats, words: Words, split: bool, tie: float) -> Counts:
    """A best move of each row of values: the first, or the one that a word draws."""
    moves = np.empty(len(values), np.int64)
    pick_moves(values, words, split, tie, moves)
    return moves


@kernel("void(float64[:, ::1], boolean, float64, float64[:, ::1])")
def share_out(values: Floats, split: bool, tie: float, out: Floats) -> None:
    """Write the chance of each move if a best one is made."""
    for i in range(len(values)):
        mask = best_of(values[i], tie)
        share = 1.0 / np.float64(CHOICES[mask]) if split and mask else 1.0
        for direction in range(4):
            chosen = (mask >> direction) & 1
            out[i, direction] = share if chosen else 0.0
            if chosen and not split:
                mask = 0


def shares(values: Floats, split: bool, tie: float) -> Floats:
    """The chance of each move if a best one is made: the first, or each alike."""
    out = np.empty(values.shape)
    share_out(values, split, tie, out)
    return out


@kernel("void(uint64[::1], uint64[::1], int64, int64)")
def legal_masks(boards: Words, masks: Words, rows: int, cols: int) -> None:
    """Write the legal moves of each board: bit d for direction d."""
    for i in range(len(boards)):
        masks[i] = legal(boards[i], rows, cols)
