"""Temporal-difference learning of n-tuple networks: the rules, and the loop that plays and learns.

With s_t the state before move t, r_t the reward of that move, x_t the afterstate it leads to, and
f the number of weights that a value is the sum of, a rule learns from each move of a game:

    td      V(x_t) goes to r_{t+1} + g V(x_{t+1})          x_{t+1}: the best of r + g V
    state   V(s_t) goes to r_t + g V(s_{t+1})              a move: the best mean of r + g V
    q       Q(s_t, a_t) goes to r_t + g max over a of Q(s_{t+1}, a)

g is a discount, usually 1, and what comes after the end of a game is 0. With the error e, the
target minus the value, each of the f weights takes a step of (rate / f) e. By temporal coherence
(`tc`), it takes |E| / A of the step, where E is the sum of the steps so far and A that of their
sizes (|E| / A is 1 at first): weights that are pulled to and fro change slowly.

Learning is *forward*, after each move, or *backward*, after the game and from its end, so that what
happened at the end is learnt from the whole way back. An optimistic start gives all boards a high
value, so that what was not tried looks good.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import types

from lab2048.engine.array_types import COUNT_ROWS, COUNTS, WORDS
from lab2048.engine.arrays import Counts, Floats, Words
from lab2048.engine.intrinsics import coherent_step
from lab2048.engine.jit import U, fragment, kernel
from lab2048.engine.packed import (
    CHOICES,
    GOLDEN,
    ON_IMAGE,
    PLAYER,
    bounded,
    count,
    empty_cells,
    flip,
    legal,
    lowest_cell,
    max_rank,
    mirror,
    mix,
    nth_move,
    spawn,
    start_board,
    transpose,
    word_after_start,
)
from lab2048.engine.slides import lines, slide_lines
from lab2048.game import Rules
from lab2048.learn.ntuple import (
    WEIGHTS,
    Network,
    NetworkKernels,
    Value,
    Weights,
    network_kernels,
)
from lab2048.players.search_step import SPAWNING

RULES = ("td", "state", "q")
LONGEST_GAME = 1 << 18
"""Moves of a game at most; with tiles up to 32768 there are hardly ever more."""

UNIT = 2.0**-53


class Lesson(NamedTuple):
    """The numbers in a rule."""

    step: float
    """The rate, divided by the number of weights that a value is the sum of."""
    initial: float
    """What every board is worth at first."""
    gamma: float
    epsilon: float
    """The chance of a random move."""


class Lines(NamedTuple):
    """How the lines of a board slide."""

    across: Words
    down: Words


def lines_of(rules: Rules) -> Lines:
    """How the lines of a board slide."""
    return Lines(lines(rules.cols), lines(rules.rows))


class Trail(NamedTuple):
    """A game as far as it was played: what was valued, which move was made, and its reward."""

    boards: Words
    moves: Counts
    gains: Floats


def new_trail() -> Trail:
    """Room for a game."""
    return Trail(
        np.empty(LONGEST_GAME, np.uint64),
        np.empty(LONGEST_GAME, np.int64),
        np.empty(LONGEST_GAME, np.float64),
    )


_NONE = np.empty(0, np.uint64)
LESSON = numba.typeof(Lesson(0.0, 0.0, 0.0, 0.0))
LINES = numba.typeof(Lines(_NONE, _NONE))
TRAIL = numba.typeof(Trail(_NONE, np.empty(0, np.int64), np.empty(0)))
WORTH_OF = types.float64(
    types.uint64, types.uint64, types.int64, types.uint64, SPAWNING, LESSON, WEIGHTS
)

Change = Callable[[U, np.float32, Weights], None]
Adjust = Callable[[U, int, np.float32, Weights], None]
Correct = Callable[[U, int, float, Any, Weights], None]
MakeMove = Callable[[U, int, Any], tuple[U, U]]
AfterValue = Callable[[U, Any, Any, Weights], float]
WorthOf = Callable[[U, U, int, U, Any, Any, Weights], float]
Choose = Callable[[U, Any, Any, Any, Weights], tuple[int, U, U, float]]
Explore = Callable[[U, U, int, float], int]
LearnBack = Callable[[int, Any, Weights, Any], None]
LearnGame = Callable[[U, Any, Any, Any, Weights, Any, Counts], None]


# -- weights -------------------------------------------------------------------------------------


def adjust_kernel(net: NetworkKernels, change: Change) -> Adjust:
    """The kernel that changes all weights of a board."""
    network, stride, by_move, place, _ = net
    rows, cols, tuples = network.rows, network.cols, len(network.tuples)
    sides, size = network.sides, network.size

    @kernel(types.void(types.uint64, types.int64, types.float32, WEIGHTS), lean=True)
    def adjust(board: U, move: int, step: np.float32, weights: Weights) -> None:
        """Change each weight of a board by a step, or by as much of it as the rule takes."""
        base = board
        for turned in range(sides):
            if turned:
                base = transpose(board, rows, cols)
            mirrored = mirror(base, rows, cols)
            for number in range(4):
                image = mirrored if number & 1 else base
                if number & 2:
                    image = flip(image, rows, cols)
                first = U(0)
                if by_move:
                    first = U(ON_IMAGE[4 * turned + number, move]) * U(size * stride)
                for t in range(tuples):
                    change(first + place(image, t), step, weights)

    return adjust


def change_kernel(coherent: bool) -> Change:
    """The kernel that changes a weight, by temporal coherence or not."""

    @kernel(types.void(types.uint64, types.float32, WEIGHTS), lean=True)
    def change(at: U, step: np.float32, weights: Weights) -> None:
        """Change one weight by a step, or by as much of it as the rule takes."""
        if coherent:
            coherent_step(weights, at, step)
        else:
            weights[at] += step

    return change


def correct_kernel(value: Value, adjust: Adjust) -> Correct:
    """The kernel that learns from one error."""

    @kernel(types.void(types.uint64, types.int64, types.float64, LESSON, WEIGHTS), lean=True)
    def correct(board: U, move: int, target: float, lesson: Any, weights: Weights) -> None:
        """Learn that the value of a board, or of a move there, should have been the target."""
        error = target - (lesson.initial + value(board, move, weights))
        adjust(board, move, np.float32(lesson.step * error), weights)

    return correct


# -- the best move, and what the state is worth to the one before it -----------------------------


@fragment
def four_moves(board: U, by: Any, rows: int, cols: int) -> tuple[U, U, U, U, U, U]:
    """The afterstates up, right, down, left, 0 where nothing moves; the rewards down and across.

    (Up is worth as much as down, and left as right.)
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
        """The best move, its afterstate and reward, and what the state is worth to the one before.

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
    """The kernel that finds what a move is worth by a rule; the reward is a part of Q."""
    return worth_of_move_kernel(net) if rule == "q" else worth_of_after_kernel(net, rule)


def worth_of_after_kernel(net: NetworkKernels, rule: str) -> WorthOf:
    """The kernel of the rules `td` and `state`: the reward, and what the afterstate is worth."""
    after_value = after_value_kernel(net, rule, SPAWNING, LESSON)

    @kernel(WORTH_OF, lean=True)
    def worth_of(
        board: U, after: U, move: int, gain: U, spawns: Any, lesson: Any, weights: Weights
    ) -> float:
        found = after_value(after, spawns, lesson, weights)
        return float(np.float64(gain) + lesson.gamma * found)

    return worth_of


def worth_of_move_kernel(net: NetworkKernels) -> WorthOf:
    """The kernel of the rule `q`: what the move is worth, reward and all."""
    value = net.value

    @kernel(WORTH_OF, lean=True)
    def worth_of(
        board: U, after: U, move: int, gain: U, spawns: Any, lesson: Any, weights: Weights
    ) -> float:
        return float(lesson.initial + value(board, move, weights))

    return worth_of


def after_value_kernel(net: NetworkKernels, rule: str, spawns: Any, lesson: Any) -> AfterValue:
    """The kernel that values afterstates by a network of the rule `td` or `state`.

    Its arguments are of these types.
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
    """The kernel that values the states that spawns lead to."""
    rows, cols, value = net.network.rows, net.network.cols, net.value

    @kernel(types.float64(types.uint64, spawns, lesson, WEIGHTS), lean=True)
    def mean_state(after: U, spawns: Any, lesson: Any, weights: Weights) -> float:
        """The mean value of the states that spawns lead to; of those without a move it is 0."""
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
        """The best move, or with this chance any."""
        if np.float64(word >> U(11)) * UNIT >= epsilon:
            return best
        mask = legal(board, rows, cols)
        k, _ = bounded(mix(word), CHOICES[mask])
        return int(nth_move(mask, k))

    return explore


