"""Kernels that carry probabilities through the boards of a player's games, and their buffers.

The equations are in `lab2048.solver.exact_value`.
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
"""Boards are sharded by their hash, so that threads gather different shards without locks."""

# indices into the sums; at ENDS + r the probability that a game ends with the largest rank r
REWARD, MOVES, ENDS = range(3)


class Edges(NamedTuple):
    """Boards reached, with repetitions, and the probability of each: one row per shard."""

    keys: Words
    masses: Floats
    sizes: Counts


class Crowd(NamedTuple):
    """A hash table of distinct boards and their probabilities. A slot is two words: the board
    (0 if the slot is free), then its probability as a float64."""

    words: Words
    size: Counts
    """The number of boards, in an array of length 1 that kernels can change."""

    def boards(self) -> tuple[Words, Floats]:
        """All boards, and their probabilities."""
        here = np.flatnonzero(self.words[::2]) * 2
        return self.words[here], self.words.view(np.float64)[here + 1]


def new_edges(room: int) -> Edges:
    """Empty edges with room for `room` boards per shard."""
    keys, masses = np.empty((SHARDS, room), np.uint64), np.empty((SHARDS, room))
    return Edges(keys, masses, np.zeros(SHARDS, np.int64))


def new_crowd(boards: int) -> Crowd:
    """An empty crowd, at most half full once it holds `boards` boards."""
    slots = 1 << max(4, (2 * boards).bit_length())
    return Crowd(np.zeros(2 * slots, np.uint64), np.zeros(1, np.int64))


CROWD, EDGES = numba.typeof(new_crowd(1)), numba.typeof(new_edges(1))


@fragment
def deal(keys: Words, masses: Floats, size: int, edges: Any) -> None:
    """Append boards to the shards that they belong to, leaving out those of probability 0."""
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
        """Carry the probabilities of states to afterstates; add reward, moves, ends to `sums`."""
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
        """Carry the probabilities of afterstates to the states after a spawn of `rank`."""
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
    """Add boards to a crowd, summing the probabilities of equal ones, until it is too full.

    Returns how many of `keys` were added.
    """
    floats = crowd.words.view(np.float64)
    mask = U(len(crowd.words) - 1)
    room = len(crowd.words) * 3 // 8  # three quarters of the slots
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
    """The kernels of a walk, for one board shape."""

    move_on: Callable[..., None]
    spawn_on: Callable[..., None]


@cache
def walk_kernels(rows: int, cols: int, symmetric: bool) -> WalkKernels:
    """The kernels for a board shape, and for players with or without `Player.symmetric`."""
    return WalkKernels(
        move_on_kernel(rows, cols, symmetric), spawn_on_kernel(rows, cols, symmetric)
    )
