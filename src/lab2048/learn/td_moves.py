"""The moves of temporal-difference learning: the best one by a rule, and random exploration.

Also what a state contributes to the target of the one before. `td_kernels` has the learning rules.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import types

from lab2048.engine.arrays import Words
from lab2048.engine.jit import U, fragment, kernel
from lab2048.engine.packed import (
    CHOICES,
    bounded,
    count,
    empty_cells,
    legal,
    lowest_cell,
    mix,
    nth_move,
    transpose,
)
from lab2048.engine.slides import lines, slide_lines
from lab2048.game import Rules
from lab2048.learn.ntuple import WEIGHTS, NetworkKernels, Weights
from lab2048.players.search_step import SPAWNING

UNIT = 2.0**-53


class Lesson(NamedTuple):
    """The parameters of a learning rule."""

    step: float
    """The learning rate, divided by the number of weights added up for a value."""
    initial: float
    """The initial value of every board."""
    gamma: float
    epsilon: float
    """The probability of a random move."""


class Lines(NamedTuple):
    """The slide tables of a board: rows (across) and columns (down)."""

    across: Words
    down: Words


def lines_of(rules: Rules) -> Lines:
    """The slide tables of a board of these rules."""
    return Lines(lines(rules.cols), lines(rules.rows))


_NONE = np.empty(0, np.uint64)
LESSON = numba.typeof(Lesson(0.0, 0.0, 0.0, 0.0))
LINES = numba.typeof(Lines(_NONE, _NONE))
WORTH_OF = types.float64(
    types.uint64, types.uint64, types.int64, types.uint64, SPAWNING, LESSON, WEIGHTS
)

MakeMove = Callable[[U, int, Any], tuple[U, U]]
AfterValue = Callable[[U, Any, Any, Weights], float]
WorthOf = Callable[[U, U, int, U, Any, Any, Weights], float]
Choose = Callable[[U, Any, Any, Any, Weights], tuple[int, U, U, float]]
Explore = Callable[[U, U, int, float], int]


@fragment
def four_moves(board: U, by: Any, rows: int, cols: int) -> tuple[U, U, U, U, U, U]:
    """The afterstates up, right, down, left, 0 where nothing moves; the rewards down and across.

    (Up has the same reward as down, and left as right.)
    """
    turned = transpose(board, rows, cols)
    left, right, across = slide_lines(board, by.across, rows, cols)
    up, low, down = slide_lines(turned, by.down, cols, rows)
    return (
        transpose(up, cols, rows) if up != turned else U(0),
        right if right != board else U(0),
        transpose(low, cols, rows) if low != turned else U(0),
        left if left != board else U(0),
        down,
        across,
    )


def make_move_kernel(rows: int, cols: int) -> MakeMove:
    """The kernel that makes a move."""

    @kernel(types.Tuple((types.uint64, types.uint64))(types.uint64, types.int64, LINES), lean=True)
    def make_move(board: U, move: int, by: Any) -> tuple[U, U]:
        """The afterstate of a move, and the reward."""
        up, right, low, left, down, across = four_moves(board, by, rows, cols)
        if move & 1:
            return right if move == 1 else left, across
        return up if move == 0 else low, down

    return make_move


def choose_kernel(net: NetworkKernels, rule: str, worth_of: WorthOf) -> Choose:
    """The kernel that finds the best move."""
    rows, cols, value = net.network.rows, net.network.cols, net.value

    @kernel(
        types.Tuple((types.int64, types.uint64, types.uint64, types.float64))(
            types.uint64, LINES, SPAWNING, LESSON, WEIGHTS
        ),
        lean=True,
    )
    def choose(
        board: U, by: Any, spawns: Any, lesson: Any, weights: Weights
    ) -> tuple[int, U, U, float]:
        """The best move, its afterstate, its reward, and the state's part of the previous target.

        At the end of a game they are -1, 0, 0 and 0.
        """
        up, right, low, left, down, across = four_moves(board, by, rows, cols)
        best, chosen, after, gain = -np.inf, -1, U(0), U(0)
        if up:
            best = worth_of(board, up, 0, down, spawns, lesson, weights)
            chosen, after, gain = 0, up, down
        if right:
            worth = worth_of(board, right, 1, across, spawns, lesson, weights)
            if worth > best:
                best, chosen, after, gain = worth, 1, right, across
        if low:
            worth = worth_of(board, low, 2, down, spawns, lesson, weights)
            if worth > best:
                best, chosen, after, gain = worth, 2, low, down
        if left:
            worth = worth_of(board, left, 3, across, spawns, lesson, weights)
            if worth > best:
                best, chosen, after, gain = worth, 3, left, across
        if chosen < 0:
            return -1, U(0), U(0), 0.0
        if rule == "q":
            best *= lesson.gamma
        elif rule == "state":
            best = lesson.gamma * (lesson.initial + value(board, 0, weights))
        return chosen, after, gain, best

    return choose


def worth_kernel(net: NetworkKernels, rule: str) -> WorthOf:
    """The kernel that values a move by a rule, with its reward (which Q includes)."""
    return worth_of_move_kernel(net) if rule == "q" else worth_of_after_kernel(net, rule)


def worth_of_after_kernel(net: NetworkKernels, rule: str) -> WorthOf:
    """The kernel of the rules `td` and `state`: the reward plus the discounted afterstate value."""
    after_value = after_value_kernel(net, rule, SPAWNING, LESSON)

    @kernel(WORTH_OF, lean=True)
    def worth_of(
        board: U, after: U, move: int, gain: U, spawns: Any, lesson: Any, weights: Weights
    ) -> float:
        found = after_value(after, spawns, lesson, weights)
        return float(np.float64(gain) + lesson.gamma * found)

    return worth_of


def worth_of_move_kernel(net: NetworkKernels) -> WorthOf:
    """The kernel of the rule `q`: the move's Q, which includes the reward."""
    value = net.value

    @kernel(WORTH_OF, lean=True)
    def worth_of(
        board: U, after: U, move: int, gain: U, spawns: Any, lesson: Any, weights: Weights
    ) -> float:
        return float(lesson.initial + value(board, move, weights))

    return worth_of