# -- games ---------------------------------------------------------------------------------------


def learn_back_kernel(rule: str, value: Value, correct: Correct) -> LearnBack:
    """The kernel that learns from a game backward."""

    @kernel(types.void(types.int64, LESSON, WEIGHTS, TRAIL), lean=True)
    def learn_back(length: int, lesson: Any, weights: Weights, trail: Any) -> None:
        """Learn from a whole game, from its last move to its first."""
        target = 0.0
        for i in range(length - 1, -1, -1):
            board, move, gain = trail.boards[i], trail.moves[i], trail.gains[i]
            if rule != "td":
                target += gain
            correct(board, move, target, lesson, weights)
            target = lesson.gamma * (lesson.initial + value(board, move, weights))
            if rule == "td":
                target += gain

    return learn_back


class Parts(NamedTuple):
    """The kernels that a game is played and learnt from with."""

    choose: Choose
    explore: Explore
    make_move: MakeMove
    correct: Correct
    learn_back: LearnBack


def learn_game_kernel(rows: int, cols: int, rule: str, backward: bool, parts: Parts) -> LearnGame:
    """The kernel that plays a game and learns from it."""
    choose, explore, make_move, correct, learn_back = parts

    @kernel(
        types.void(types.uint64, LINES, SPAWNING, LESSON, WEIGHTS, TRAIL, COUNTS),
        lean=True,
    )
    def learn_game(
        key: U, by: Any, spawns: Any, lesson: Any, weights: Weights, trail: Any, result: Counts
    ) -> None:
        """Play the game `key` and learn from it; write its score, moves and largest rank."""
        board, _ = start_board(key, spawns.threshold, rows, cols)
        word, own = word_after_start(key), mix(key ^ PLAYER)
        length, score = 0, np.int64(0)
        while True:
            move, after, gain, worth = choose(board, by, spawns, lesson, weights)
            if length and not backward:
                last = length - 1
                earned = 0.0 if rule == "td" else trail.gains[last]
                correct(trail.boards[last], trail.moves[last], earned + worth, lesson, weights)
            if move < 0 or length == LONGEST_GAME:
                break
            if lesson.epsilon > 0:
                own += GOLDEN
                move = explore(board, mix(own), move, lesson.epsilon)
                after, gain = make_move(board, move, by)
            trail.boards[length] = after if rule == "td" else board
            trail.moves[length], trail.gains[length] = move, np.float64(gain)
            score += np.int64(gain)
            length += 1
            word += GOLDEN
            board, _ = spawn(after, mix(word), spawns.threshold, rows, cols)
        if backward:
            learn_back(length, lesson, weights, trail)
        result[0], result[1], result[2] = score, length, max_rank(board)

    return learn_game


