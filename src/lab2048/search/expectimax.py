"""Expectimax: the best move on average over all spawns, some moves ahead.

    Q(s, a, d) = r + W(x, d - 1)          x is s after the move a, r its reward (if rewards count)
    W(x, 0)    = H(x)                     the heuristic
    W(x, d)    = sum over spawns s' on x of p * max over moves of Q(s', a, d)

The last moves are most of the work: the states that spawns lead to are put into lanes, and all
their moves are made and valued there in short loops. Afterstates that were valued before with as
many moves to go are found in a table, so the result is what it would be without one.

With a cut-off, what is reached with less than this probability is valued by H at once. The value in
the table may then be of a likelier way to the same board.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import types
from numpy.typing import NDArray

from lab2048.board import OVERFLOW, Words, count, mix, reward_rows, slide_both, transpose
from lab2048.game import Game
from lab2048.jit import Kernels, U, fragment
from lab2048.player import Player, PlayerError, option, ties_option
from lab2048.search.heuristics import DEFAULT, HEURISTICS, Floats, evaluate, evaluator
from lab2048.search.steps import Spawning, make_moves, open_cells, spawning, steps, worth
from lab2048.time_limit import check_time

Counts = NDArray[np.int64]

LANES = 64
ENOUGH = 1 << 62
MOST = 120
"""The afterstates that one afterstate can lead to: by 30 spawns and 4 moves."""
SEEN = 256
"""Room for them in a small table."""

ROWS = COLS = 0
"""The board that a kernel is compiled for; and the other kernels for it."""
TURNED = False

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


class _Rooms(threading.local):
    """The memories of a thread, by depth. A player's own would be held for as long as it is."""

    def __init__(self) -> None:
        self.by_depth: dict[int, Memory] = {}


_rooms = _Rooms()


# -- the last move: states in lanes --------------------------------------------------------------


def try_slides(before: Words, slid: Words, by: Any, other: Words, best: Floats) -> None:
    """Raise `best` to the value of the slid board in every lane where something moved.

    If TURNED, the boards are: their rows are the columns. `other` is to work in.
    """
    for j in range(LANES):
        other[j] = transpose(slid[j], COLS, ROWS) if TURNED else transpose(slid[j], ROWS, COLS)
    for j in range(LANES):
        board, turned = (other[j], slid[j]) if TURNED else (slid[j], other[j])
        value = evaluate(board, turned, by, ROWS, COLS)
        best[j] = max(best[j], value if slid[j] != before[j] else -np.inf)


try_turned = try_slides
"""The same with TURNED."""


def best_moves(lanes: Words, filled: int, by: Any, best: Floats) -> None:
    """The best Q of a single move on the board of every lane; the value of a dead end if there is
    no move. (Lanes that are not filled go along.)

    The boards are the first row of `lanes`; the other four are to work in. So is the second of
    `best`, whose first gets the result.
    """
    boards, turned, first, last, other = lanes[0], lanes[1], lanes[2], lanes[3], lanes[4]
    across, down = best[0], best[1]
    for j in range(LANES):
        across[j] = down[j] = -np.inf
        turned[j] = transpose(boards[j], ROWS, COLS)
    for j in range(LANES):
        first[j], last[j] = slide_both(boards[j], by.across, ROWS, COLS)
    try_slides(boards, first, by, other, across)
    try_slides(boards, last, by, other, across)
    for j in range(LANES):
        first[j], last[j] = slide_both(turned[j], by.down, COLS, ROWS)
    try_turned(turned, first, by, other, down)
    try_turned(turned, last, by, other, down)
    if by.scored:
        for j in range(LANES):
            gained = reward_rows(boards[j], by.across_rewards, ROWS, COLS) & ~U(OVERFLOW)
            across[j] += np.float64(gained)
            gained = reward_rows(turned[j], by.down_rewards, COLS, ROWS) & ~U(OVERFLOW)
            down[j] += np.float64(gained)
    for j in range(LANES):
        value = max(across[j], down[j])
        across[j] = value if value > -np.inf else by.dead


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


@fragment
def add_lanes(filled: int, weights: Floats, wanted: Counts, memory: Any, out: Floats) -> None:
    """Add the values found in the lanes to what they are wanted for."""
    for j in range(filled):
        out[wanted[j]] += weights[j] * memory.best[0, j]
    memory.tally[MADE] += 4 * filled


