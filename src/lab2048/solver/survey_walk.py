"""The chance that optimal play visits each state, and the values of the moves there.

The chance is carried forward through the layers: from the states to the afterstates of their
optimal moves (equally good moves share it evenly), from there to the states that spawns make. A
state does not determine how many moves led to it, but

    moves = age / 2 - 2 - fours          score = sum of tile * (rank - 1) - 4 * fours

where `fours` is the number of 4s that have spawned. So the chance is carried together with the
first two moments of this number and, on small boards, split by it into *columns*. The columns are a
window that moves with the mean; `Survey.lost` (lab2048.solver.survey) is the chance outside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial
from typing import NamedTuple

import numpy as np

from lab2048.engine.arrays import Counts, Floats, Halves, Words
from lab2048.engine.jit import U, kernel
from lab2048.engine.packed import count, empty_cells, lowest_cell, max_rank, potential, smallest
from lab2048.solver.enumeration import Mover, afterstates
from lab2048.solver.induction import divided, value_afters_kernel
from lab2048.solver.keys import Index, below, fill, find, region_shift
from lab2048.solver.successors import BLOCK
from lab2048.solver.table import Table
from lab2048.solver.table_files import TableError, age_of
from lab2048.solver.threads import WorkerThreads

DEVIATIONS = 8
"""How far the columns go to either side, in standard deviations of the number of fours."""

AT_LEAST = 10
"""Further columns on either side: if 4s or 2s are rare, their number is far from normal."""


@cache
def judge_kernel(rows: int, cols: int) -> Callable[..., int]:
    """The kernel that compares the moves of states, for one board shape."""
    cells = rows * cols

    @kernel(
        "int64(uint64[::1], uint64[::1], uint32[::1], uint64[::1], float64[::1], "
        "float64[:, ::1], float64[::1])"
    )
    def judge(
        keys: Words,
        edges: Words,
        sources: Halves,
        afters: Words,
        tolerance: Floats,
        judged: Floats,
        shares: Floats,
    ) -> int:
        """Write for each state A of its best, second best and worst move, and how many are best.

        `shares` gets 1 / (how many are best) for the edge of a best move, 0 for any other. `afters`
        is the index of A (`lab2048.solver.induction`), `tolerance` a factor and the least value
        that it is applied to. Returns the number of afterstates not found.
        """
        values = afters.view(np.float64)
        found, missed = np.empty(BLOCK, np.float64), np.empty(BLOCK, np.int64)
        for i in range(len(keys)):
            judged[i, 0] = judged[i, 1] = -np.inf
            judged[i, 2], judged[i, 3] = np.inf, 0.0
        lost = 0
        for start in range(0, len(edges), BLOCK):
            size = min(BLOCK, len(edges) - start)
            lost += find(edges, start, size, afters, values, found, missed, 0.0)
            for i in range(size):
                a, state = found[i], sources[start + i]
                shares[start + i] = a
                judged[state, 1] = max(judged[state, 1], min(a, judged[state, 0]))
                judged[state, 0] = max(judged[state, 0], a)
                judged[state, 2] = min(judged[state, 2], a)
        for i in range(len(edges)):
            state = sources[i]
            value = judged[state, 0] - np.float64(potential(keys[state], cells))
            slack = tolerance[0] * max(value, tolerance[1])
            shares[i] = 1.0 if judged[state, 0] - shares[i] <= slack else 0.0
            judged[state, 3] += shares[i]
        for i in range(len(edges)):
            shares[i] /= judged[sources[i], 3]
        return lost

    return judge


@kernel(
    "void(uint64[::1], uint32[::1], float64[::1], float64[:, ::1], uint64[::1], float64[:, ::1])"
)
def pass_on(
    edges: Words, sources: Halves, shares: Floats, chances: Floats, afters: Words, out: Floats
) -> None:
    """Add the chances of states to the afterstates of their best moves."""
    for i in range(len(edges)):
        state = sources[i]
        if shares[i] > 0 and chances[state, 0] > 0:
            place = below(afters, len(afters), edges[i])
            for column in range(chances.shape[1]):
                out[place, column] += shares[i] * chances[state, column]


@cache
def spawn_on_kernel(rows: int, cols: int) -> Callable[..., None]:
    """The kernel that carries chances from afterstates to states, for one board shape."""

    @kernel("void(uint64[::1], float64[:, ::1], uint64, float64, uint64[::1], float64[:, ::1])")
    def spawn_on(
        afters: Words, chances: Floats, rank: U, weight: float, states: Words, out: Floats
    ) -> None:
        """Add the chances of afterstates, times `weight`, to the states after a spawn of `rank`."""
        for i in range(len(afters)):
            if chances[i, 0] <= 0:
                continue
            empty = empty_cells(afters[i], rows, cols)
            share = weight / np.float64(count(empty))
            while empty != U(0):
                tile = lowest_cell(empty) * rank
                empty &= empty - U(1)
                place = below(states, len(states), smallest(afters[i] | tile, rows, cols))
                for column in range(chances.shape[1]):
                    out[place, column] += share * chances[i, column]

    return spawn_on


@kernel("void(uint64[::1], int64[::1], int64[::1])")
def ends_of(keys: Words, scores: Counts, ranks: Counts) -> None:
    """Write the score of each board, had no 4 spawned, and the rank of its largest tile."""
    for i in range(len(keys)):
        scores[i] = potential(keys[i], 16)
        ranks[i] = max_rank(keys[i])


MOMENTS = 3
"""The number of columns that come first: chance, chance * fours, chance * fours**2."""


class Columns:
    """The numbers of fours that the columns of an age stand for."""

    def __init__(self, p4: float, exact: bool) -> None:
        self._p4, self._exact = p4, exact

    def first(self, age: int) -> int:
        """The number of fours that the first column stands for."""
        mean, deviation = self._expected(age)
        return max(0, math.floor(mean - DEVIATIONS * deviation) - AT_LEAST)

    def width(self, age: int) -> int:
        """The number of columns, including those of the moments."""
        if not self._exact:
            return MOMENTS
        mean, deviation = self._expected(age)
        last = math.ceil(mean + DEVIATIONS * deviation) + AT_LEAST
        return MOMENTS + 1 + last - self.first(age)

    def _expected(self, age: int) -> tuple[float, float]:
        """The approximate mean and standard deviation of the number of fours at an age."""
        step = 2 + 2 * self._p4
        return self._p4 * age / step, math.sqrt(4 * self._p4 * (1 - self._p4) * age / step**3)

    def moved(self, chances: Floats, age: int, fours: int) -> Floats:
        """Chances at an age, in the columns of the age after a spawned 2 (`fours` 0) or 4 (1)."""
        older = age + 2 + 2 * fours
        out = np.zeros((len(chances), self.width(older)))
        out[:, :MOMENTS] = chances[:, :MOMENTS]
        if fours:
            out[:, 2] += 2 * chances[:, 1] + chances[:, 0]
            out[:, 1] += chances[:, 0]
        shift = self.first(age) + fours - self.first(older)
        source = chances[:, MOMENTS:]
        begin, end = max(0, shift), min(out.shape[1] - MOMENTS, source.shape[1] + shift)
        if end > begin:
            out[:, MOMENTS + begin : MOMENTS + end] = source[:, begin - shift : end - shift]
        return out


class Visited(NamedTuple):
    """A layer, with the chances and the move values of its states."""

    age: int
    keys: Words
    chances: Floats
    """The columns of each state."""
    judged: Floats
    """A of the best, second best and worst move, and how many are best."""
    options: Counts
    """The number of legal moves."""
    afterstates: int


class Walk:
    """A walk through all layers, youngest first, that carries the chance of every state."""

    def __init__(self, table: Table, threads: WorkerThreads, exact: bool) -> None:
        rules = table.rules
        self.table, self.threads, self.exact = table, threads, exact
        self.columns = Columns(rules.p4, self.exact)
        self._shift = region_shift(rules.cells)
        self._rule = np.array(table.problem.rule)
        self._value_afters = value_afters_kernel(rules.rows, rules.cols)
        self._judge = judge_kernel(rules.rows, rules.cols)
        self._spawn_on = spawn_on_kernel(rules.rows, rules.cols)
        self._movers = [Mover(table.problem) for _ in range(threads.count)]
        self._afters = Index(rules.cells)
        self._indexes: dict[int, Index] = {}
        self._keys: dict[int, Words] = {}
        self._chances: dict[int, Floats] = {}
        for _, chance, board in table.problem.starts():
            layer, fours = (board.age - 4) // 2, sum(rank == 2 for rank in board.ranks)
            row = self._chances_of(layer)[np.searchsorted(self._keys_of(layer), U(board.packed))]
            row[:MOMENTS] += chance, chance * fours, chance * fours**2
            if self.exact:
                row[MOMENTS + fours - self.columns.first(board.age)] += chance

    def _keys_of(self, layer: int) -> Words:
        """The keys of a layer; none beyond the last."""
        if layer not in self._keys:
            inside = layer < len(self.table.counts)
            self._keys[layer] = self.table.keys.layer(layer) if inside else np.empty(0, np.uint64)
        return self._keys[layer]

    def _index_of(self, layer: int) -> Index:
        """The values of a layer, by key."""
        if layer not in self._indexes:
            keys, index = self._keys_of(layer), Index(self.table.rules.cells)
            (begin,) = index.share_out([len(keys)])
            if len(keys):
                fill(keys, self.table.layer_values(layer).astype(np.float64), index.words, begin)
            self._indexes[layer] = index
        return self._indexes[layer]

    def _chances_of(self, layer: int) -> Floats:
        """The chances of a layer's states, as summed up so far."""
        if layer not in self._chances:
            width = self.columns.width(age_of(layer))
            self._chances[layer] = np.zeros((len(self._keys_of(layer)), width))
        return self._chances[layer]

    def visit(self, layer: int) -> Visited:
        """Return a layer with its final chances, and carry them on to the next two layers."""
        keys, chances = self._keys_of(layer), self._chances_of(layer)
        lots = divided(keys, self.threads.parts(len(keys)), self._shift)
        moves = self.threads.run(
            [partial(m, lot) for m, lot in zip(self._movers, lots, strict=False)]
        )
        afters = afterstates(np.concatenate([edges for edges, _ in moves]))
        self._value(layer, afters)
        judged = np.empty((len(keys), 4))
        options = np.concatenate(
            [np.bincount(s, minlength=len(lot)) for lot, (_, s) in zip(lots, moves, strict=True)]
        )
        places = np.cumsum([0, *map(len, lots)])
        shares = self.threads.run(
            [
                partial(self._judge_lot, lot, *move, judged[places[n] : places[n + 1]])
                for n, (lot, move) in enumerate(zip(lots, moves, strict=True))
            ]
        )
        carried = np.zeros((len(afters), chances.shape[1]))
        for n, (edges, sources) in enumerate(moves):
            lot_chances = chances[places[n] : places[n + 1]]
            pass_on(edges, sources, shares[n], lot_chances, afters, carried)
        self._spawn(layer, afters, carried)
        for kept in (self._keys, self._indexes, self._chances):
            kept.pop(layer, None)
        return Visited(age_of(layer), keys, chances, judged, options, len(afters))

    def _value(self, layer: int, afters: Words) -> None:
        """Compute A of the afterstates and put it into their index."""
        two, four = self._index_of(layer + 1).words, self._index_of(layer + 2).words
        lots = divided(afters, self.threads.parts(len(afters)), self._shift)
        begins = self._afters.share_out([len(lot) for lot in lots])

        def value(part: int) -> None:
            out = np.empty(len(lots[part]))
            index = self._afters.words
            lost = self._value_afters(lots[part], two, four, self._rule, out, index, begins[part])
            _check(lost)

        self.threads.run([partial(value, part) for part in range(len(lots))])

    def _judge_lot(self, keys: Words, edges: Words, sources: Halves, judged: Floats) -> Floats:
        """Compare the moves of one lot of states; return the shares of their moves."""
        shares = np.empty(len(edges))
        slack = np.array(self.table.slack)
        _check(self._judge(keys, edges, sources, self._afters.words, slack, judged, shares))
        return shares

    def _spawn(self, layer: int, afters: Words, carried: Floats) -> None:
        """Carry the chances of afterstates on to the next two layers."""
        visited = np.flatnonzero(carried[:, 0])
        afters, carried, age = afters[visited], carried[visited], age_of(layer)
        p4 = self.table.rules.p4
        for rank, weight in ((1, 1 - p4), (2, p4)):
            if weight > 0 and len(afters):
                moved = self.columns.moved(carried, age, rank - 1)
                states, out = self._keys_of(layer + rank), self._chances_of(layer + rank)
                self._spawn_on(afters, moved, U(rank), weight, states, out)


def _check(lost: int) -> None:
    """Raise `TableError` if some successors are not in the layer where they belong."""
    if lost:
        raise TableError(
            f"{lost} boards are missing from the table; check it with: lab2048 table verify"
        )
