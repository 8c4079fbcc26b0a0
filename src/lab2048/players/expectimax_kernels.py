"""The kernels of expectimax; `lab2048.players.expectimax` says what they compute.

The last moves are most of the work: the states that spawns lead to are put into lanes, and all
their moves are made and valued there in short loops. A table holds the afterstates that were valued
before, by the number of moves to go, so it does not change the result.

With a cut-off, afterstates reached with less than this probability are valued by H at once. The
value in the table may then come from a path to the same board that has another probability.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import types

from lab2048.engine.array_types import COUNTS, FLOAT_ROWS, FLOATS, WORD_ROWS, WORDS
from lab2048.engine.arrays import Counts, Floats, Words
from lab2048.engine.jit import U, fragment, kernel
from lab2048.engine.packed import count, lowest_cell, mix, transpose
from lab2048.engine.slides import OVERFLOW, reward_rows, slide_both
from lab2048.players.heuristics import Evaluate, line_sums
from lab2048.players.search_memory import BUDGET, FOUND, LANES, MADE, MEMORY, forget, keep, look_up
from lab2048.players.search_step import SPAWNING, Steps, steps

MOST = 120
"""The most afterstates that one afterstate can lead to: by 30 spawns and 4 moves."""
SEEN = 256
"""Places for them in a small hash table."""

TrySlides = Callable[[Words, Words, Any, Words, Floats], None]
BestMoves = Callable[[Words, int, Any, Floats], None]
LastValues = Callable[[Words, Floats, Any, Any, Any, Floats], None]
Expand = Callable[[U, Any, Any, Counts, Floats, Words], int]
ValuesOf = Callable[[Words, Floats, int, Any, Any, Any, Floats], None]
RootValues = Callable[[Words, int, Any, Any, Any, Floats], None]


@fragment
def add_lanes(filled: int, weights: Floats, wanted: Counts, best: Floats, out: Floats) -> None:
    """Add the values found in the lanes to those of their afterstates."""
    for j in range(filled):
        out[wanted[j]] += weights[j] * best[0, j]


# -- the last move: states in lanes --------------------------------------------------------------


def try_slides_kernel(step: Steps, evaluate: Evaluate, on_side: bool) -> TrySlides:
    """The kernel that values slid boards; those `on_side` are transposed."""
    rows, cols = step.rows, step.cols

    @kernel(types.void(WORDS, WORDS, step.by, WORDS, FLOATS))
    def try_slides(before: Words, slid: Words, by: Any, other: Words, best: Floats) -> None:
        """Raise `best` to the value of the slid board in every lane where something moved.

        `other` is scratch space.
        """
        for j in range(LANES):
            other[j] = transpose(slid[j], cols, rows) if on_side else transpose(slid[j], rows, cols)
        for j in range(LANES):
            board, turned = (other[j], slid[j]) if on_side else (slid[j], other[j])
            value = evaluate(board, turned, by, rows, cols)
            best[j] = max(best[j], value if slid[j] != before[j] else -np.inf)

    return try_slides


def best_moves_kernel(step: Steps, evaluate: Evaluate) -> BestMoves:
    """The kernel that makes the last move on the boards of all lanes."""
    rows, cols = step.rows, step.cols
    try_slides = try_slides_kernel(step, evaluate, False)
    try_turned = try_slides_kernel(step, evaluate, True)

    @kernel(types.void(WORD_ROWS, types.int64, step.by, FLOAT_ROWS))
    def best_moves(lanes: Words, filled: int, by: Any, best: Floats) -> None:
        """Write the best Q of a single move on the board of every lane.

        Without a legal move it is the value of a dead end. Unfilled lanes are computed too.

        The boards are the first row of `lanes`; the other four are scratch space. So is the second
        row of `best`, whose first gets the result.
        """
        boards, turned, first, last, other = lanes[0], lanes[1], lanes[2], lanes[3], lanes[4]
        across, down = best[0], best[1]
        for j in range(LANES):
            across[j] = down[j] = -np.inf
            turned[j] = transpose(boards[j], rows, cols)
        for j in range(LANES):
            first[j], last[j] = slide_both(boards[j], by.across, rows, cols)
        try_slides(boards, first, by, other, across)
        try_slides(boards, last, by, other, across)
        for j in range(LANES):
            first[j], last[j] = slide_both(turned[j], by.down, cols, rows)
        try_turned(turned, first, by, other, down)
        try_turned(turned, last, by, other, down)
        if by.scored:
            for j in range(LANES):
                gained = reward_rows(boards[j], by.across_rewards, rows, cols) & ~U(OVERFLOW)
                across[j] += np.float64(gained)
                gained = reward_rows(turned[j], by.down_rewards, cols, rows) & ~U(OVERFLOW)
                down[j] += np.float64(gained)
        for j in range(LANES):
            value = max(across[j], down[j])
            across[j] = value if value > -np.inf else by.dead

    return best_moves


def last_values_kernel(step: Steps, best_moves: BestMoves) -> LastValues:
    """The kernel that values afterstates with one move to go."""
    worth, open_cells = step.worth, step.open_cells

    @kernel(types.void(WORDS, FLOATS, step.by, SPAWNING, MEMORY, FLOATS))
    def last_values(
        afters: Words, chances: Floats, by: Any, spawns: Any, memory: Any, out: Floats
    ) -> None:
        """Write W(x, 1) of each afterstate."""
        weights, wanted = np.empty(LANES, np.float64), np.empty(LANES, np.int64)
        fresh, boards = np.zeros(len(afters), np.bool_), memory.lanes[0]
        filled = 0
        for i in range(len(afters)):
            after = afters[i]
            if chances[i] < spawns.cutoff:
                out[i] = worth(after, by)
                continue
            place, known = look_up(after, 1, memory)
            if known:
                out[i] = memory.values[1, place]
                memory.tally[FOUND] += 1
                continue
            fresh[i], out[i] = True, 0.0
            cells = open_cells(after, spawns)
            n = np.float64(count(cells))
            while cells:
                tile = lowest_cell(cells)
                cells ^= tile
                for rank in range(1, 3):
                    weight = (spawns.two if rank == 1 else spawns.four) / n
                    if weight > 0:
                        boards[filled], weights[filled] = after | (tile * U(rank)), weight
                        wanted[filled] = i
                        filled += 1
                if filled > LANES - 2:
                    # in full, not in a fragment that is given the records: the references to all
                    # their arrays would be counted around the call, which takes 5% of the search
                    best_moves(memory.lanes, filled, by, memory.best)
                    add_lanes(filled, weights, wanted, memory.best, out)
                    memory.tally[MADE] += 4 * filled
                    filled = 0
        if filled:
            best_moves(memory.lanes, filled, by, memory.best)
            add_lanes(filled, weights, wanted, memory.best, out)
            memory.tally[MADE] += 4 * filled
        for i in range(len(afters)):
            if fresh[i]:
                place, _ = look_up(afters[i], 1, memory)
                keep(afters[i], 1, place, out[i], memory)

    return last_values


# -- the moves before it -------------------------------------------------------------------------


@fragment
def add_seen(after: U, seen: Words, numbers: Counts, afters: Words, found: int) -> int:
    """The number of an afterstate among the `found` ones so far, to which it is added if new."""
    place = mix(after) & U(SEEN - 1)
    while seen[place] != after:
        if seen[place] == U(0):
            seen[place], numbers[place] = after, found
            afters[found] = after
            break
        place = (place + U(1)) & U(SEEN - 1)
    return int(numbers[place])


def expand_kernel(step: Steps) -> Expand:
    """The kernel that finds all afterstates that follow an afterstate."""
    make_moves, open_cells = step.make_moves, step.open_cells

    @kernel(types.int64(types.uint64, step.by, SPAWNING, COUNTS, FLOATS, WORDS))
    def expand(after: U, by: Any, spawns: Any, links: Counts, gains: Floats, afters: Words) -> int:
        """Write all afterstates that follow, each once, and return their number.

        `links` gets the number of the afterstate for every spawn and direction, or -1; `gains` what
        the move gains. Spawns are in the order of the cells, the 2 before the 4.
        """
        seen, numbers = np.zeros(SEEN, np.uint64), np.empty(SEEN, np.int64)
        moved, gained = np.empty(4, np.uint64), np.empty(4, np.float64)
        cells = open_cells(after, spawns)
        edge = found = 0
        while cells:
            tile = lowest_cell(cells)
            cells ^= tile
            for rank in range(1, 3):
                make_moves(after | (tile * U(rank)), by, moved, gained)
                for direction in range(4):
                    links[edge] = -1
                    gains[edge] = gained[direction]
                    if moved[direction]:
                        links[edge] = add_seen(moved[direction], seen, numbers, afters, found)
                        found = max(found, links[edge] + 1)
                    edge += 1
        return found

    return expand


@fragment
def mean_best(n: Any, by: Any, spawns: Any, links: Counts, gains: Floats, values: Floats) -> float:
    """The mean over spawns on n cells of the best move, from what `expand` has written."""
    total = 0.0
    for state in range(2 * n):
        best = -np.inf
        for edge in range(4 * state, 4 * state + 4):
            if links[edge] >= 0:
                best = max(best, gains[edge] + values[links[edge]])
        weight = spawns.four if state & 1 else spawns.two
        total += weight * (best if best > -np.inf else by.dead)
    return float(total / n)


@fragment
def ends_here(chance: float, n: Any, spawns: Any) -> bool:
    """Whether all that follows an afterstate with n empty cells is less likely than the cut-off."""
    return bool(chance * max(spawns.two, spawns.four) < spawns.cutoff * n)


def value_unlikely_kernel(step: Steps, last_values: LastValues) -> LastValues:
    """The kernel that values afterstates after which everything is cut off."""
    open_cells = step.open_cells

    @kernel(types.void(WORDS, FLOATS, step.by, SPAWNING, MEMORY, FLOATS))
    def value_unlikely(
        afters: Words, chances: Floats, by: Any, spawns: Any, memory: Any, out: Floats
    ) -> None:
        """Write the values of those after which everything is cut off.

        Only one move is left for them, so they go into lanes too.
        """
        some, likely = np.empty(len(afters), np.uint64), np.empty(len(afters), np.float64)
        places, found = np.empty(len(afters), np.int64), 0
        for i in range(len(afters)):
            if ends_here(chances[i], np.int64(count(open_cells(afters[i], spawns))), spawns):
                some[found], likely[found], places[found] = afters[i], chances[i], i
                found += 1
        values = np.empty(found, np.float64)
        last_values(some[:found], likely[:found], by, spawns, memory, values)
        for k in range(found):
            out[places[k]] = values[k]

    return value_unlikely


def values_of_kernel(step: Steps, last_values: LastValues) -> ValuesOf:
    """The kernel that values afterstates with any number of moves to go."""
    open_cells, expand = step.open_cells, expand_kernel(step)
    value_unlikely = value_unlikely_kernel(step, last_values)

    @kernel(types.void(WORDS, FLOATS, types.int64, step.by, SPAWNING, MEMORY, FLOATS))
    def values_of(
        afters: Words,
        chances: Floats,
        depth: int,
        by: Any,
        spawns: Any,
        memory: Any,
        out: Floats,
    ) -> None:
        """Write W(x, depth) of each afterstate, which is reached with this probability."""
        if depth == 1:
            last_values(afters, chances, by, spawns, memory, out)
            return
        if spawns.cutoff > 0:
            value_unlikely(afters, chances, by, spawns, memory, out)
        links, gains = np.empty(MOST, np.int64), np.empty(MOST, np.float64)
        nexts, values = np.empty(MOST, np.uint64), np.empty(MOST, np.float64)
        likely = np.empty(MOST, np.float64)
        for i in range(len(afters)):
            after = afters[i]
            n = np.int64(count(open_cells(after, spawns)))
            if ends_here(chances[i], n, spawns):
                continue
            place, known = look_up(after, depth, memory)
            if known:
                out[i] = memory.values[depth, place]
                memory.tally[FOUND] += 1
                continue
            if memory.tally[MADE] > memory.tally[BUDGET] or spawns.stop[0]:
                return  # the result will be discarded
            found = expand(after, by, spawns, links, gains, nexts)
            memory.tally[MADE] += 8 * n
            likely[:found] = 0.0
            for k in range(8 * n):
                if links[k] >= 0:
                    likely[links[k]] += chances[i] / n * (spawns.four if k & 4 else spawns.two)
            values_of(nexts[:found], likely[:found], depth - 1, by, spawns, memory, values[:found])
            out[i] = mean_best(n, by, spawns, links, gains, values)
            keep(after, depth, place, out[i], memory)

    return values_of


def search_kernel(step: Steps, best_moves: BestMoves) -> RootValues:
    """The search kernel, from kernels that make and value moves."""
    make_moves, worth = step.make_moves, step.worth
    values_of = values_of_kernel(step, last_values_kernel(step, best_moves))

    @kernel(types.void(WORDS, types.int64, step.by, SPAWNING, MEMORY, FLOAT_ROWS))
    def root_values(
        states: Words, depth: int, by: Any, spawns: Any, memory: Any, out: Floats
    ) -> None:
        """Write Q(s, a, depth) of every direction of every state; NaN if it is illegal."""
        moved, gains = np.empty(4, np.uint64), np.empty(4, np.float64)
        afters, values, chances = np.empty(4, np.uint64), np.empty(4, np.float64), np.ones(4)
        for i in range(len(states)):
            make_moves(states[i], by, moved, gains)
            memory.tally[MADE] += 4
            found = 0
            for direction in range(4):
                if moved[direction]:
                    afters[found] = moved[direction]
                    found += 1
            if depth > 1:
                forget(memory)
                values_of(afters[:found], chances[:found], depth - 1, by, spawns, memory, values)
            else:
                for k in range(found):
                    values[k] = worth(afters[k], by)
            found = 0
            for direction in range(4):
                out[i, direction] = np.nan
                if moved[direction]:
                    out[i, direction] = gains[direction] + values[found]
                    found += 1

    return root_values


@cache
def heuristic_search(rows: int, cols: int, evaluate: Evaluate = line_sums) -> RootValues:
    """The search kernel of a heuristic; `heuristics.evaluate_of` gives its `evaluate`."""
    step = steps(rows, cols, evaluate)
    return search_kernel(step, best_moves_kernel(step, evaluate))