def last_values(
    afters: Words, chances: Floats, by: Any, spawns: Any, memory: Any, out: Floats
) -> None:
    """W(x, 1) of each afterstate."""
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
        two, four = spawns.two / n, spawns.four / n
        while cells:
            tile = cells & (U(0) - cells)
            cells ^= tile
            if two > 0:
                boards[filled], weights[filled], wanted[filled] = after | tile, two, i
                filled += 1
            if four > 0:
                boards[filled], weights[filled], wanted[filled] = after | (tile << U(1)), four, i
                filled += 1
            if filled > LANES - 2:
                best_moves(memory.lanes, filled, by, memory.best)
                add_lanes(filled, weights, wanted, memory, out)
                filled = 0
    if filled:
        best_moves(memory.lanes, filled, by, memory.best)
        add_lanes(filled, weights, wanted, memory, out)
    for i in range(len(afters)):
        if fresh[i]:
            place, _ = look_up(afters[i], 1, memory)
            keep(afters[i], 1, place, out[i], memory)


# -- the moves before it -------------------------------------------------------------------------


@fragment
def add_seen(after: U, seen: Words, numbers: Counts, afters: Words, found: int) -> int:
    """The number of an afterstate among those found so far, of which there are `found`."""
    place = mix(after) & U(SEEN - 1)
    while seen[place] != after:
        if seen[place] == U(0):
            seen[place], numbers[place] = after, found
            afters[found] = after
            break
        place = (place + U(1)) & U(SEEN - 1)
    return int(numbers[place])


def expand(after: U, by: Any, spawns: Any, links: Counts, gains: Floats, afters: Words) -> int:
    """Write all afterstates that come next, each once; how many they are.

    `links` has for every spawn and direction the number of the afterstate, or -1; `gains` what
    the move gains. Spawns are in the order of the cells, the 2 before the 4.
    """
    seen, numbers = np.zeros(SEEN, np.uint64), np.empty(SEEN, np.int64)
    moved, gained = np.empty(4, np.uint64), np.empty(4, np.float64)
    cells = open_cells(after, spawns)
    edge = found = 0
    while cells:
        tile = cells & (U(0) - cells)
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
    """Whether all that follows an afterstate with n empty cells is too unlikely to look into."""
    return bool(chance * max(spawns.two, spawns.four) < spawns.cutoff * n)


def value_unlikely(
    afters: Words, chances: Floats, by: Any, spawns: Any, memory: Any, out: Floats
) -> None:
    """Value those after which all is cut off: only one move is left, so they go into lanes too."""
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


def values_of(
    afters: Words,
    chances: Floats,
    depth: int,
    by: Any,
    spawns: Any,
    memory: Any,
    out: Floats,
) -> None:
    """W(x, depth) of each afterstate, which is reached with this chance."""
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
            return  # nobody will look at the result
        found = expand(after, by, spawns, links, gains, nexts)
        memory.tally[MADE] += 8 * n
        likely[:found] = 0.0
        for k in range(8 * n):
            if links[k] >= 0:
                likely[links[k]] += chances[i] / n * (spawns.four if k & 4 else spawns.two)
        values_of(nexts[:found], likely[:found], depth - 1, by, spawns, memory, values[:found])
        out[i] = mean_best(n, by, spawns, links, gains, values)
        keep(after, depth, place, out[i], memory)


def root_values(states: Words, depth: int, by: Any, spawns: Any, memory: Any, out: Floats) -> None:
    """Q(s, a, depth) of every direction of every state; NaN if it is illegal."""
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


@cache
def search_kernel(rows: int, cols: int) -> Callable[..., None]:
    """`root_values` for a board."""
    board = steps(rows, cols)
    words, floats = types.uint64[::1], types.float64[::1]
    kernels = board.kernels.more("expectimax")
    slides = types.void(words, words, board.by, words, floats)
    kernels.add(try_slides, slides)
    kernels.add(try_slides, slides, "try_turned", TURNED=True)
    kernels.add(best_moves, types.void(*BEST_MOVES[:2], board.by, BEST_MOVES[2]))
    return add_search(kernels, board.by, board.spawns)


BEST_MOVES = (types.uint64[:, ::1], types.int64, types.float64[:, ::1])
"""What `best_moves` is given, besides the evaluator."""


def add_search(kernels: Kernels, by: Any, spawns: Any) -> Callable[..., None]:
    """Add the search to kernels that have `make_moves`, `open_cells`, `worth` and `best_moves`."""
    words, floats, whole = types.uint64[::1], types.float64[::1], types.int64
    memory, grid = numba.typeof(new_memory(1)), types.float64[:, ::1]
    kernels.add(last_values, types.void(words, floats, by, spawns, memory, floats))
    kernels.add(value_unlikely, types.void(words, floats, by, spawns, memory, floats))
    kernels.add(expand, whole(types.uint64, by, spawns, types.int64[::1], floats, words))
    kernels.add(values_of, types.void(words, floats, whole, by, spawns, memory, floats))
    return kernels.add(root_values, types.void(words, whole, by, spawns, memory, grid))


