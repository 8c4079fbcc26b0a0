"""Backward induction: the value of every state, oldest layer first.

With V the value of a state and W that of an afterstate (`after_value`),

    W(x) = the mean of V over the spawns on x          V(s) = max over moves of r + gamma * W(x)

for the expected score; `lab2048.solver.objective` says what other objectives vary. A terminal state
is worth 0.

A move's reward is what it adds to the board's `potential` M, so each move needs only one number of
its afterstate: A(x) = points * M(x) + gamma * W(x) + per_move, and
V(s) = max A(x) - points * M(s).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial

import numpy as np

from lab2048.engine.arrays import Floats, Halves, Words
from lab2048.engine.jit import U, fragment, kernel, note
from lab2048.engine.packed import count, empty_cells, lowest_cell, potential, smallest
from lab2048.solver.enumeration import Mover
from lab2048.solver.keys import Index, cut, fill, find, region_shift
from lab2048.solver.problem import Problem
from lab2048.solver.successors import BLOCK, next_cells, open_block
from lab2048.solver.threads import WorkerThreads


@fragment
def add_up(total: Floats, sources: Halves, found: Floats, size: int, weight: float) -> None:
    """Add the values found to the totals of their afterstates, or keep the least value of each.

    `weight` is the chance of the tile that spawned, or negative for the worst case.
    """
    if weight < 0:
        for i in range(size):
            total[sources[i]] = min(total[sources[i]], found[i])
    else:
        for i in range(size):
            total[sources[i]] += weight * found[i]


@cache
def value_afters_kernel(rows: int, cols: int) -> Callable[..., int]:
    """The kernel that values afterstates of one shape."""

    @kernel(
        "int64(uint64[::1], uint64[::1], uint64[::1], float64[::1], float64[::1], uint64[::1], "
        "uint64)"
    )
    def value_afters(
        keys: Words, two: Words, four: Words, rule: Floats, out: Floats, index: Words, begin: U
    ) -> int:
        """Write A of each afterstate, also to an index; return the number of states not found.

        `two` and `four` are the indexes of the states 2 and 4 older, `rule` is `Problem.rule`.
        """
        p4, gamma, points, per_move = rule[0], rule[1], rule[3], rule[4]
        worst, mixed = rule[2] == 1, 0 < rule[2] < 1
        two_values, four_values = two.view(np.float64), four.view(np.float64)
        boards, empty = np.empty(BLOCK, np.uint64), np.empty(BLOCK, np.uint64)
        states, sources = np.empty(BLOCK, np.uint64), np.empty(BLOCK, np.uint32)
        found, total = np.empty(BLOCK, np.float64), np.empty(BLOCK, np.float64)
        missed, least = np.empty(BLOCK, np.int64), np.empty(BLOCK, np.float64)
        lost = 0
        for start in range(0, len(keys), BLOCK):
            size = min(BLOCK, len(keys) - start)
            left = open_block(keys, start, size, boards, empty, rows, cols)
            for i in range(size):
                sources[i] = i
                total[i] = np.inf if worst else 0.0
                least[i] = np.inf
            while left > 0:
                if p4 < 1:
                    for i in range(left):
                        tile = lowest_cell(empty[i])
                        states[i] = smallest(boards[i] | tile, rows, cols)
                    lost += find(states, 0, left, two, two_values, found, missed, 0.0)
                    add_up(total, sources, found, left, -1.0 if worst else 1 - p4)
                    if mixed:
                        add_up(least, sources, found, left, -1.0)
                if p4 > 0:
                    for i in range(left):
                        tile = lowest_cell(empty[i])
                        states[i] = smallest(boards[i] | (tile << U(1)), rows, cols)
                    lost += find(states, 0, left, four, four_values, found, missed, 0.0)
                    add_up(total, sources, found, left, -1.0 if worst else p4)
                    if mixed:
                        add_up(least, sources, found, left, -1.0)
                left = next_cells(boards, empty, sources, left)
            for i in range(U(size)):
                key = keys[U(start) + i]
                cells = count(empty_cells(key, rows, cols))
                mean = total[i] if worst else total[i] / np.float64(cells)
                if mixed:
                    mean += rule[2] * (least[i] - mean)
                score = points * np.float64(potential(key, rows * cols))
                out[U(start) + i] = score + gamma * mean + per_move
        fill(keys, out, index, begin)
        return lost

    return value_afters


@cache
def value_states_kernel(rows: int, cols: int) -> Callable[..., tuple[int, int]]:
    """The kernel that values states of one shape."""
    cells = rows * cols

    @kernel(
        "UniTuple(int64, 2)(uint64[::1], uint64[::1], uint32[::1], uint64[::1], float64[::1], "
        "float64[::1], uint64[::1], uint64)"
    )
    def value_states(
        keys: Words,
        edges: Words,
        sources: Halves,
        afters: Words,
        rule: Floats,
        out: Floats,
        index: Words,
        begin: U,
    ) -> tuple[int, int]:
        """Write V of each state, also to an index.

        `edges` and `sources` are the states' moves, `afters` is the index of A. Returns the number
        of afterstates not found and the number of states without a move.
        """
        values, points, won = afters.view(np.float64), rule[3], rule[5]
        found, missed = np.empty(BLOCK, np.float64), np.empty(BLOCK, np.int64)
        out[:] = -1.0  # no move yet
        lost = 0
        for start in range(0, len(edges), BLOCK):
            size = min(BLOCK, len(edges) - start)
            lost += find(edges, start, size, afters, values, found, missed, won)
            for i in range(size):
                source = sources[U(start + i)]
                out[source] = max(out[source], found[i])
        terminals = 0
        for i in range(len(keys)):
            best = out[i] - points * np.float64(potential(keys[i], cells))
            terminals += int(out[i] < 0)
            out[i] = best if out[i] >= 0 else 0.0
        fill(keys, out, index, begin)
        return lost, terminals

    return value_states


class Induction:
    """Computes the values of all layers of a problem, oldest first."""

    def __init__(self, problem: Problem, threads: WorkerThreads) -> None:
        rules = problem.rules
        self.threads = threads
        self.terminals = 0
        self._shift = region_shift(rules.cells)
        self._rule = np.array(problem.rule)
        self._value_afters = value_afters_kernel(rules.rows, rules.cols)
        self._value_states = value_states_kernel(rules.rows, rules.cols)
        self._movers = [Mover(problem) for _ in range(threads.count)]
        note(f"solve-{rules.name}")  # these are the last kernels that a solve needs
        self._afters = Index(rules.cells)
        self._two, self._four, self._next = (Index(rules.cells) for _ in range(3))

    def go_on_from(self, older: tuple[Words, Floats], oldest: tuple[Words, Floats]) -> None:
        """Resume, given the keys and values of the layers 2 and 4 older."""
        for index, (keys, values) in ((self._two, older), (self._four, oldest)):
            (begin,) = index.share_out([len(keys)])
            fill(keys, values, index.words, begin)

    def step(self, states: Words, afters: Words) -> Floats:
        """Return the values of the next younger age's states, given the keys of that age."""
        parts = self.threads.parts(len(states))
        lots, after_lots = (divided(keys, parts, self._shift) for keys in (states, afters))
        begins = self._next.share_out([len(lot) for lot in lots])
        after_begins = self._afters.share_out([len(lot) for lot in after_lots])
        values, after_values = np.empty(len(states)), np.empty(len(afters))
        two, four, index = self._two.words, self._four.words, self._afters.words

        def afters_and_moves(part: int) -> tuple[Words, Halves]:
            lot, out = after_lots[part], after_values[_place(after_lots, part)]
            check_all_found(
                self._value_afters(lot, two, four, self._rule, out, index, after_begins[part])
            )
            return self._movers[part](lots[part])

        moves = self.threads.run([partial(afters_and_moves, part) for part in range(parts)])

        def states_of(part: int) -> int:
            lost, terminals = self._value_states(
                lots[part],
                *moves[part],
                index,
                self._rule,
                values[_place(lots, part)],
                self._next.words,
                begins[part],
            )
            check_all_found(lost)
            return terminals

        self.terminals += sum(self.threads.run([partial(states_of, part) for part in range(parts)]))
        self._two, self._four, self._next = self._next, self._two, self._four
        return values


def divided(keys: Words, parts: int, shift: U) -> list[Words]:
    """Split sorted keys into parts of about the same size, without cutting a region in two."""
    places = np.empty((parts + 1, 1), np.int64)
    cut(keys.reshape(1, -1), np.array([len(keys)]), shift, places)
    return np.split(keys, places[1:-1, 0])


def _place(lots: Sequence[Words], part: int) -> slice:
    """The slice of one lot in the concatenation of all."""
    begin = sum(map(len, lots[:part]))
    return slice(begin, begin + len(lots[part]))


def check_all_found(lost: int) -> None:
    """Raise a `RuntimeError` if boards were not found in the layer that should hold them."""
    if lost:
        raise RuntimeError(f"{lost} boards are missing from the layers; please report this")
