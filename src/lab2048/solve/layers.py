"""Every reachable state, one age after the other.

The states of an age come from the afterstates 2 younger by a spawned 2 and 4 younger by a spawned
4; their moves lead to the afterstates of the same age. So an age takes two steps, each a map over
parts of the keys:

    one range of keys out of the sorted lists of the states  ->  a part of the states
        ->  the sorted list of the afterstates that their moves lead to
    one range of keys out of the sorted lists of the afterstates  ->  a part of the afterstates
        ->  the sorted list of the states that spawns on them lead to

Here the parts are handed to threads; together they are the same however many there are. Few
calls of long kernels make up a step: each return from a kernel is a wait for Python's lock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import NamedTuple

import numpy as np

from lab2048.board import Pairs, Words, pairs
from lab2048.jit import U, kernel
from lab2048.solve.crew import Crew
from lab2048.solve.expand import WIN, Sources, all_moves, all_spawns, moves_kernel
from lab2048.solve.keys import SIEVE, Counts, cut, merge_range, region_shift, sift
from lab2048.solve.problem import Problem

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
        "UniTuple(int64, 2)(uint64[:, ::1], int64[::1], uint64[::1], "
        f"{pairs(cols).dtype}[::1], {pairs(rows).dtype}[::1], uint64[::1], uint64[::1], "
        "uint64[::1])"
    )
    def move_step(
        lists: Words,
        sizes: Counts,
        setting: Words,
        across: Pairs,
        down: Pairs,
        states: Words,
        edges: Words,
        desk: Words,
    ) -> tuple[int, int]:
        """Merge a part of the states and write the afterstates of their moves; how many of each.

        The setting is from which key, up to which, and the rank that ends the game. The desk is a
        sieve, and then room for the lists or the sources of the edges.
        """
        seen, spare = desk[:SIEVE], desk[SIEVE:]
        found = merge_range(lists, sizes, setting[0], setting[1], states, spare)
        sources = spare.view(np.uint32)
        moves = all_moves(states[:found], setting[2], across, down, edges, sources, rows, cols)
        return found, sift(edges, moves, seen, edges)

    return move_step


@cache
def spawn_step_kernel(rows: int, cols: int) -> Callable[..., tuple[int, int]]:
    """The kernel of the second step, for boards of one shape."""

    @kernel(
        "UniTuple(int64, 2)(uint64[:, ::1], int64[::1], uint64[::1], uint64[::1], uint64[::1], "
        "uint64[::1], uint64[::1])"
    )
    def spawn_step(
        lists: Words,
        sizes: Counts,
        setting: Words,
        younger: Words,
        afters: Words,
        states: Words,
        desk: Words,
    ) -> tuple[int, int]:
        """Merge a part of the afterstates and write the states of their spawns; how many of each.

        The setting is from which key, up to which, whether 2s spawn, and whether 4s; the 4s spawn
        on afterstates 2 younger. The desk is a sieve, and then room for the lists.
        """
        seen, spare = desk[:SIEVE], desk[SIEVE:]
        found = merge_range(lists, sizes, setting[0], setting[1], afters, spare)
        spawned = 0
        if setting[2] != U(0):
            spawned = all_spawns(afters[:found], U(1), states, spawned, rows, cols)
        if setting[3] != U(0):
            spawned = all_spawns(younger, U(2), states, spawned, rows, cols)
        return found, sift(states, spawned, seen, states)

    return spawn_step


class Lists:
    """Sorted lists of keys, one a part, in memory that is used again and again."""

    def __init__(self, parts: int) -> None:
        self.rows = np.empty((parts, 0), np.uint64)
        self.sizes = np.zeros(parts, np.int64)

    def reserve(self, size: int) -> None:
        """Room for lists of so many keys; what was in them is gone."""
        if self.rows.shape[1] < size:
            self.rows = np.empty((len(self.sizes), size * 5 // 4), np.uint64)

    def put(self, keys: Words) -> None:
        """Have one list, of these keys, and no other."""
        self.reserve(len(keys))
        self.sizes[:] = 0
        self.close(0, keys, 0)

    def close(self, part: int, more: Words, size: int) -> None:
        """Add keys to the list of a part, which has so many, and sort it."""
        row = self.rows[part, : size + len(more)]
        row[size:] = more
        row.sort()
        self.sizes[part] = len(row)

    def divide(self, parts: int, shift: U) -> tuple[Words, Counts]:
        """The keys that cut all lists together into parts, and how many keys a part has then."""
        cuts, counts = np.empty(parts + 1, np.uint64), np.empty(parts, np.int64)
        cut(self.rows, self.sizes, shift, cuts, counts)
        return cuts, counts


class Enumeration:
    """All layers of a problem, youngest first."""

    def __init__(self, problem: Problem, crew: Crew) -> None:
        rules = problem.rules
        self.crew = crew
        self.age = 4
        self._cells = rules.cells
        self._shift = region_shift(rules.cells)
        self._stop, self._twos, self._fours = U(problem.stop), U(rules.p4 < 1), U(rules.p4 > 0)
        self._pairs = pairs(rules.cols), pairs(rules.rows)
        self._move_step = move_step_kernel(rules.rows, rules.cols)
        self._spawn_step = spawn_step_kernel(rules.rows, rules.cols)
        self._starts: dict[int, Words] = {}
        boards = {board for _, _, board in problem.starts()}
        for age in (4, 6, 8):
            keys = [board.packed for board in boards if board.age == age]
            self._starts[age] = np.array(keys, np.uint64)
        # the desks have sieves for states and for afterstates: they may be the same boards
        self._desks = np.zeros((2, crew.threads, SIEVE), np.uint64)
        self._states, self._afters = Lists(crew.threads), Lists(crew.threads)
        self._states.put(self._starts[4])
        self._younger: list[Words] = []

    def go_on_from(self, age: int, younger: Words, youngest: Words) -> None:
        """Take up the work at an age, with the afterstates of the two ages before it."""
        self.age = age - 2
        parts = self.crew.parts(len(younger))
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
        """The states of this age, part by part; writes the lists of their afterstates."""
        parts = self.crew.parts(int(self._states.sizes.sum()))
        cuts, counts = self._states.divide(parts, self._shift)
        largest = int(counts.max())
        self._reserve_desks(2 * largest + 1)
        self._afters.reserve(4 * largest + 1)
        self._afters.sizes[:] = 0

        def move(part: int) -> Words:
            states = np.empty(counts[part], np.uint64)
            setting = np.array([cuts[part], cuts[part + 1], self._stop])
            found, listed = self._move_step(
                self._states.rows,
                self._states.sizes,
                setting,
                *self._pairs,
                states,
                self._afters.rows[part],
                self._desks[0, part],
            )
            self._afters.close(part, NONE, listed)
            return states[:found]

        return self.crew.run([partial(move, part) for part in range(parts)])

    def _spawn(self, parts: int) -> list[Words]:
        """The afterstates of this age, part by part; writes the lists of the next age's states."""
        cuts, counts = self._afters.divide(parts, self._shift)
        younger = _dealt(self._younger, parts)
        starts = self._starts.get(self.age + 2, NONE)
        room = [self._cells * (n + len(y)) for n, y in zip(counts.tolist(), younger, strict=True)]
        self._reserve_desks(int(counts.max()))
        self._states.reserve(max(room) + len(starts))
        self._states.sizes[:] = 0

        def spawn(part: int) -> Words:
            afters = np.empty(counts[part], np.uint64)
            setting = np.array([cuts[part], cuts[part + 1], self._twos, self._fours])
            found, listed = self._spawn_step(
                self._afters.rows,
                self._afters.sizes,
                setting,
                younger[part],
                afters,
                self._states.rows[part],
                self._desks[1, part],
            )
            self._states.close(part, NONE if part else starts, listed)
            return afters[:found]

        self._younger = self.crew.run([partial(spawn, part) for part in range(parts)])
        return self._younger

    def _reserve_desks(self, size: int) -> None:
        """Room for so many words behind the sieves."""
        if self._desks.shape[2] < SIEVE + size:
            self._desks = np.zeros((2, self.crew.threads, SIEVE + size * 5 // 4), np.uint64)


def _dealt(lots: Sequence[Words], parts: int) -> list[Words]:
    """The lots as so many: some are put together, or some are empty."""
    if len(lots) <= parts:
        return [*lots, *[NONE] * (parts - len(lots))]
    return [*lots[: parts - 1], np.concatenate(lots[parts - 1 :])]


class Mover:
    """The moves of many states, in memory that is used again and again."""

    def __init__(self, problem: Problem) -> None:
        rules = problem.rules
        self._stop = U(problem.stop)
        self._pairs = pairs(rules.cols), pairs(rules.rows)
        self._moves = moves_kernel(rules.rows, rules.cols)
        self._edges, self._sources = NONE, np.empty(0, np.uint32)

    def __call__(self, states: Words) -> tuple[Words, Sources]:
        """The afterstates of all moves, and whose they are; good until the next call."""
        size = 4 * len(states) + 1
        if len(self._edges) < size:
            self._edges = np.empty(size * 5 // 4, np.uint64)
            self._sources = np.empty(size * 5 // 4, np.uint32)
        found = self._moves(states, self._stop, *self._pairs, self._edges, self._sources)
        return self._edges[:found], self._sources[:found]


def afterstates(edges: Words) -> Words:
    """The distinct afterstates among the edges, sorted."""
    keys = np.sort(edges[edges != WIN])
    return keys[np.flatnonzero(np.diff(keys, prepend=U(0)))]
