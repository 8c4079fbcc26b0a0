"""What expectimax remembers: the afterstates that it has valued, and the lanes that it works in."""

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
"""No limit to the moves that are made."""

# places in `Memory.tally`
MADE, BUDGET, FOUND, KEPT, MASK = range(5)


class Memory(NamedTuple):
    """What a search works with. Not to be shared by threads."""

    keys: Words
    """The afterstates that were valued: a row for each number of moves to go."""
    values: Floats
    tally: Counts
    """Moves that were made and valued, how many may be; values that were found, and were kept; and
    how much of the table is in use: a search that is short is faster if it is small."""
    kept: Counts
    """Where values were kept, so that they can be forgotten; as many as there is room for."""
    lanes: Words
    """The states in the lanes, and what it takes to value them; see `best_moves`."""
    best: Floats


def table_size(depth: int) -> int:
    """How many afterstates a search of this depth keeps, for each number of moves to go."""
    return 1 << min(3 * depth + 1, 16)


def new_memory(depth: int) -> Memory:
    """Room for a search of this depth."""
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
    """Where an afterstate would be in the table of this depth, and whether it is there."""
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
    """Clear the table, which takes as long as there is something in it."""
    if memory.tally[KEPT] > len(memory.kept):
        memory.keys[:] = U(0)
    else:
        keys = memory.keys.reshape(memory.keys.size)
        for number in range(memory.tally[KEPT]):
            keys[memory.kept[number]] = U(0)
    memory.tally[KEPT] = 0
