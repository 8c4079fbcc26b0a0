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

from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import types

from lab2048.board import (
    GOLDEN,
    PLAYER,
    Words,
    all_cells,
    bounded,
    count,
    flip,
    legal,
    lines,
    max_rank,
    mirror,
    mix,
    occupied,
    slide_lines,
    spawn,
    start_board,
    transpose,
)
from lab2048.game import Rules
from lab2048.intrinsics import coherent_step
from lab2048.jit import Kernels, U, fragment
from lab2048.lanes import CHOICE, CHOICES, Counts
from lab2048.learn.ntuple import (
    BY_MOVE,
    SIDES,
    SIZE,
    STRIDE,
    TUPLES,
    TURNED_TO,
    Network,
    Weights,
    network_kernels,
    place,
    value,
)
from lab2048.search.heuristics import Floats
from lab2048.search.steps import steps

RULES = ("td", "state", "q")
LONGEST_GAME = 1 << 18
"""Moves of a game at most; with tiles up to 32768 there are hardly ever more."""

ROWS = COLS = 0
"""The board that a kernel is compiled for."""
RULE = "td"
COHERENT = BACKWARD = False
"""The rule that it is compiled for."""

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


# -- weights -------------------------------------------------------------------------------------


def adjust(board: U, move: int, step: np.float32, weights: Weights) -> None:
    """Change each weight of a board by a step, or by as much of it as the rule takes."""
    base = board
    for turned in range(SIDES):
        if turned:
            base = transpose(board, ROWS, COLS)
        mirrored = mirror(base, ROWS, COLS)
        for number in range(4):
            image = mirrored if number & 1 else base
            if number & 2:
                image = flip(image, ROWS, COLS)
            first = U(0)
            if BY_MOVE:
                first = TURNED_TO[4 * turned + number, move] * U(SIZE * STRIDE)
            for t in range(TUPLES):
                change(first + place(image, t), step, weights)


def change(at: U, step: np.float32, weights: Weights) -> None:
    """Change one weight by a step, or by as much of it as the rule takes."""
    if COHERENT:
        coherent_step(weights, at, step)
    else:
        weights[at] += step


def correct(board: U, move: int, target: float, lesson: Any, weights: Weights) -> None:
    """Learn that the value of a board, or of a move there, should have been the target."""
    error = target - (lesson.initial + value(board, move, weights))
    adjust(board, move, np.float32(lesson.step * error), weights)


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


def make_move(board: U, move: int, by: Any) -> tuple[U, U]:
    """The afterstate of a move, and the reward."""
    up, right, low, left, down, across = four_moves(board, by, ROWS, COLS)
    if move & 1:
        return right if move == 1 else left, across
    return up if move == 0 else low, down


def choose(
    board: U, by: Any, spawns: Any, lesson: Any, weights: Weights
) -> tuple[int, U, U, float]:
    """The best move, its afterstate and reward, and what the state is worth to the one before it.

    At the end of a game they are -1, 0, 0 and 0.
    """
    up, right, low, left, down, across = four_moves(board, by, ROWS, COLS)
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
    if RULE == "q":
        best *= lesson.gamma
    elif RULE == "state":
        best = lesson.gamma * (lesson.initial + value(board, 0, weights))
    return chosen, after, gain, best


def worth_of(
    board: U, after: U, move: int, gain: U, spawns: Any, lesson: Any, weights: Weights
) -> float:
    """What a move is worth, by the rule; the reward is a part of Q."""
    if RULE == "td":
        found = lesson.initial + value(after, 0, weights)
    elif RULE == "state":
        found = mean_state(after, spawns, lesson, weights)
    else:
        return float(lesson.initial + value(board, move, weights))
    return float(np.float64(gain) + lesson.gamma * found)


def mean_state(after: U, spawns: Any, lesson: Any, weights: Weights) -> float:
    """The mean value of the states that spawns lead to; of those without a move it is 0."""
    total = 0.0
    cells = ~occupied(after) & all_cells(ROWS, COLS)
    n = np.float64(count(cells))
    while cells:
        tile = cells & (U(0) - cells)
        cells ^= tile
        for rank in range(1, 3):
            state = after | (tile * U(rank))
            if legal(state, ROWS, COLS):
                weight = spawns.two if rank == 1 else spawns.four
                total += weight * (lesson.initial + value(state, 0, weights))
    return total / n


