"""What `lab2048 solve --estimate` predicts against what a solve takes, on boards that can be run.

python benchmarks/estimate.py            4x2, 3x3, and the first ages of 4x3 (some minutes)
python benchmarks/estimate.py 5x2        other boards
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

from lab2048.solver.estimate import measured_rates
from lab2048.solver.executor import ThreadExecutor
from lab2048.solver.job import make_table
from lab2048.solver.problem import Problem
from lab2048.solver.table_size import sizes_of
from lab2048.solver.threads import WorkerThreads
from lab2048.solver.trial import solve_first_ages

LAST = 16_000_000
"""The first ages of 4x3 end with the first layer of more states than this."""
THREADS = os.cpu_count() or 1


def tell(name: str, states: int, predicted: float, measured: float) -> None:
    """Print a row of the table."""
    more = 100 * (measured / predicted - 1)
    row = f"| {name} | {states:,} | {predicted:.1f} s | {measured:.1f} s | {more:+.0f}% |"
    print(row, flush=True)


def whole(board: str) -> None:
    """Solve a board."""
    problem = Problem.of(board)
    rates = measured_rates(problem, THREADS)
    with tempfile.TemporaryDirectory() as folder:
        found = make_table(problem, folder)
    states = sizes_of(problem)[0]
    tell(board, states, states / rates.both, found["seconds"]["total"])


def first_ages() -> None:
    """Solve the first ages of 4x3, for as long as layers take a few seconds."""
    problem = Problem.of("4x3")
    rates = measured_rates(problem, THREADS)
    with tempfile.TemporaryDirectory() as folder, WorkerThreads(THREADS) as threads:
        executor = ThreadExecutor(problem, Path(folder), threads)
        began = time.perf_counter()
        counts = solve_first_ages(executor, lambda layer: layer.states > LAST, lambda step: None)
        measured, states = time.perf_counter() - began, sum(counts)
    tell(f"4x3, its first {len(counts)} ages", states, states / rates.both, measured)


if __name__ == "__main__":
    print("| board | states | predicted | measured | |\n|---|---|---|---|---|")
    for name in sys.argv[1:] or ["4x2", "3x3"]:
        whole(name)
    if len(sys.argv) == 1:
        first_ages()