# -- the player ----------------------------------------------------------------------------------

DEEPEST = 12
UNLIKELY = 0.003
"""With a time limit, a search that leaves out what is less likely gets deeper, and plays better."""
FIRST_RATE = 1e7


def time_option() -> Any:
    """The option for the time a move."""
    about = "time a move, in place of a depth"
    return option(None, about, low=1e-4, high=3600, kind="seconds")


def cutoff_option() -> Any:
    """The option for what is too unlikely to look into."""
    about = f"do not look into what is less likely; {UNLIKELY} with a time, else 0"
    return option(None, about, low=0, high=1)


@dataclass(frozen=True, eq=False)
class Searcher(Player):
    """A player that looks ahead to a depth, or as deep as a time allows, with some evaluator."""

    depth: int = option(3, "own moves to look ahead", low=1, high=DEEPEST)
    time: float | None = time_option()
    cutoff: float | None = cutoff_option()
    ties: str = ties_option()

    _own: threading.local = field(default_factory=threading.local, init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.timed and self.depth != type(self).depth:
            raise PlayerError("it has a depth or a time, not both")

    @property
    def timed(self) -> bool:
        return self.time is not None

    @property
    def symmetric(self) -> bool:
        # what is cut off depends on the way a board was come to first
        return self.splits and not self.cutoff

    def prepare(self) -> None:
        """Compile, without thinking as long as a move may take."""
        replace(self, time=None, depth=2).choose(Game(self.rules, 0).board)

    def search(self) -> tuple[Callable[..., None], Any]:
        """The kernel that searches, and what it values boards by."""
        raise PlayerError(f"{self.name} has no search")

    def spawns(self, cutoff: float) -> Spawning:
        """The spawns that it looks at."""
        return spawning(self.rules, cutoff)

    def values_many(self, boards: Words, words: Words) -> Floats:
        search, by = self.search()
        usual = UNLIKELY if self.timed else 0.0
        spawns = self.spawns(usual if self.cutoff is None else self.cutoff)
        out = np.empty((len(boards), 4))
        if self.timed:
            for i in range(len(boards)):
                self._deepen(boards[i : i + 1], out[i : i + 1], by, spawns)
        else:
            search(boards, self.depth, by, spawns, self.memory(self.depth), out)
            check_time()
        return out

    def memory(self, depth: int) -> Memory:
        """What this thread searches with, to a depth; all its players share it."""
        found = _rooms.by_depth.get(depth)
        if found is None:
            found = _rooms.by_depth[depth] = new_memory(depth)
        found.tally[BUDGET], found.tally[MASK] = ENOUGH, table_size(depth) - 1
        return found

    def _deepen(self, board: Words, out: Floats, by: Any, spawns: Any) -> None:
        """Search deeper and deeper until the time is up; what is not finished does not count."""
        assert self.time is not None
        end = time.perf_counter() + self.time
        search, _ = self.search()
        memory = self.memory(DEEPEST)
        found = np.empty_like(out)
        rate: float = getattr(self._own, "rate", FIRST_RATE)  # moves a second
        for depth in range(1, DEEPEST + 1):
            began = time.perf_counter()
            before = int(memory.tally[MADE])
            allowed = int(rate * (end - began)) if depth > 1 else ENOUGH
            memory.tally[BUDGET] = before + allowed
            memory.tally[MASK] = table_size(depth) - 1
            search(board, depth, by, spawns, memory, found)
            made = int(memory.tally[MADE]) - before
            if made > 10_000:
                rate += 0.2 * (made / (time.perf_counter() - began) - rate)
            if depth > 1 and (made > allowed or spawns.stop[0]):
                spawns.stop[0] = 0  # what was found before it counts
                break
            out[:] = found
            if time.perf_counter() >= end:
                break
        self._own.rate = rate


@dataclass(frozen=True, eq=False)
class Expectimax(Searcher):
    """Expectimax to a depth, or as deep as a time allows."""

    heuristic: str = option(DEFAULT, "what the last board is worth", choices=tuple(HEURISTICS))
    cells: int = option(0, "spawns only on so many cells (Zhou); 0: on all", low=0, high=16)

    name = "expectimax"
    about = "the best move on average over all spawns, some moves ahead"
    meaning = "expected value of the last board, by the heuristic, with rewards if they count"

    @property
    def symmetric(self) -> bool:
        return super().symmetric and not self.cells and HEURISTICS[self.heuristic].symmetric

    def spawns(self, cutoff: float) -> Spawning:
        return spawning(self.rules, cutoff, self.cells)

    def search(self) -> tuple[Callable[..., None], Any]:
        rules = self.rules
        return search_kernel(rules.rows, rules.cols), evaluator(self.heuristic, rules)
