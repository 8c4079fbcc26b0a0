"""The overhead of a cluster on one machine: `lab2048 bench cluster`."""

from __future__ import annotations

import statistics
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from lab2048.bench.engine import Note, machine
from lab2048.cluster.executor import RayExecutor
from lab2048.cluster.workers import Team, connected
from lab2048.solver.executor import ThreadExecutor
from lab2048.solver.job import MakeExecutor
from lab2048.solver.problem import Problem
from lab2048.solver.threads import WorkerThreads
from lab2048.solver.trial import Rates, timed

BOARD = "4x3"
LAYERS = 2_000_000, 6_000_000
"""Layers with more states than the first and fewer than the second are measured."""
BEYOND = 6_500_000
"""The last layer is the first of more states; the values begin there, and with them the files."""
TURNS = 5
"""Turns that are measured, after one to warm up: memory is slow when first used."""
WORKERS = 2


def bench_cluster(note: Note = lambda text: None) -> dict[str, Any]:
    """Every figure of `lab2048 bench cluster`: as many threads as workers, in turns."""
    here, far = [], []
    with connected("local", WORKERS) as team:
        for turn in range(TURNS + 1):
            name = f"turn {turn} of {TURNS}" if turn else "warm-up"
            note(f"{WORKERS} threads, {name}")
            here.append(_rates(None))
            note(f"{WORKERS} workers, {name}")
            far.append(_rates(team))
    here, far = here[1:], far[1:]
    more = [100 * (a.both / b.both - 1) for a, b in zip(here, far, strict=True)]
    return {
        "board": BOARD,
        "states": here[0].states,
        "layers": LAYERS,
        "workers": WORKERS,
        "threads_states_per_second": _medians(here),
        "workers_states_per_second": _medians(far),
        "more_time_percent": round(statistics.median(more), 1),
        "more_time_percent_of_turns": [round(each, 1) for each in more],
        "machine": machine(),
    }


def _rates(team: Team | None) -> Rates:
    """The rates of one trial."""
    problem = Problem.of(BOARD)
    make: MakeExecutor = ThreadExecutor if team is None else partial(RayExecutor, team=team)
    with (
        tempfile.TemporaryDirectory(prefix="lab2048-") as folder,
        WorkerThreads(WORKERS) as workers,
    ):
        return timed(
            make(problem, Path(folder), workers),
            lambda layer: layer.states > BEYOND,
            lambda step: LAYERS[0] < step.layer < LAYERS[1],
        )


def _medians(found: list[Rates]) -> dict[str, int]:
    """The median rate of each stage, and of both together."""
    return {
        name: round(statistics.median(getattr(each, name) for each in found))
        for name in ("enumerate", "values", "both")
    }
