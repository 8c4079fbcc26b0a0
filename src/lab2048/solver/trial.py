"""The first ages of a board, done as a whole solve does them: to see how fast that is."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from lab2048.solve.making import LayerReader, ValueWriter
from lab2048.solve.solver import Job, Progress, Step


class Rates(NamedTuple):
    """States a second of both stages, in the layers from some age on."""

    states: int
    """How many states these layers have."""
    enumerate: float
    values: float

    @property
    def both(self) -> float:
        """States a second, one stage after the other."""
        return 1 / (1 / self.enumerate + 1 / self.values)


class FirstAges(Job):
    """A solve that ends where `is_last` says. Values begin there with 0, and take as long."""

    def value_all(self, reader: LayerReader, writer: ValueWriter, progress: Progress) -> None:
        """Value all layers but the last two, which are worth nothing."""
        counts = self.record.data["states"]
        for number in (len(counts) - 1, len(counts) - 2):
            writer.write(number, np.zeros(counts[number]), 0, {})
        writer.commit()
        super().value_all(reader, writer, progress)

    def finish(self, progress: Progress) -> dict[str, Any]:
        """Leave no table: its values are not right."""
        return {}


def timed(job: FirstAges, measured: Callable[[Step], bool]) -> Rates:
    """The rates of a trial in those of its layers that are to be measured."""
    taken: list[tuple[Step, float]] = []
    before = time.perf_counter()

    def note(step: Step) -> None:
        nonlocal before
        now = time.perf_counter()
        taken.append((step, now - before))
        before = now

    job.run(note)
    spent, states = {"enumerate": 0.0, "values": 0.0}, {"enumerate": 0, "values": 0}
    for step, seconds in taken:
        if measured(step):
            spent[step.stage] += seconds
            states[step.stage] += step.layer
    rates = [states[stage] / spent[stage] for stage in spent]
    return Rates(states["values"], *rates)
