"""Sparse sampling (Kearns, Mansour, Ng; Liu's algorithm 1): expectimax over some drawn spawns.

    Q(s, a, d) = r + gamma * W(x, d - 1)      x is s after the move a, r its reward (if they count)
    W(x, 0)    = H(x)                         the heuristic, 0 if there is none
    W(x, d)    = mean over n drawn spawns s' on x of max over moves of Q(s', a, d)

With `samples=0` the mean is over all spawns, as in expectimax. A dead end has the heuristic's value
for it, which is 0 if there is none; or minus infinity, as the algorithm is printed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numba import types

from lab2048.engine.array_types import FLOAT_ROWS, FLOATS, WORD_ROWS, WORDS
from lab2048.engine.arrays import Floats, Words
from lab2048.engine.jit import U, kernel
from lab2048.engine.packed import GOLDEN, count, lowest_cell, mix
from lab2048.engine.spawns import spawn
from lab2048.players.heuristic_player import HeuristicPlayer
from lab2048.players.heuristics import HEURISTICS, Evaluate
from lab2048.players.player import option, ties_option
from lab2048.players.search_step import SPAWNING, Steps, spawning, steps
from lab2048.players.time_limit import check_time

# places in the settings of a search
SAMPLES, GAMMA, DEAD = range(3)

Sampled = Callable[[U, int, Any, Any, Floats, Any], float]
RootValues = Callable[[Words, Words, int, Any, Any, Floats, Floats], None]
WORK = types.Tuple((WORD_ROWS, FLOAT_ROWS, WORDS))


def sampled_kernel(step: Steps) -> Sampled:
    """The kernel that values an afterstate by drawn spawns."""
    rows, cols = step.rows, step.cols
    make_moves, open_cells, worth = step.make_moves, step.open_cells, step.worth

    @kernel(types.float64(types.uint64, types.int64, step.by, SPAWNING, FLOATS, WORK))
    def sampled(after: U, depth: int, by: Any, spawns: Any, settings: Floats, work: Any) -> float:
        """W(x, depth). `work` has rows for afterstates and gains, and a word to draw with."""
        if depth == 0 or spawns.stop[0]:
            return worth(after, by)
        afters, gains, words = work
        cells = open_cells(after, spawns)
        samples = np.int64(settings[SAMPLES])
        turns = samples if samples else 2 * np.int64(count(cells))
        total = 0.0
        for turn in range(turns):
            weight = 1.0 / np.float64(samples) if samples else 0.0
            if samples:
                words[0] += GOLDEN
                state, _ = spawn(after, mix(words[0]), spawns.threshold, rows, cols)
            else:
                weight = (spawns.four if turn & 1 else spawns.two) * 2 / turns
                state = after | (lowest_cell(cells) << U(turn & 1))
                cells = cells & (cells - U(1)) if turn & 1 else cells
            if weight == 0:
                continue
            make_moves(state, by, afters[depth], gains[depth])
            best = -np.inf
            found = False
            for direction in range(4):
                if afters[depth, direction]:
                    found = True
                    rest = sampled(afters[depth, direction], depth - 1, by, spawns, settings, work)
                    best = max(best, gains[depth, direction] + settings[GAMMA] * rest)
            total += weight * (best if found else settings[DEAD])
        return total

    return sampled


def root_kernel(step: Steps, sampled: Sampled) -> RootValues:
    """The search kernel, from the kernel that values afterstates."""
    make_moves = step.make_moves

    @kernel(types.void(WORDS, WORDS, types.int64, step.by, SPAWNING, FLOATS, FLOAT_ROWS))
    def root_values(
        states: Words, words: Words, depth: int, by: Any, spawns: Any, settings: Floats, out: Floats
    ) -> None:
        """Write Q(s, a, depth) of every direction of every state; NaN if it is illegal."""
        afters, gains = np.empty((depth + 1, 4), np.uint64), np.empty((depth + 1, 4), np.float64)
        own = np.empty(1, np.uint64)
        work = (afters, gains, own)
        for i in range(len(states)):
            own[0] = words[i]
            make_moves(states[i], by, afters[depth], gains[depth])
            for direction in range(4):
                out[i, direction] = np.nan
                if afters[depth, direction]:
                    rest = sampled(afters[depth, direction], depth - 1, by, spawns, settings, work)
                    out[i, direction] = gains[depth, direction] + settings[GAMMA] * rest

    return root_values


@cache
def search_kernel(rows: int, cols: int, evaluate: Evaluate) -> RootValues:
    """The kernel that searches a board with a heuristic."""
    step = steps(rows, cols, evaluate)
    return root_kernel(step, sampled_kernel(step))


@dataclass(frozen=True, eq=False)
class Sparse(HeuristicPlayer):
    """Expectimax over some drawn spawns."""

    depth: int = option(3, "own moves to look ahead", low=1, high=10)
    samples: int = option(2, "spawns drawn after each move; 0: all of them", low=0, high=1000)
    gamma: float = option(1.0, "discount per move", low=0, high=1)
    heuristic: str = option("zero", "what the last board is worth", choices=HEURISTICS)
    terminal: str = option(
        "0",
        "a dead end is worth what the heuristic says, or minus infinity",
        choices=("0", "avoid"),
    )
    ties: str = ties_option()

    name = "sparse"
    about = "expectimax over some drawn spawns (sparse sampling)"
    meaning = "estimated rewards of the next moves, and the value of the last board"

    @property
    def draws(self) -> bool:
        return self.samples > 0 and self.depth > 1

    def values_many(self, boards: Words, words: Words) -> Floats:
        rules = self.rules
        (evaluate, by), out = self.evaluation(), np.empty((len(boards), 4))
        avoid = self.terminal == "avoid" and self.gamma > 0  # with 0 no later move counts
        dead = -np.inf if avoid else by.dead
        settings = np.array([self.samples, self.gamma, dead], np.float64)
        search = search_kernel(rules.rows, rules.cols, evaluate)
        search(boards, words, self.depth, by, spawning(rules), settings, out)
        check_time()
        return out
