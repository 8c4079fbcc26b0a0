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

from lab2048.solve.crew import Crew
from lab2048.solve.estimate import measured_rates, sizes_of
from lab2048.solve.making import Packed
from lab2048.solve.problem import Problem
from lab2048.solve.solver import make_table
from lab2048.solve.trial import FirstAges

LAST = 16_000_000
"""The first ages of 4x3 end with the first layer of more states than this."""
THREADS = os.cpu_count() or 1


class First(FirstAges):
    """The first ages of 4x3."""

    def is_last(self, layer: Packed) -> bool:
        """Whether a layer is to be the last."""
        return layer.states > LAST


def tell(name: str, states: int, predicted: float, measured: float) -> None:
    """A row of the table."""
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
    identity = {**problem.as_json(), "values": "float64"}
    with tempfile.TemporaryDirectory() as folder, Crew(THREADS) as crew:
        job = First(problem, Path(folder), identity, "table", crew)
        began = time.perf_counter()
        job.run(lambda step: None)
        measured = time.perf_counter() - began
        states, ages = sum(job.record.data["states"]), len(job.record.data["states"])
    tell(f"4x3, its first {ages} ages", states, states / rates.both, measured)


if __name__ == "__main__":
    print("| board | states | predicted | measured | |\n|---|---|---|---|---|")
    for name in sys.argv[1:] or ["4x2", "3x3"]:
        whole(name)
    if len(sys.argv) == 1:
        first_ages()
