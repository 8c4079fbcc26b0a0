"""Every reachable state, one age after the other.

The states of an age come from the afterstates 2 younger by a spawned 2 and 4 younger by a spawned
4; their moves lead to the afterstates of the same age. So an age takes two steps, each a map over
parts of the keys:

    one range of keys out of the sorted lists of the states  ->  a part of the states
        ->  the sorted list of the afterstates that their moves lead to
    one range of keys out of the sorted lists of the afterstates  ->  a part of the afterstates
        ->  the sorted list of the states that spawns on them lead to

Here threads work on the parts; the result does not depend on their number. A step consists of a few
calls of long kernels, because each return from a kernel has to wait for Python's global lock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import NamedTuple

import numpy as np

from lab2048.engine.arrays import Buffer, Counts, Halves, Pairs, Words
from lab2048.engine.jit import U, kernel
from lab2048.engine.slides import pairs
from lab2048.solver.keys import SIEVE, cut, merge_runs, region_shift, sift
from lab2048.solver.problem import Problem
from lab2048.solver.successors import WIN, all_moves, all_spawns, moves_kernel
from lab2048.solver.threads import WorkerThreads

NONE: Words = np.empty(0, np.uint64)


class Layer(NamedTuple):
    """The canonical keys of one age, sorted, part after part."""

    age: int
    states: list[Words]
    afters: list[Words]


@cache
def move_step_kernel(rows: int, cols: int) -> Callable[..., tuple[int, int]]:
    """The kernel of the first step, for boards of one shape."""

    @kernel(
        f"UniTuple(int64, 2)(uint64[::1], int64[:, ::1], uint64, {pairs(cols).dtype}[::1], "
        f"{pairs(rows).dtype}[::1], uint64[::1], uint64[::1], uint64[::1])"
    )
    def move_step(
        flat: Words,
        places: Counts,
        stop: U,
        across: Pairs,
        down: Pairs,
        states: Words,
        edges: Words,
        desk: Words,
    ) -> tuple[int, int]:
        """Merge a part of the states, write the afterstates of their moves; return both numbers.

        The rank `stop` ends the game. `desk` is a sieve, followed by scratch space for merging and
        then for the sources of the edges.
        """
        seen, spare = desk[:SIEVE], desk[SIEVE:]
        found = merge_runs(flat, places, states, spare)
        sources = spare.view(np.uint32)
        moves = all_moves(states[:found], stop, across, down, edges, sources, rows, cols)
        return found, sift(edges, moves, seen, edges)

    return move_step


@cache
def spawn_step_kernel(rows: int, cols: int) -> Callable[..., tuple[int, int]]:
    """The kernel of the second step, for boards of one shape."""

    @kernel(
        "UniTuple(int64, 2)(uint64[::1], int64[:, ::1], float64, uint64[::1], uint64[::1], "
        "uint64[::1], uint64[::1])"
    )
    def spawn_step(
        flat: Words,
        places: Counts,
        p4: float,
        younger: Words,
        afters: Words,
        states: Words,
        desk: Words,
    ) -> tuple[int, int]:
        """Merge a part of the afterstates, write the states of their spawns; return both numbers.

        4s spawn on `younger`, the afterstates 2 younger. `desk` is a sieve, followed by scratch
        space for merging.
        """
        seen, spare = desk[:SIEVE], desk[SIEVE:]
        found = merge_runs(flat, places, afters, spare)
        spawned = 0
        if p4 < 1:
            spawned = all_spawns(afters[:found], U(1), states, spawned, rows, cols)
        if p4 > 0:
            spawned = all_spawns(younger, U(2), states, spawned, rows, cols)
        return found, sift(states, spawned, seen, states)

    return spawn_step


class Lists:
    """Sorted lists of keys, one per part, in reusable buffers."""

    def __init__(self, parts: int) -> None:
        self._buffer = Buffer(np.uint64)
        self.rows: Words = self._buffer.take(parts, 0)
        self.sizes = np.zeros(parts, np.int64)

    def reserve(self, size: int) -> None:
        """Make room for lists of `size` keys; their contents are lost."""
        self.rows = self._buffer.take(len(self.sizes), size)

    def put(self, keys: Words) -> None:
        """Replace all lists with one that holds these keys."""
        self.reserve(len(keys))
        self.sizes[:] = 0
        self.close(0, keys, 0)

    def close(self, part: int, more: Words, size: int) -> None:
        """Add keys to the list of a part, which already holds `size`, and sort it."""
        row = self.rows[part, : size + len(more)]
        row[size:] = more
        row.sort()
        self.sizes[part] = len(row)

    def divide(self, parts: int, shift: U) -> list[Counts]:
        """Where the runs of each part begin and end (`keys.cut`)."""
        places = np.empty((parts + 1, len(self.sizes)), np.int64)
        cut(self.rows, self.sizes, shift, places)
        return [places[part : part + 2] for part in range(parts)]


class Expander:
    """Both steps of an age for one part of its keys, with reusable buffers."""

    def __init__(self, problem: Problem) -> None:
        rules = problem.rules
        self._p4, self._stop = rules.p4, U(problem.objective.stop)
        self._pairs = pairs(rules.cols), pairs(rules.rows)
        self._move_step = move_step_kernel(rules.rows, rules.cols)
        self._spawn_step = spawn_step_kernel(rules.rows, rules.cols)
        # one sieve per step: a board may be both a state and an afterstate
        self._desks = np.zeros((2, SIEVE), np.uint64)

    def move(self, flat: Words, places: Counts, out: Words) -> tuple[Words, int]:
        """Merge runs of states, and write their afterstates to `out`, unsorted.

        Run r is flat[places[0, r]:places[1, r]]. Returns the distinct states and the number of
        afterstates written.
        """
        keys = runs_size(places)
        states = np.empty(keys, np.uint64)
        desk = self._desk(0, 2 * keys + 1)
        found, listed = self._move_step(flat, places, self._stop, *self._pairs, states, out, desk)
        return states[:found], listed

    def spawn(self, flat: Words, places: Counts, younger: Words, out: Words) -> tuple[Words, int]:
        """Merge runs of afterstates, and write the states 2 older to `out`, as `move` does."""
        afters = np.empty(runs_size(places), np.uint64)
        desk = self._desk(1, len(afters))
        found, listed = self._spawn_step(flat, places, self._p4, younger, afters, out, desk)
        return afters[:found], listed

    def forget(self) -> None:
        """Clear the sieves: keys of an age done before would be taken for duplicates."""
        self._desks[:, :SIEVE] = 0

    def _desk(self, which: int, size: int) -> Words:
        """A sieve, initially all zeros, followed by at least `size` words of scratch space."""
        if self._desks.shape[1] < SIEVE + size:
            self._desks = np.zeros((2, SIEVE + size * 5 // 4), np.uint64)
        desk: Words = self._desks[which]
        return desk


def runs_size(places: Counts) -> int:
    """The number of keys in all runs."""
    return int((places[1] - places[0]).sum())


def moves_room(keys: int) -> int:
    """The length that suffices for a list of the afterstates of `keys` states."""
    return 4 * keys + 1


def spawns_room(keys: int, cells: int) -> int:
    """The length that suffices for a list of the states after spawns on `keys` afterstates."""
    return cells * keys


class Enumeration:
    """All layers of a problem, youngest first."""

    def __init__(self, problem: Problem, threads: WorkerThreads) -> None:
        self.threads = threads
        self.age = 4
        self._cells = problem.rules.cells
        self._shift = region_shift(self._cells)
        self._starts: dict[int, Words] = {}
        boards = {board for _, _, board in problem.starts()}
        for age in (4, 6, 8):
            keys = [board.packed for board in boards if board.age == age]
            self._starts[age] = np.array(keys, np.uint64)
        self._expanders = [Expander(problem) for _ in range(threads.count)]
        self._states, self._afters = Lists(threads.count), Lists(threads.count)
        self._states.put(self._starts[4])
        self._younger: list[Words] = []

    def go_on_from(self, age: int, younger: Words, youngest: Words) -> None:
        """Resume at an age, given the afterstates 2 and 4 younger."""
        self.age = age - 2
        parts = self.threads.parts(len(younger))
        self._younger = np.array_split(youngest, parts)
        self._afters.put(younger)
        self._spawn(parts)
        self.age = age

    def __iter__(self) -> Iterator[Layer]:
        while self.age <= 8 or self._states.sizes.any() or any(map(len, self._younger)):
            states = self._move()
            afters = self._spawn(len(states))
            yield Layer(self.age, states, afters)
            self.age += 2

    def _move(self) -> list[Words]:
        """Return the states of this age by part; fill the lists of their afterstates."""
        parts = self.threads.parts(int(self._states.sizes.sum()))
        runs = self._states.divide(parts, self._shift)
        flat = self._states.rows.reshape(-1)
        self._afters.reserve(moves_room(max(map(runs_size, runs))))
        self._afters.sizes[:] = 0

        def move(part: int) -> Words:
            states, listed = self._expanders[part].move(flat, runs[part], self._afters.rows[part])
            self._afters.close(part, NONE, listed)
            return states

        return self.threads.run([partial(move, part) for part in range(parts)])

    def _spawn(self, parts: int) -> list[Words]:
        """Return the afterstates of this age by part; fill the lists of the next age's states."""
        runs = self._afters.divide(parts, self._shift)
        flat = self._afters.rows.reshape(-1)
        younger = _dealt(self._younger, parts)
        starts = self._starts.get(self.age + 2, NONE)
        counts = map(runs_size, runs)
        most = max(count + len(lot) for count, lot in zip(counts, younger, strict=True))
        self._states.reserve(spawns_room(most, self._cells) + len(starts))
        self._states.sizes[:] = 0

        def spawn(part: int) -> Words:
            afters, listed = self._expanders[part].spawn(
                flat, runs[part], younger[part], self._states.rows[part]
            )
            self._states.close(part, NONE if part else starts, listed)
            return afters

        self._younger = self.threads.run([partial(spawn, part) for part in range(parts)])
        return self._younger


