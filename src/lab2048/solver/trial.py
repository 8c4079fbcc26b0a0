"""Solve the first ages of a board, as a whole solve would, to measure the speed."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from lab2048.solver.executor import Executor, Progress, Step
from lab2048.solver.job import Job
from lab2048.solver.table_writer import Packed


class Rates(NamedTuple):
    """States per second of each stage, in the layers that were measured."""

    states: int
    """The number of states of these layers, as measured in the second stage."""
    enumerate: float
    values: float

    @property
    def both(self) -> float:
        """States per second through both stages together."""
        return 1 / (1 / self.enumerate + 1 / self.values)


def solve_first_ages(
    executor: Executor, is_last: Callable[[Packed], bool], progress: Progress
) -> list[int]:
    """Solve the ages up to the first layer that `is_last`; return the number of states of each.

    The values of the last two layers are set to 0, so the others are wrong, but take as long. No
    manifest is written, so the folder holds no finished table.
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
    """Solve the first ages; return the rates in the layers for whose steps `measured` holds."""
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