def explore(board: U, word: U, best: int, epsilon: float) -> int:
    """The best move, or with this chance any."""
    if np.float64(word >> U(11)) * UNIT >= epsilon:
        return best
    mask = legal(board, ROWS, COLS)
    k, _ = bounded(mix(word), CHOICES[mask])
    return int((CHOICE[mask] >> (k << U(3))) & U(3))


# -- games ---------------------------------------------------------------------------------------


def learn_game(
    key: U, by: Any, spawns: Any, lesson: Any, weights: Weights, trail: Any, result: Counts
) -> None:
    """Play the game `key` and learn from it; write its score, moves and largest rank."""
    board, _ = start_board(key, spawns.threshold, ROWS, COLS)
    word, own = key + GOLDEN + GOLDEN, mix(key ^ PLAYER)
    length, score = 0, np.int64(0)
    while True:
        move, after, gain, worth = choose(board, by, spawns, lesson, weights)
        if length and not BACKWARD:
            last = length - 1
            earned = 0.0 if RULE == "td" else trail.gains[last]
            correct(trail.boards[last], trail.moves[last], earned + worth, lesson, weights)
        if move < 0 or length == LONGEST_GAME:
            break
        if lesson.epsilon > 0:
            own += GOLDEN
            move = explore(board, mix(own), move, lesson.epsilon)
            after, gain = make_move(board, move, by)
        trail.boards[length] = after if RULE == "td" else board
        trail.moves[length], trail.gains[length] = move, np.float64(gain)
        score += np.int64(gain)
        length += 1
        word += GOLDEN
        board, _ = spawn(after, mix(word), spawns.threshold, ROWS, COLS)
    if BACKWARD:
        learn_back(length, lesson, weights, trail)
    result[0], result[1], result[2] = score, length, max_rank(board)


def learn_back(length: int, lesson: Any, weights: Weights, trail: Any) -> None:
    """Learn from a whole game, from its last move to its first."""
    target = 0.0
    for i in range(length - 1, -1, -1):
        board, move, gain = trail.boards[i], trail.moves[i], trail.gains[i]
        if RULE != "td":
            target += gain
        correct(board, move, target, lesson, weights)
        target = lesson.gamma * (lesson.initial + value(board, move, weights))
        if RULE == "td":
            target += gain


def learn_games(
    keys: Words, by: Any, spawns: Any, lesson: Any, weights: Weights, trail: Any, results: Counts
) -> None:
    """Play games and learn from each; see `learn_game`."""
    for i in range(len(keys)):
        learn_game(keys[i], by, spawns, lesson, weights, trail, results[i])


@cache
def learning_kernels(network: Network, rule: str, coherent: bool, backward: bool) -> Kernels:
    """`learn_games` and what it is made of, for a network and a rule."""
    board = steps(network.rows, network.cols)
    by, spawns = numba.typeof(Lines(lines(2), lines(2))), board.spawns
    lesson, trail = numba.typeof(Lesson(0.0, 0.0, 0.0, 0.0)), numba.typeof(new_trail())
    word, whole, real = types.uint64, types.int64, types.float64
    weights = types.float32[::1]
    kernels = network_kernels(network, 4 if coherent else 1, rule == "q").more(
        f"{rule}{'.coherent' * coherent}{'.backward' * backward}",
        lean=True,
        RULE=rule,
        COHERENT=coherent,
        BACKWARD=backward,
    )
    kernels.add(change, types.void(word, types.float32, weights))
    kernels.add(adjust, types.void(word, whole, types.float32, weights))
    kernels.add(correct, types.void(word, whole, real, lesson, weights))
    if rule == "state":
        kernels.add(mean_state, real(word, spawns, lesson, weights))
    kernels.add(worth_of, real(word, word, whole, word, spawns, lesson, weights))
    chosen = types.Tuple((whole, word, word, real))
    kernels.add(choose, chosen(word, by, spawns, lesson, weights))
    kernels.add(explore, whole(word, word, whole, real))
    kernels.add(make_move, types.Tuple((word, word))(word, whole, by))
    kernels.add(learn_back, types.void(whole, lesson, weights, trail))
    one = types.void(word, by, spawns, lesson, weights, trail, whole[::1])
    kernels.add(learn_game, one)
    kernels.add(
        learn_games, types.void(word[::1], by, spawns, lesson, weights, trail, whole[:, ::1])
    )
    return kernels