def _dealt(lots: Sequence[Words], parts: int) -> list[Words]:
    """Turn lots into exactly `parts` lots: join the last ones, or append empty ones."""
    if len(lots) <= parts:
        return [*lots, *[NONE] * (parts - len(lots))]
    return [*lots[: parts - 1], np.concatenate(lots[parts - 1 :])]


class Mover:
    """The moves of many states, with reusable buffers."""

    def __init__(self, problem: Problem) -> None:
        rules = problem.rules
        self._stop = U(problem.objective.stop)
        self._pairs = pairs(rules.cols), pairs(rules.rows)
        self._moves = moves_kernel(rules.rows, rules.cols)
        self._edges, self._sources = Buffer(np.uint64), Buffer(np.uint32)

    def __call__(self, states: Words) -> tuple[Words, Halves]:
        """The afterstates of all moves and the places of their states; reused by the next call."""
        size = 4 * len(states) + 1
        edges, sources = self._edges.take(size), self._sources.take(size)
        found = self._moves(states, self._stop, *self._pairs, edges, sources)
        return edges[:found], sources[:found]


def afterstates(edges: Words) -> Words:
    """The distinct afterstates among the edges, sorted."""
    keys = np.sort(edges[edges != WIN])
    return keys[np.flatnonzero(np.diff(keys, prepend=U(0)))]
