"""Look up many boards at once, in whole layers of a table.

Boards are sorted by age, so that each layer is decoded once, and by key, so that neighbours in a
layer are looked up one after the other.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lab2048.engine.arrays import Counts, Flags, Floats, Halves, Words, ranks_of
from lab2048.solver.objective import WON
from lab2048.solver.problem import Problem
from lab2048.solver.table_files import TableError


class Probes(NamedTuple):
    """Result of `probe_many`, in the order of the boards; NaN where nothing is known."""

    value: Floats
    """The value of each board; NaN if it is neither in the table nor won."""
    q: Floats | None
    """The value of each board's four moves; NaN if illegal or unknown. None if not requested."""


class Decoded(NamedTuple):
    """The keys of a layer, ready for `lab2048.solver.lookup`."""

    keys: Words
    starts: Halves
    values: NDArray[Any]


class Layered(Protocol):
    """The part of a `Table` that lookups need."""

    problem: Problem
    kind: str
    """How values are stored."""
    counts: list[int]
    """The number of states of each layer."""
    tiny: float
    """Differences up to this are always rounding errors."""

    def decoded(self, layer: int) -> Decoded:
        """A layer, decoded into memory."""

    def tolerance(self, value: ArrayLike) -> Any:
        """The largest difference between q near a value at which moves count as equally good."""

    def damaged(self, what: str) -> TableError:
        """The error that says what is wrong with the table."""

    def not_best(self, board: int, value: float, best: float) -> TableError:
        """The error for a state whose value does not match its moves."""


def probe_many(table: Layered, boards: ArrayLike, moves: bool, threads: int) -> Probes:
    """The values of many packed boards and, if `moves` is true, of all their moves."""
    from lab2048.solver.lookup import canonical_kernel

    packed = _packed(boards)
    rules, layers = table.problem.rules, LayerProbe(table)
    outside = packed >> np.uint64(4 * rules.cells) != 0  # too large for a board of this size
    packed = np.where(outside, np.uint64(0), packed)
    canonical, ages = np.empty_like(packed), np.empty(len(packed), np.int64)
    canonical_kernel(rules.rows, rules.cols)(packed, canonical, ages)
    # neighbours in a layer are looked up one after the other
    order = np.argsort((ages.astype(np.uint64) << np.uint64(4 * rules.cells)) | canonical)
    q = np.full((len(packed), 4), np.nan) if moves else None
    found = Probes(np.full(len(packed), np.nan), q)
    runs = np.split(order, np.flatnonzero(np.diff(ages[order])) + 1)

    def probe(run: Counts) -> None:
        if len(run):
            layers.probe(int(ages[run[0]]), packed[run], canonical[run], run, found)

    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(probe, runs):
            pass
    return found


class LayerProbe:
    """Looks up boards of one age."""

    def __init__(self, table: Layered) -> None:
        self._table = table
        self._rules, self._objective = table.problem.rules, table.problem.objective

    def probe(self, age: int, boards: Words, keys: Words, run: Counts, found: Probes) -> None:
        """Look up boards of one age; write the results to the places `run` of `found`."""
        from lab2048.engine.slides import table as slides
        from lab2048.solver.keys import region_shift
        from lab2048.solver.lookup import afters_kernel, values_kernel

        rules, layer = self._rules, (age - 4) // 2
        values = np.full(len(run), np.nan)
        if age % 2 == 0 and 0 <= layer < len(self._table.counts):
            decoded = self._table.decoded(layer)
            values_kernel(self._table.kind)(keys, region_shift(rules.cells), *decoded, values)
        values[self._won(boards)] = WON
        found.value[run] = values
        if found.q is None:
            return
        afters, rewards = np.empty((len(run), 4), np.uint64), np.empty((len(run), 4))
        afters_kernel(rules.rows, rules.cols)(
            boards, slides(rules.cols), slides(rules.rows), afters, rewards
        )
        legal = np.flatnonzero(afters)
        after_values = np.full(afters.shape, np.nan)
        after_values.ravel()[legal] = self._after_values(layer, afters.ravel()[legal])
        after_values[self._won(afters)] = WON
        q = self._objective.q(rewards, after_values)
        known = ~np.isnan(values)
        if np.isnan(after_values[known][afters[known] != 0]).any():
            raise self._table.damaged("states that follow from others are missing")
        q[~known] = np.nan
        self._check_best(boards, values, q)
        found.q[run] = q

    def _check_best(self, boards: Words, values: Floats, q: Floats) -> None:
        """Raise a `TableError` if a known value is not the best q of its moves."""
        best = best_q(q)
        slack = self._table.tolerance(best) + self._table.tiny
        right = (np.abs(values - best) <= slack) | np.isnan(values) | self._won(boards)
        if not right.all():
            place = int(right.argmin())
            raise self._table.not_best(int(boards[place]), float(values[place]), float(best[place]))

    def _after_values(self, layer: int, afters: Words) -> Floats:
        """The values of canonical afterstates of one age; NaN where unknown."""
        worst = self._objective.worst
        mean = self._over_spawns(layer, afters, least=False) if worst < 1 else None
        least = self._over_spawns(layer, afters, least=True) if worst > 0 else None
        return np.asarray(self._objective.fold(mean, least))

    def _over_spawns(self, layer: int, afters: Words, *, least: bool) -> Floats:
        """The mean or the least value over the spawns on canonical afterstates of one age."""
        from lab2048.engine.jit import U
        from lab2048.solver.lookup import spawned_kernel

        p4 = self._rules.p4
        spawned = spawned_kernel(self._rules.rows, self._rules.cols, self._table.kind)
        out = np.full(len(afters), np.inf if least else 0.0)
        for rank, weight in ((1, 1 - p4), (2, p4)):
            if weight == 0:
                continue
            if 0 <= layer + rank < len(self._table.counts):
                decoded = self._table.decoded(layer + rank)
                spawned(afters, U(rank), -1.0 if least else weight, *decoded, out)
            else:
                out[:] = np.nan
        return out

    def _won(self, boards: Words) -> Flags:
        """Whether each board holds the tile to reach, or a larger one."""
        if not self._objective.tile:
            return np.zeros(boards.shape, np.bool_)
        ranks = ranks_of(boards, self._rules.cells)
        return np.asarray((ranks >= self._objective.stop).any(axis=-1))


def best_q(q: Floats) -> Floats:
    """The best q of each board; 0 if no move is legal."""
    best = np.fmax(np.fmax(q[:, 0], q[:, 1]), np.fmax(q[:, 2], q[:, 3]))
    return np.where(np.isnan(best), 0.0, best)


def _packed(boards: ArrayLike) -> Words:
    """Packed boards as a flat array; negative numbers become 0, a board that is in no table."""
    try:
        given = np.asarray(boards)
    except (OverflowError, ValueError):
        given = np.empty(1, object)
    if given.size and given.dtype.kind not in "iu":
        raise ValueError(f"packed boards are whole numbers below 2**64, not {given.dtype}")
    given = np.ascontiguousarray(given).ravel()
    return np.where(given < 0, 0, given).astype(np.uint64)
