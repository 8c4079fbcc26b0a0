"""Kernels that look up boards in decoded layers of a table, many at a time.

A decoded layer consists of its sorted keys, their values, and `starts`: where the keys of each
region begin, followed by where those of the last region end. Keys that differ only in their low
bits (`keys.region_shift`) share a region.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from lab2048.engine.arrays import Counts, Floats, Halves, Slides, Words
from lab2048.engine.jit import U, fragment, kernel
from lab2048.engine.packed import age, count, empty_cells, lowest_cell, potential, smallest
from lab2048.engine.slides import slide
from lab2048.solver.keys import REGIONS, region_shift
from lab2048.solver.successors import BLOCK, next_cells, open_block


@kernel("void(uint64[::1], uint64, uint32[::1])")
def find_starts(keys: Words, shift: U, starts: Halves) -> None:
    """Fill in where each region of sorted keys begins."""
    region = U(0)
    for i in range(U(len(keys))):
        while region <= keys[i] >> shift:
            starts[region] = np.uint32(i)
            region += U(1)
    while region <= U(REGIONS):
        starts[region] = np.uint32(len(keys))
        region += U(1)


@fragment
def value_of(key: U, shift: U, keys: Words, starts: Halves, values: Floats) -> float:
    """The value of a key; NaN if it is not in the layer. Values may also be float32."""
    region = key >> shift
    low, size = U(starts[region]), U(starts[region + U(1)]) - U(starts[region])
    while size > U(1):
        half = size >> U(1)
        low += half * U(keys[low + half] <= key)
        size -= half
    if size == U(0) or keys[low] != key:
        return np.nan
    return np.float64(values[low])


@cache
def canonical_kernel(rows: int, cols: int) -> Callable[..., None]:
    """The kernel that prepares boards of one shape for lookup."""

    @kernel("void(uint64[::1], uint64[::1], int64[::1])")
    def prepare(boards: Words, keys: Words, ages: Counts) -> None:
        """Write the canonical form of each board, and its age."""
        for i in range(U(len(boards))):
            keys[i] = smallest(boards[i], rows, cols)
            ages[i] = age(boards[i])

    return prepare


@cache
def values_kernel(kind: str) -> Callable[..., None]:
    """The kernel that looks up keys in a layer with values of one kind."""

    @kernel(f"void(uint64[::1], uint64, uint64[::1], uint32[::1], {kind}[::1], float64[::1])")
    def values_of(
        wanted: Words, shift: U, keys: Words, starts: Halves, values: Floats, out: Floats
    ) -> None:
        """Write the value of each wanted key."""
        for i in range(len(wanted)):
            out[i] = value_of(wanted[i], shift, keys, starts, values)

    return values_of


@cache
def afters_kernel(rows: int, cols: int) -> Callable[..., None]:
    """The kernel of the four moves, in the order of directions, for boards of one shape."""

    @kernel("void(uint64[::1], uint32[::1], uint32[::1], uint64[:, ::1], float64[:, ::1])")
    def afters_of(
        boards: Words, across: Slides, down: Slides, afters: Words, rewards: Floats
    ) -> None:
        """Write the canonical afterstate (0 if the move is illegal) and the reward of each move."""
        cells = rows * cols
        for i in range(len(boards)):
            before = np.float64(potential(boards[i], cells))
            for direction in range(4):
                after = slide(boards[i], U(direction), across, down, rows, cols)
                legal = after != boards[i]
                afters[i, direction] = smallest(after, rows, cols) if legal else U(0)
                rewards[i, direction] = np.float64(potential(after, cells)) - before

    return afters_of


@cache
def spawned_kernel(rows: int, cols: int, kind: str) -> Callable[..., None]:
    """The kernel that values the spawns of one tile on afterstates of one shape."""
    shift = int(region_shift(rows * cols))

    @kernel(
        f"void(uint64[::1], uint64, float64, uint64[::1], uint32[::1], {kind}[::1], float64[::1])"
    )
    def spawned(
        afters: Words,
        rank: U,
        weight: float,
        keys: Words,
        starts: Halves,
        values: Floats,
        out: Floats,
    ) -> None:
        """Add to each afterstate the weighted mean value over the cells in which a tile spawns.

        A negative weight stands for the worst case: the least value then replaces a larger one.
        """
        boards, empty = np.empty(BLOCK, np.uint64), np.empty(BLOCK, np.uint64)
        states, sources = np.empty(BLOCK, np.uint64), np.empty(BLOCK, np.uint32)
        for start in range(0, len(afters), BLOCK):
            size = min(BLOCK, len(afters) - start)
            left = open_block(afters, start, size, boards, empty, rows, cols)
            for i in range(size):
                sources[i] = i
            while left > 0:
                for i in range(U(left)):
                    tile = lowest_cell(empty[i]) * rank
                    states[i] = smallest(boards[i] | tile, rows, cols)
                for i in range(left):
                    value = value_of(states[i], U(shift), keys, starts, values)
                    after = start + np.int64(sources[i])
                    if weight >= 0:
                        cells = count(empty_cells(afters[after], rows, cols))
                        out[after] += weight * value / np.float64(cells)
                    elif not value >= out[after] and not np.isnan(out[after]):
                        out[after] = value
                left = next_cells(boards, empty, sources, left)

    return spawned