def learn_games_kernel(learn_game: LearnGame) -> Callable[..., None]:
    """The kernel that plays games and learns from each."""

    @kernel(
        types.void(WORDS, LINES, SPAWNING, LESSON, WEIGHTS, TRAIL, COUNT_ROWS),
        lean=True,
    )
    def learn_games(
        keys: Words,
        by: Any,
        spawns: Any,
        lesson: Any,
        weights: Weights,
        trail: Any,
        results: Counts,
    ) -> None:
        """Play games and learn from each; see `learn_game`."""
        for i in range(len(keys)):
            learn_game(keys[i], by, spawns, lesson, weights, trail, results[i])

    return learn_games


class Learning(NamedTuple):
    """The kernels of a network and a rule that others call."""

    value: Value
    correct: Correct
    explore: Explore
    learn_games: Callable[..., None]


@cache
def learning_kernels(network: Network, rule: str, coherent: bool, backward: bool) -> Learning:
    """The kernels that learn a network by a rule."""
    rows, cols = network.rows, network.cols
    net = network_kernels(network, 4 if coherent else 1, rule == "q")
    correct = correct_kernel(net.value, adjust_kernel(net, change_kernel(coherent)))
    parts = Parts(
        choose_kernel(net, rule, worth_kernel(net, rule)),
        explore_kernel(rows, cols),
        make_move_kernel(rows, cols),
        correct,
        learn_back_kernel(rule, net.value, correct),
    )
    learn_game = learn_game_kernel(rows, cols, rule, backward, parts)
    return Learning(net.value, correct, parts.explore, learn_games_kernel(learn_game))
