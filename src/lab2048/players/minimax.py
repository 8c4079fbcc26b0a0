"""Minimax with alpha-beta: spawns are an opponent who puts the worst tile in the worst cell.

    Q(s, a, d) = r + W(x, d - 1)          x is s after the move a, r its reward (if rewards count)
    W(x, 0)    = H(x)                     the heuristic
    W(x, d)    = least over spawns s' on x of max over moves of Q(s', a, d)

Expectiminimax has the opponent choose the cell and chance the tile:

    W(x, d)    = least over cells of the mean over 2 and 4 of max over moves of Q(s', a, d)

Alpha-beta prunes what cannot change the move: W need not be exact below alpha, for the player has a
better move already, nor above beta, for the opponent has a worse spawn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numba import types

from lab2048.engine.array_types import FLOAT_ROWS, WORD_ROWS, WORDS
from lab2048.engine.arrays import Counts, Floats, Words
from lab2048.engine.jit import U, kernel
from lab2048.engine.packed import lowest_cell
from lab2048.players.heuristic_player import HeuristicPlayer
from lab2048.players.heuristics import DEFAULT, HEURISTICS, Evaluate
from lab2048.players.player import option, ties_option
from lab2048.players.search_step import SPAWNING, Steps, spawning, steps
from lab2048.players.ties import pick
from lab2048.players.time_limit import check_time

DEEPEST = 12

Worst = Callable[[U, int, float, float, Any, Any, Words, Floats], float]
RootValues = Callable[[Words, int, bool, Any, Any, Floats], None]


def _value_type(step: Steps) -> Any:
    """The signature of the kernel that values afterstates."""
    number, work = types.float64, (WORD_ROWS, FLOAT_ROWS)
    return number(types.uint64, types.int64, number, number, step.by, SPAWNING, *work)


def opponent_kernel(step: Steps, tiles_by_chance: bool) -> Worst:
    """The kernel of the opponent, who chooses the cell of a spawn, and its tile if chance does not.

    With tiles by chance nothing is pruned.
    """
    make_moves, open_cells, worth = step.make_moves, step.open_cells, step.worth

    @kernel(_value_type(step))
    def worst(
        after: U,
        depth: int,
        low: float,
        high: float,
        by: Any,
        spawns: Any,
        afters: Words,
        gains: Floats,
    ) -> float:
        """W(x, depth) if it is between low and high; otherwise a value on the same side of them.

        `afters` and `gains` are scratch space, with a row per depth.
        """
        if depth == 0 or spawns.stop[0]:
            return worth(after, by)
        least = np.inf
        cells = open_cells(after, spawns)
        while cells:
            tile = lowest_cell(cells)
            cells ^= tile
            mean = 0.0
            for rank in range(1, 3):
                weight = spawns.two if rank == 1 else spawns.four
                if weight == 0:
                    continue
                make_moves(after | (tile * U(rank)), by, afters[depth], gains[depth])
                best = -np.inf
                for direction in range(4):
                    if afters[depth, direction]:
                        gain = gains[depth, direction]
                        floor, roof = max(low, best) - gain, min(high, least) - gain
                        to = afters[depth, direction]
                        value = worst(to, depth - 1, floor, roof, by, spawns, afters, gains)
                        best = max(best, gain + value)
                        if not tiles_by_chance and best >= min(high, least):
                            break
                best = best if best > -np.inf else by.dead
                if tiles_by_chance:
                    mean += weight * best
                else:
                    least = min(least, best)
                    if least <= low:
                        return least
            if tiles_by_chance:
                least = min(least, mean)
        return least

    return worst


def root_kernel(step: Steps, worst: Worst) -> RootValues:
    """The search kernel, from the kernel that values afterstates."""
    make_moves = step.make_moves

    @kernel(types.void(WORDS, types.int64, types.boolean, step.by, SPAWNING, FLOAT_ROWS))
    def root_values(
        states: Words, depth: int, prune: bool, by: Any, spawns: Any, out: Floats
    ) -> None:
        """Write Q(s, a, depth) of every direction of every state; NaN if it is illegal.

        With `prune` only the Q of the first best move is exact; of the others it is only certain
        that they are not better.
        """
        afters, gains = np.empty((depth + 1, 4), np.uint64), np.empty((depth + 1, 4), np.float64)
        for i in range(len(states)):
            make_moves(states[i], by, afters[depth], gains[depth])
            best = -np.inf
            for direction in range(4):
                out[i, direction] = np.nan
                if afters[depth, direction]:
                    gain = gains[depth, direction]
                    low = best - gain if prune else -np.inf
                    value = worst(
                        afters[depth, direction], depth - 1, low, np.inf, by, spawns, afters, gains
                    )
                    out[i, direction] = gain + value
                    best = max(best, gain + value)

    return root_values


@cache
def search_kernel(rows: int, cols: int, name: str, evaluate: Evaluate) -> RootValues:
    """The kernel that searches by minimax or expectiminimax, with a heuristic."""
    step = steps(rows, cols, evaluate)
    return root_kernel(step, opponent_kernel(step, name == "expectiminimax"))


@dataclass(frozen=True, eq=False)
class Minimax(HeuristicPlayer):
    """The best move against the worst spawns, some moves ahead."""

    depth: int = option(3, "own moves to look ahead", low=1, high=DEEPEST)
    heuristic: str = option(DEFAULT, "what the last board is worth", choices=HEURISTICS)
    cells: int = option(0, "spawn on at most this many cells (Zhou); 0: on all", low=0, high=16)
    ties: str = ties_option()

    name = "minimax"
    about = "the best move against the worst spawns, some moves ahead (alpha-beta)"
    meaning = "value of the last board against the worst spawns, with rewards if they count"

    @property
    def symmetric(self) -> bool:
        return self.splits and not self.cells and HEURISTICS[self.heuristic].symmetric

    def values_many(self, boards: Words, words: Words) -> Floats:
        return self._search(boards, False)

    def choose_many(self, boards: Words, words: Words) -> Counts:
        values = self._search(boards, not self.splits)
        return pick(values, words, self.splits, self.tie)

    def _search(self, boards: Words, prune: bool) -> Floats:
        """The values of all moves; with `prune` only that of the best is exact."""
        rules = self.rules
        out = np.empty((len(boards), 4))
        evaluate, by = self.evaluation()
        search = search_kernel(rules.rows, rules.cols, self.name, evaluate)
        search(boards, self.depth, prune, by, spawning(rules, cells=self.cells), out)
        check_time()
        return out


@dataclass(frozen=True, eq=False)
class Expectiminimax(Minimax):
    """The best move if an opponent chooses the cell of each spawn, and chance its tile."""

    name = "expectiminimax"
    about = "the best move if the cell of each spawn is the worst and its tile left to chance"
    meaning = "value of the last board with spawns on the worst cells, with rewards if they count"