def after_value_kernel(net: NetworkKernels, rule: str, spawns: Any, lesson: Any) -> AfterValue:
    """The kernel that values afterstates by a network of the rule `td` or `state`.

    `spawns` and `lesson` are the Numba types of its arguments.
    """
    if rule == "state":
        return mean_state_kernel(net, spawns, lesson)
    value = net.value

    @kernel(types.float64(types.uint64, spawns, lesson, WEIGHTS), lean=True)
    def after_value(after: U, spawns: Any, lesson: Any, weights: Weights) -> float:
        """The value of an afterstate."""
        return float(lesson.initial + value(after, 0, weights))

    return after_value


def mean_state_kernel(net: NetworkKernels, spawns: Any, lesson: Any) -> AfterValue:
    """The kernel that averages the values of the states that spawns lead to."""
    rows, cols, value = net.network.rows, net.network.cols, net.value

    @kernel(types.float64(types.uint64, spawns, lesson, WEIGHTS), lean=True)
    def mean_state(after: U, spawns: Any, lesson: Any, weights: Weights) -> float:
        """The mean value of the states that spawns lead to; without a legal move it is 0."""
        total = 0.0
        cells = empty_cells(after, rows, cols)
        n = np.float64(count(cells))
        while cells:
            tile = lowest_cell(cells)
            cells ^= tile
            for rank in range(1, 3):
                state = after | (tile * U(rank))
                if legal(state, rows, cols):
                    weight = spawns.two if rank == 1 else spawns.four
                    total += weight * (lesson.initial + value(state, 0, weights))
        return total / n

    return mean_state


def explore_kernel(rows: int, cols: int) -> Explore:
    """The kernel that makes a random move now and then."""

    @kernel(types.int64(types.uint64, types.uint64, types.int64, types.float64), lean=True)
    def explore(board: U, word: U, best: int, epsilon: float) -> int:
        """The best move, or with probability `epsilon` a random legal one."""
        if np.float64(word >> U(11)) * UNIT >= epsilon:
            return best
        mask = legal(board, rows, cols)
        k, _ = bounded(mix(word), CHOICES[mask])
        return int(nth_move(mask, k))

    return explore
