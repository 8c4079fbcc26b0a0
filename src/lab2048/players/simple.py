"""Players that do not look ahead: random, greedy, corner."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numba import types

from lab2048.engine.array_types import FLOAT_ROWS, WORDS
from lab2048.engine.arrays import Floats, Words
from lab2048.engine.jit import U, kernel
from lab2048.engine.packed import CHOICES, legal
from lab2048.players.heuristics import evaluator
from lab2048.players.player import Player, ties_option
from lab2048.players.search_step import steps

ORDER = np.array([2.0, 1.0, 3.0, 4.0])
"""The values of up, right, down and left to `corner`."""


@kernel("void(uint64[::1], float64[:, ::1], int64, int64)")
def even_chances(boards: Words, out: Floats, rows: int, cols: int) -> None:
    """Write the probabilities of the moves if each legal one is equally likely."""
    for i in range(len(boards)):
        mask = legal(boards[i], rows, cols)
        share = 1.0 / np.float64(max(CHOICES[mask], U(1)))
        for direction in range(4):
            out[i, direction] = share if (mask >> U(direction)) & U(1) else 0.0


@cache
def gains_kernel(rows: int, cols: int) -> Callable[[Words, Any, Floats], None]:
    """The kernel that writes the gains of all moves on boards of this size."""
    board = steps(rows, cols)
    make_moves = board.make_moves

    @kernel(types.void(WORDS, board.by, FLOAT_ROWS))
    def move_gains(states: Words, by: Any, out: Floats) -> None:
        """Write what each move gains; NaN if it is illegal."""
        moved, gains = np.empty(4, np.uint64), np.empty(4, np.float64)
        for i in range(len(states)):
            make_moves(states[i], by, moved, gains)
            for direction in range(4):
                out[i, direction] = gains[direction] if moved[direction] else np.nan

    return move_gains


def rewards_of(player: Player, boards: Words) -> Floats:
    """The rewards of all moves; NaN for illegal ones."""
    rules = player.rules
    out = np.empty((len(boards), 4))
    gains_kernel(rules.rows, rules.cols)(boards, evaluator("zero", rules), out)
    return out


@dataclass(frozen=True, eq=False)
class Random(Player):
    """Any legal move, each with the same probability."""

    name = "random"
    about = "any legal move, each with the same chance"
    meaning = "nothing: all legal moves are alike"

    @property
    def symmetric(self) -> bool:
        return True

    @property
    def splits(self) -> bool:
        return True

    def values_many(self, boards: Words, words: Words) -> Floats:
        return 0.0 * rewards_of(self, boards)

    def probabilities(self, boards: Words) -> Floats:
        out = np.empty((len(boards), 4))
        even_chances(boards, out, self.rules.rows, self.rules.cols)
        return out


@dataclass(frozen=True, eq=False)
class Greedy(Player):
    """The move with the largest reward."""

    ties: str = ties_option()

    name = "greedy"
    about = "the move with the largest reward"
    meaning = "the reward"

    @property
    def symmetric(self) -> bool:
        return self.splits

    def values_many(self, boards: Words, words: Words) -> Floats:
        return rewards_of(self, boards)


@dataclass(frozen=True, eq=False)
class Corner(Player):
    """The first legal move of left, down, up, right."""

    name = "corner"
    about = "the first legal move of left, down, up, right"
    meaning = "4 for left, 3 for down, 2 for up, 1 for right"

    def values_many(self, boards: Words, words: Words) -> Floats:
        return np.asarray(0.0 * rewards_of(self, boards) + ORDER)
