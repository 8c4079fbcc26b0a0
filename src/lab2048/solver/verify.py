"""Check a table: every checksum, every key, and the Bellman equation."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np

from lab2048.engine.arrays import Words
from lab2048.engine.jit import U, kernel
from lab2048.engine.packed import age, smallest
from lab2048.solver.batch_lookup import best_q
from lab2048.solver.problem import start_values
from lab2048.solver.table import Table
from lab2048.solver.table_files import RUN, age_of, read_json
from lab2048.tabular import Figures

SAMPLE = 100_000
"""The approximate number of states whose value is compared with their moves, unless all are."""


@cache
def faulty_kernel(rows: int, cols: int) -> Callable[..., int]:
    """The kernel that checks the keys of a layer, for one board shape."""

    @kernel("int64(uint64[::1], int64)")
    def faulty(keys: Words, wanted: int) -> int:
        """The index of the first key out of order, of another age or not canonical; else -1."""
        before = U(0)
        for i in range(len(keys)):
            key = keys[i]
            if key <= before or age(key) != wanted or smallest(key, rows, cols) != key:
                return i
            before = key
        return -1

    return faulty


def verify(
    table: Table,
    *,
    full: bool = False,
    seed: int = 0,
    progress: Callable[[int, int], object] = lambda done, total: None,
) -> Figures:
    """Check a table. Return what was checked; raise `TableError` if anything is wrong.

    The values of all states are compared with their moves if `full`, else those of a sample drawn
    with `seed`. `progress` is called with the number of states done and their total.

    >>> from lab2048 import solve
    >>> with solve("2x2") as table:
    ...     verify(table, full=True)["compared"]
    110
    """
    rules, counts = table.rules, table.counts
    faulty = faulty_kernel(rules.rows, rules.cols)
    read_json(table.path / RUN)  # it may be missing, but not be damaged
    rng = np.random.default_rng(seed)
    compared, worst, done = 0, 0.0, 0
    for layer, count in enumerate(counts):
        keys = table.keys.layer(layer)
        table.layer_values(layer)  # compares them with their checksum
        place = faulty(keys, age_of(layer))
        if place >= 0:
            raise table.damaged(f"key {place} of age {age_of(layer)} is invalid or out of order")
        if count:
            share = min(count, math.ceil(SAMPLE * count / table.states))
            chosen = keys if full else keys[np.sort(rng.choice(count, share, replace=False))]
            for part in np.array_split(chosen, 1 + len(chosen) // 1_000_000):
                worst = max(worst, _residual(table, part))
            compared += len(chosen)
        done += count
        progress(done, table.states)
    _check_starts(table)
    return Figures(states=done, compared=compared, largest_residual=worst)


def _residual(table: Table, keys: Words) -> float:
    """The largest difference between the value of a state and that of its best move.

    Looking the moves up raises `TableError` if it is larger than rounding explains.
    """
    found = table.probe_many(keys)
    assert found.q is not None
    return float(np.abs(found.value - best_q(found.q)).max(initial=0.0))


def _check_starts(table: Table) -> None:
    """Compare the values of the starts with those in the manifest."""
    found = start_values(table.problem, table.value)
    for name, stated in table.start_value.items():
        value = found[name]
        if value is None or stated is None:
            agree = value is stated
        else:
            agree = bool(np.isclose(value, stated, rtol=1e-6))
        if not agree:
            raise table.damaged(f"the value of {name} is {value}, but the manifest says {stated}")
