"""How large a table will be and how long it will take, before it is begun."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from lab2048.solve.problem import REACH, Problem
from lab2048.solve.store import KINDS

SIZES = {
    (2, 2): (110, 67, 10),
    (2, 3): (21_752, 14_883, 350),
    (2, 4): (4_980_767, 3_406_686, 12_000),
    (3, 3): (48_713_519, 31_431_374, 105_000),
    (2, 5): (1_814_373_350, 1_250_559_969, 1_600_000),
    (3, 4): (1_152_817_492_752, 739_648_886_170, 297_784_736),
}
"""States, afterstates and the states of the largest age, for a p4 that is not 0 or 1."""
KEY_BYTES = 0.9
"""What a key takes on the disk; 0.89 on 3x3, 0.80 on 5x2."""
WORKING_BYTES = 400
"""What a state of the largest age takes in memory, everything included."""
BASE_BYTES = 300_000_000
"""Memory that every solve takes."""
USUAL_RATE = 4_000_000
"""States a second and thread, both stages together, on a machine of 2025."""


@dataclass(frozen=True)
class Estimate:
    """What a solve will need."""

    states: int
    known: bool
    """Whether the number of states has been counted, for these rules or for more general ones."""
    exact: bool
    """Whether it is the number of just these rules, not only the most there can be."""
    seconds: float
    memory: int
    disk: int
    """While it is being made; the finished table is somewhat smaller."""


def estimate(problem: Problem, values: str, threads: int, keep: str = "table") -> Estimate:
    """What it will take to solve a problem on this machine."""
    rules = problem.rules
    shape = (min(rules.rows, rules.cols), max(rules.rows, rules.cols))
    known = shape in SIZES
    states, afters, largest = SIZES[shape] if known else _extrapolated()
    stored = KINDS[values].itemsize * states if keep == "table" else 0
    return Estimate(
        states=states,
        known=known,
        exact=known and 0 < rules.p4 < 1 and problem.objective != REACH,
        seconds=states / _rate(problem, threads),
        memory=BASE_BYTES + WORKING_BYTES * largest,
        disk=int(KEY_BYTES * states) + stored + 4 * afters,
    )


def _extrapolated() -> tuple[int, int, int]:
    """The size of 6x2, which nobody has solved: the ratio of neighbours grows as it did before."""
    sizes = [SIZES[2, n] for n in (3, 4, 5)]
    found = [c * c // b * (c // b) // (b // a) for a, b, c in zip(*sizes, strict=True)]
    return found[0], found[1], found[2]


def _rate(problem: Problem, threads: int) -> float:
    """States a second; on large boards measured on the first ages, which takes half a second."""
    from lab2048.solve.crew import Crew
    from lab2048.solve.layers import Enumeration

    if problem.rules.cells < 10:
        return USUAL_RATE * threads
    done = 0
    with Crew(threads) as crew:
        layers = Enumeration(problem, crew)
        began = time.perf_counter()
        for layer in layers:
            done += sum(map(len, layer.states))
            if time.perf_counter() - began > 0.5:
                break
        spent = time.perf_counter() - began
    return done / spent / 3  # the values take twice as long as the keys


def free_space(folder: Path) -> int:
    """The bytes that are free where a folder is, or will be."""
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free
