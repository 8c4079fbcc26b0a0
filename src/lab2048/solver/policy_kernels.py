"""The kernels of a walk over the boards of a player's games, and what they fill.

`lab2048.solver.exact_value` says what is carried from board to board.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import types

from lab2048.engine.array_types import FLOAT_ROWS, FLOATS, SLIDES, WORDS
from lab2048.engine.arrays import Counts, Floats, Slides, Words
from lab2048.engine.jit import U, fragment, kernel
from lab2048.engine.packed import GOLDEN, count, lowest_cell, max_rank, potential, smallest
from lab2048.engine.slides import slide
from lab2048.solver.successors import BLOCK, next_cells, open_block

SHARDS = 4
"""Boards are dealt out by their hash, so that threads can gather them without meeting."""

# places in the sums of a layer; behind them, how likely games end there with each largest rank
REWARD, MOVES, ENDS = range(3)


class Edges(NamedTuple):
    """Boards that were come to, with repetitions, and the probability of each: a row a shard."""

    keys: Words
    masses: Floats
    sizes: Counts


class Crowd(NamedTuple):
    """Different boards and the probability of each, by hash: two words each, a board in the first
    (0 where there is none), the probability in the second as a float64."""

    words: Words
    size: Counts
    """How many boards there are, in an array of one."""

    def boards(self) -> tuple[Words, Floats]:
        """All boards, and their probabilities."""
        here = np.flatnonzero(self.words[::2]) * 2
        return self.words[here], self.words.view(np.float64)[here + 1]


def new_edges(room: int) -> Edges:
    """Room for so many boards a shard."""
    keys, masses = np.empty((SHARDS, room), np.uint64), np.empty((SHARDS, room))
    return Edges(keys, masses, np.zeros(SHARDS, np.int64))


def new_crowd(boards: int) -> Crowd:
    """An empty crowd that is half full with so many boards."""
    slots = 1 << max(4, (2 * boards).bit_length())
    return Crowd(np.zeros(2 * slots, np.uint64), np.zeros(1, np.int64))


CROWD, EDGES = numba.typeof(new_crowd(1)), numba.typeof(new_edges(1))


@fragment
def deal(keys: Words, masses: Floats, size: int, edges: Any) -> None:
    """Append boards with a probability to the shards that they belong to."""
    for i in range(U(size)):
        shard = np.int64((keys[i] * GOLDEN) >> U(62))
        place = edges.sizes[shard]
        edges.keys[shard, place], edges.masses[shard, place] = keys[i], masses[i]
        edges.sizes[shard] = place + int(masses[i] > 0)


def move_on_kernel(rows: int, cols: int, symmetric: bool) -> Callable[..., None]:
    """The kernel that carries probabilities from states to afterstates."""

    @kernel(types.void(WORDS, FLOATS, FLOAT_ROWS, SLIDES, SLIDES, EDGES, FLOATS))
    def move_on(
        states: Words,
        masses: Floats,
        chances: Floats,
        across: Slides,
        down: Slides,
        edges: Any,
        sums: Floats,
    ) -> None:
        """Carry the probabilities of states to afterstates, and sum up what happens on the way."""
        boards, afters, carried = (
            np.empty(BLOCK, np.uint64),
            np.empty(BLOCK, np.uint64),
            np.empty(BLOCK),
        )
        for begin in range(0, len(states), BLOCK):
            size = min(BLOCK, len(states) - begin)
            for direction in range(4):
                found = 0
                for i in range(begin, begin + size):
                    boards[found] = states[i]
                    carried[found] = masses[i] * chances[i, direction]
                    found += int(chances[i, direction] > 0)
                for i in range(found):
                    afters[i] = slide(boards[i], U(direction), across, down, rows, cols)
                for i in range(found):  # a move adds its reward to the potential
                    gained = potential(afters[i], rows * cols) - potential(boards[i], rows * cols)
                    sums[REWARD] += carried[i] * np.float64(gained)
                    sums[MOVES] += carried[i]
                if symmetric:
                    for i in range(found):
                        afters[i] = smallest(afters[i], rows, cols)
                deal(afters, carried, found, edges)
            for i in range(begin, begin + size):
                going = chances[i, 0] + chances[i, 1] + chances[i, 2] + chances[i, 3]
                if going == 0:
                    sums[ENDS + max_rank(states[i])] += masses[i]

    return move_on


def spawn_on_kernel(rows: int, cols: int, symmetric: bool) -> Callable[..., None]:
    """The kernel that carries probabilities from afterstates to states."""

    @kernel(types.void(WORDS, FLOATS, types.uint64, types.float64, EDGES))
    def spawn_on(afters: Words, masses: Floats, rank: U, weight: float, edges: Any) -> None:
        """Carry the probabilities of afterstates to the states that a tile of this rank makes."""
        boards, empty = np.empty(BLOCK, np.uint64), np.empty(BLOCK, np.uint64)
        states, sources = np.empty(BLOCK, np.uint64), np.empty(BLOCK, np.uint32)
        share, carried = np.empty(BLOCK), np.empty(BLOCK)
        for begin in range(0, len(afters), BLOCK):
            size = min(BLOCK, len(afters) - begin)
            left = open_block(afters, begin, size, boards, empty, rows, cols)
            for i in range(size):
                sources[i] = i
                share[i] = masses[begin + i] * weight / np.float64(count(empty[i]))
            while left > 0:
                for i in range(U(left)):
                    states[i] = boards[i] | (lowest_cell(empty[i]) * rank)
                    carried[i] = share[sources[i]]
                if symmetric:
                    for i in range(U(left)):
                        states[i] = smallest(states[i], rows, cols)
                deal(states, carried, left, edges)
                left = next_cells(boards, empty, sources, left)

    return spawn_on


@kernel(types.int64(WORDS, FLOATS, CROWD))
def gather(keys: Words, masses: Floats, crowd: Any) -> int:
    """Add probabilities to boards, which are new to the crowd or not, until it is too full.

    Returns how many were added.
    """
    floats = crowd.words.view(np.float64)
    mask = U(len(crowd.words) - 1)
    room = len(crowd.words) * 3 // 8  # three in four of the slots
    size = crowd.size[0]
    for i in range(len(keys)):
        place = ((keys[i] * GOLDEN) >> U(20) << U(1)) & mask
        while crowd.words[place] != U(0) and crowd.words[place] != keys[i]:
            place = (place + U(2)) & mask
        if crowd.words[place] == U(0):
            if size == room:
                crowd.size[0] = size
                return i
            crowd.words[place] = keys[i]
            floats[place + U(1)] = masses[i]
            size += 1
        else:
            floats[place + U(1)] += masses[i]
    crowd.size[0] = size
    return len(keys)


class WalkKernels(NamedTuple):
    """The kernels of a walk on one board."""

    move_on: Callable[..., None]
    spawn_on: Callable[..., None]


@cache
def walk_kernels(rows: int, cols: int, symmetric: bool) -> WalkKernels:
    """The kernels for a board, and for players that play all images of a board alike or not."""
    return WalkKernels(
        move_on_kernel(rows, cols, symmetric), spawn_on_kernel(rows, cols, symmetric)
    )
