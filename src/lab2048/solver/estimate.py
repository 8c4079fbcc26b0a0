"""Estimate the size of a table and the time to make it, before it is begun."""

from __future__ import annotations

import math
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from lab2048.game import Rules
from lab2048.game.notation import checked_threads, short
from lab2048.solver.objective import Objective
from lab2048.solver.problem import Problem, problem_of
from lab2048.solver.table_files import checked_keep, checked_kind
from lab2048.solver.table_size import disk_bytes, is_counted, sizes_of
from lab2048.tabular import SingleRow

if TYPE_CHECKING:
    from lab2048.solver.table_writer import Packed
    from lab2048.solver.trial import Rates

WORKING_BYTES = 400
"""Memory per state of the largest age, everything included."""
BASE_BYTES = 300_000_000
"""Memory that every solve takes."""
COMPILE_SECONDS, SHAPE_SECONDS = 35.0, 20.0
"""Seconds to compile all kernels of a solve, and only those that differ from board to board: 28 and
16 s of processor time (`solve 3x3` with an empty data folder, then `solve 4x2`), and more on a busy
machine."""
USUAL_RATE = 4_000_000
"""States per second per thread, both stages together, on a machine of 2025."""


@dataclass(frozen=True)
class Estimate(SingleRow):
    """Estimated cost of a solve.

    >>> from lab2048 import estimate
    >>> estimate("3x3").exact
    True
    """

    states: int
    known: bool
    """Whether the number of states has been counted, for these rules or for more general ones."""
    exact: bool
    """Whether it is the exact number for these rules, not an upper bound."""
    seconds: float
    memory: int
    disk: int
    """Bytes while the table is being made; the finished table is somewhat smaller."""
    threads: int
    measured: dict[str, float] | None = None
    """The rates measured by a trial on this machine, if there was one, and its threads."""


