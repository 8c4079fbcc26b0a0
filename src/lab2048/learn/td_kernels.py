"""Temporal-difference learning of n-tuple networks: the rules, and the loop that plays and learns.

With s_t the state before move t, r_t the reward of that move, x_t the afterstate it leads to, and
f the number of weights added up for a value, a rule updates a value towards a target at each move:

    td      V(x_t) towards r_{t+1} + g V(x_{t+1})          x_{t+1}: the best of r + g V
    state   V(s_t) towards r_t + g V(s_{t+1})              a move: the best mean of r + g V
    q       Q(s_t, a_t) towards r_t + g max over a of Q(s_{t+1}, a)

g is the discount, usually 1; values after the end of a game are 0. With the error e, the target
minus the value, each of the f weights takes a step of (rate / f) e. With temporal coherence (`tc`)
it takes |E| / A of the step, where E is the sum of the steps so far and A that of their absolute
values (|E| / A is 1 at first): weights whose steps often change sign change slowly.

Learning is *forward*, after each move, or *backward*, after the game and from its end, so that the
end of a game reaches all earlier positions at once. An optimistic start gives all boards a high
value, so that untried moves look good.
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
from lab2048.engine.jit import U, kernel
from lab2048.engine.packed import GOLDEN, ON_IMAGE, PLAYER, flip, max_rank, mirror, mix, transpose
from lab2048.engine.spawns import spawn, start_board, word_after_start
from lab2048.learn.ntuple import WEIGHTS, Network, NetworkKernels, Value, Weights, network_kernels
from lab2048.learn.td_moves import (
    LESSON,
    LINES,
    Choose,
    Explore,
    MakeMove,
    choose_kernel,
    explore_kernel,
    make_move_kernel,
    worth_kernel,
)
from lab2048.players.search_step import SPAWNING

LONGEST_GAME = 1 << 18
"""The most moves of a game; with tiles up to 32768 there are hardly ever more."""


class Trail(NamedTuple):
    """A game so far: at each move the board that is valued, the move and its reward."""

    boards: Words
    moves: Counts
    gains: Floats


def new_trail() -> Trail:
    """An empty trail, with room for any game."""
    return Trail(
        np.empty(LONGEST_GAME, np.uint64),
        np.empty(LONGEST_GAME, np.int64),
        np.empty(LONGEST_GAME, np.float64),
    )


TRAIL = numba.typeof(Trail(np.empty(0, np.uint64), np.empty(0, np.int64), np.empty(0)))

Change = Callable[[U, np.float32, Weights], None]
Adjust = Callable[[U, int, np.float32, Weights], None]
Correct = Callable[[U, int, float, Any, Weights], None]
LearnBack = Callable[[int, Any, Weights, Any], None]
LearnGame = Callable[[U, Any, Any, Any, Weights, Any, Counts], None]
LearnGames = Callable[[Words, Any, Any, Any, Weights, Any, Counts], None]


# -- weights -------------------------------------------------------------------------------------


def adjust_kernel(net: NetworkKernels, change: Change) -> Adjust:
    """The kernel that changes all weights of a board."""
    network, stride, by_move, place, _ = net
    rows, cols, tuples = network.rows, network.cols, len(network.tuples)
    sides, size = network.sides, network.size

    @kernel(types.void(types.uint64, types.int64, types.float32, WEIGHTS), lean=True)
    def adjust(board: U, move: int, step: np.float32, weights: Weights) -> None:
        """Change each weight of a board by a step, or the part that temporal coherence takes."""
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
        """Change one weight by a step, or the part that temporal coherence takes."""
        if coherent:
            coherent_step(weights, at, step)
        else:
            weights[at] += step

    return change


def correct_kernel(value: Value, adjust: Adjust) -> Correct:
    """The kernel that learns from one error."""

    @kernel(types.void(types.uint64, types.int64, types.float64, LESSON, WEIGHTS), lean=True)
    def correct(board: U, move: int, target: float, lesson: Any, weights: Weights) -> None:
        """Update the value of a board, or of a move on it, towards the target."""
        error = target - (lesson.initial + value(board, move, weights))
        adjust(board, move, np.float32(lesson.step * error), weights)

    return correct


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
    """The kernels that play a game and learn from it."""

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


def learn_games_kernel(learn_game: LearnGame) -> LearnGames:
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
    """The kernels of a network and a rule that callers use."""

    value: Value
    correct: Correct
    explore: Explore
    learn_games: LearnGames


@cache
def learning_kernels(network: Network, rule: str, coherent: bool, backward: bool) -> Learning:
    """The kernels that train a network by a rule."""
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
