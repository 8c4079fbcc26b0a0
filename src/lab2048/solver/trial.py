"""The first ages of a board, done as a whole solve does them, to see how fast that is."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from lab2048.solver.executor import Executor, Progress, Step
from lab2048.solver.job import Job
from lab2048.solver.table_writer import Packed


class Rates(NamedTuple):
    """States per second of both stages, in the layers from some age on."""

    states: int
    """The number of states of these layers."""
    enumerate: float
    values: float

    @property
    def both(self) -> float:
        """States per second, one stage after the other."""
        return 1 / (1 / self.enumerate + 1 / self.values)


def solve_first_ages(
    executor: Executor, is_last: Callable[[Packed], bool], progress: Progress
) -> list[int]:
    """Solve the ages up to a layer that is the last; the number of states of each age.

    The values of the last two layers are taken to be 0, so the others are wrong, but take as long.
    No table is left.
    """
    job = Job(executor, is_last=is_last)
    job.start(progress)
    job.enumerate(progress)
    counts: list[int] = job.record.data["states"]
    with job.value_files() as (reader, writer):
        for number in (len(counts) - 1, len(counts) - 2):
            writer.write(number, np.zeros(counts[number]), 0, {})
        writer.commit()
        job.value(reader, writer, progress)
    return counts


def timed(
    executor: Executor, is_last: Callable[[Packed], bool], measured: Callable[[Step], bool]
) -> Rates:
    """The rates of a trial in those of its layers that are to be measured."""
    taken: list[tuple[Step, float]] = []
    before = time.perf_counter()

    def note(step: Step) -> None:
        nonlocal before
        now = time.perf_counter()
        taken.append((step, now - before))
        before = now

    solve_first_ages(executor, is_last, note)
    spent, states = {"enumerate": 0.0, "values": 0.0}, {"enumerate": 0, "values": 0}
    for step, seconds in taken:
        if measured(step):
            spent[step.stage] += seconds
            states[step.stage] += step.layer
    rates = [states[stage] / spent[stage] for stage in spent]
    return Rates(states["values"], *rates)
