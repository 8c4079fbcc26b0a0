"""The memory of expectimax: a table of the afterstates that it has valued, and its lanes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

from lab2048.engine.arrays import Counts, Floats, Words
from lab2048.engine.jit import U, fragment
from lab2048.engine.packed import mix

LANES = 64
"""States whose moves are made and valued together."""
ENOUGH = 1 << 62
"""A budget of moves that is never used up."""

# places in `Memory.tally`
MADE, BUDGET, FOUND, KEPT, MASK = range(5)


class Memory(NamedTuple):
    """The working memory of a search. Not to be shared by threads."""

    keys: Words
    """The afterstates that were valued: one row per number of moves to go."""
    values: Floats
    tally: Counts
    """The number of moves made and valued, and its limit; of values found in the table, and kept
    there; and the mask of places in use, as short searches are faster with a small table."""
    kept: Counts
    """Where values were kept, for `forget`; as many as there is room for."""
    lanes: Words
    """The states in the lanes, and scratch space to value them; see `best_moves`."""
    best: Floats


def table_size(depth: int) -> int:
    """The number of afterstates that a search of this depth keeps, per number of moves to go."""
    return 1 << min(3 * depth + 1, 16)


def new_memory(depth: int) -> Memory:
    """A memory with room for a search of this depth."""
    size = table_size(depth)
    return Memory(
        np.zeros((depth, size), np.uint64),
        np.empty((depth, size), np.float64),
        np.array([0, ENOUGH, 0, 0, size - 1]),
        np.empty(size, np.int64),
        np.zeros((5, LANES), np.uint64),
        np.zeros((2, LANES), np.float64),
    )


MEMORY = numba.typeof(new_memory(1))
"""The Numba type of a `Memory`."""


@fragment
def look_up(after: U, depth: int, memory: Any) -> tuple[U, bool]:
    """The place of an afterstate in the table of this depth, and whether it is there."""
    place = mix(after) & U(memory.tally[MASK])
    return place, memory.keys[depth, place] == after


@fragment
def keep(after: U, depth: int, place: U, value: float, memory: Any) -> None:
    """Put a value into the table."""
    memory.keys[depth, place], memory.values[depth, place] = after, value
    number = memory.tally[KEPT]
    if number < len(memory.kept):
        memory.kept[number] = depth * memory.keys.shape[1] + np.int64(place)
    memory.tally[KEPT] = number + 1


@fragment
def forget(memory: Any) -> None:
    """Clear the table: only the places where values were kept, unless these did not all fit."""
    if memory.tally[KEPT] > len(memory.kept):
        memory.keys[:] = U(0)
    else:
        keys = memory.keys.reshape(memory.keys.size)
        for number in range(memory.tally[KEPT]):
            keys[memory.kept[number]] = U(0)
    memory.tally[KEPT] = 0