@overload
def estimate(
    board: str | Rules | Problem,
    values: str = ...,
    threads: int | None = ...,
    keep: str = ...,
    rate: float | None = ...,
    *,
    trial: float = ...,
    objective: str | Objective = ...,
    p4: float | None = ...,
    gamma: float = ...,
) -> Estimate: ...
@overload
def estimate(
    board: str | Rules | Problem,
    values: str = ...,
    threads: int | None = ...,
    keep: str = ...,
    rate: float | None = ...,
    *,
    cores: int,
    machines: int | None = ...,
    trial: float = ...,
    objective: str | Objective = ...,
    p4: float | None = ...,
    gamma: float = ...,
) -> ClusterEstimate: ...
def estimate(  # noqa: PLR0913
    board: str | Rules | Problem,
    values: str = "float64",
    threads: int | None = None,
    keep: str = "table",
    rate: float | None = None,
    *,
    cores: int | None = None,
    machines: int | None = None,
    trial: float = 0.0,
    objective: str | Objective = "score",
    p4: float | None = None,
    gamma: float = 1.0,
) -> Estimate | ClusterEstimate:
    """Estimate what a solve takes on this machine, or on a cluster with `cores` cores.

    The board, its objective, `p4` and `gamma` are as in `solve`, `values` and `keep` as in
    `make_table`. `rate` is in states per second; without it, a `trial` of that many seconds
    measures it here. Without either, it is measured for two seconds on large boards, and a typical
    rate is assumed on small ones. The cores of a cluster are taken to be like those here, on
    `machines` machines, or on machines of 64 cores each.

    >>> estimate("3x3").states
    48713519
    >>> estimate("4x3", rate=1e7, cores=1024).machines
    16
    """
    wanted = problem_of(board, p4=p4, objective=objective, gamma=gamma)
    checked_kind(values)
    checked_keep(keep)
    for name, given in (("cores", cores), ("machines", machines), ("rate", rate)):
        if given is not None and not given > 0:
            raise ValueError(f"`{name}` is a number above 0, not {short(given)}")
    count = checked_threads(threads)
    if cores is None and machines is not None:
        raise ValueError("`machines` says where the `cores` are; how many are there?")
    rates = measured_rates(wanted, count, trial) if trial else None
    pace = rate or (rates.both if rates else rate_here(wanted, count))
    measured = None if rates is None else {**rates._asdict(), "threads": count}
    if cores is None:
        return replace(_estimate_here(wanted, values, count, keep, pace), measured=measured)
    nodes = machines or max(1, -(-cores // MACHINE_CORES))
    found = cluster_estimate(wanted, values, keep, cores, nodes, pace, count)
    return replace(found, measured=measured)


def _estimate_here(problem: Problem, values: str, threads: int, keep: str, rate: float) -> Estimate:
    """Estimate what a solve takes on this machine, at a known rate."""
    rules, known = problem.rules, is_counted(problem)
    states, _, largest = sizes_of(problem)
    return Estimate(
        states=states,
        known=known,
        exact=known and 0 < rules.p4 < 1 and not problem.objective.tile,
        seconds=states / rate,
        memory=BASE_BYTES + WORKING_BYTES * largest,
        disk=disk_bytes(problem, values, keep),
        threads=threads,
    )


def rate_here(problem: Problem, threads: int) -> float:
    """States per second: typical on small boards, on large ones measured in two seconds."""
    if problem.rules.cells < 10:
        return USUAL_RATE * threads
    return measured_rates(problem, threads, seconds=2.0).both


def compile_seconds(problem: Problem) -> float:
    """The seconds that compiling takes before a solve; 0 if nothing needs compiling."""
    from lab2048.engine.jit import IN_PYTHON, noted

    ready = set() if IN_PYTHON else noted()
    if IN_PYTHON or f"solve-{problem.rules.name}" in ready:
        return 0.0
    return SHAPE_SECONDS if any(name.startswith("solve-") for name in ready) else COMPILE_SECONDS


def measured_rates(problem: Problem, threads: int, seconds: float = 8.0) -> Rates:
    """Solve the first ages for about `seconds`; return the rates in the larger layers."""
    from lab2048.solver.executor import ThreadExecutor
    from lab2048.solver.threads import WorkerThreads
    from lab2048.solver.trial import timed

    began, largest = 0.0, 1

    def is_last(layer: Packed) -> bool:
        nonlocal largest
        largest = max(largest, layer.states)
        return layer.age > 20 and time.perf_counter() - began > seconds / 3

    with (
        tempfile.TemporaryDirectory(prefix="lab2048-") as folder,
        WorkerThreads(threads) as workers,
    ):
        executor = ThreadExecutor(problem, Path(folder), workers)
        executor.prepare()  # compile before the clock starts
        began = time.perf_counter()
        return timed(executor, is_last, lambda step: step.layer > largest / 3)


# -- many machines -------------------------------------------------------------------------------

INDEX_BYTES = 32
"""Bytes per key in an index."""
LISTED = 3.0
"""Keys that both steps list per state, on 4x3."""
HANDED_OUT = 1.25
"""How much longer tasks take than threads: a factor of 1.15 by `lab2048 bench cluster`, and a tenth
more for merging hundreds of lists instead of two."""
AGE_SECONDS = 0.04
"""Seconds to hand out the steps of an age, both stages together."""
MACHINE_CORES = 64
"""Cores per machine if the number of machines is not given."""
WORKER_BYTES = 600_000_000
"""Memory of a worker: its libraries, its kernels and its current shard."""


@dataclass(frozen=True)
class ClusterEstimate(SingleRow):
    """Estimated cost of a solve on a cluster.

    >>> from lab2048 import estimate
    >>> estimate("3x3", cores=256).machines
    4
    """

    states: int
    ages: int
    largest: int
    """States of the largest age."""
    cores: int
    machines: int
    core_rate: float
    """States per second per core, both stages together."""
    seconds: float
    """If the shared folder keeps up."""
    memory: int
    """Bytes per machine."""
    disk: int
    """Bytes in the shared folder, at most."""
    read: int
    """Bytes that each machine reads from the shared folder."""
    written: int
    """Bytes that each machine writes to it."""
    measured: dict[str, float] | None = None
    """The rates measured by a trial on this machine, if there was one, and its threads."""

    @property
    def bandwidth(self) -> float:
        """Bytes per second that the shared folder has to transfer to keep up."""
        return self.machines * (self.read + self.written) / self.seconds

    def as_json(self) -> dict[str, Any]:
        """Return all figures."""
        return {**super().as_json(), "bandwidth": self.bandwidth}


def cluster_estimate(
    problem: Problem, values: str, keep: str, cores: int, machines: int, rate: float, threads: int
) -> ClusterEstimate:
    """Estimate what a solve takes on a cluster of machines like this one.

    `rate` is that of `threads` threads here. Every machine reads every index once.
    """
    here = _estimate_here(problem, values, threads, keep, rate)
    states, afters, largest = sizes_of(problem)
    ages = (1 << problem.rules.cells + 1) - 3
    core_rate = rate / threads
    indexes = INDEX_BYTES * (states + afters)
    lists = int(8 * (LISTED * states + states + afters))
    stored = here.disk
    workers = math.ceil(cores / machines)
    peak = INDEX_BYTES * int(largest * (2 + afters / states))
    return ClusterEstimate(
        states=states,
        ages=ages,
        largest=largest,
        cores=cores,
        machines=machines,
        core_rate=core_rate,
        seconds=HANDED_OUT * states / (core_rate * cores) + AGE_SECONDS * ages,
        memory=peak + WORKER_BYTES * workers,
        disk=stored + 2 * peak,
        read=indexes + (lists + stored) // machines,
        written=(indexes + lists + stored) // machines,
    )
