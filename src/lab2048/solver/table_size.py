"""How large a table is, and whether the disk has room for it."""

from __future__ import annotations

import shutil
from pathlib import Path

from lab2048.formatting import size
from lab2048.solver.manifest import load_manifest
from lab2048.solver.problem import Problem
from lab2048.solver.table_files import KINDS, PROGRESS, TableError

SIZES = {
    (2, 2): (110, 67, 10),
    (2, 3): (21_752, 14_883, 302),
    (2, 4): (4_980_767, 3_406_686, 18_210),
    (3, 3): (48_713_519, 31_431_374, 93_061),
    (2, 5): (1_814_373_350, 1_250_559_969, 1_800_493),
    (3, 4): (1_152_817_492_752, 739_648_886_170, 297_784_736),
}
"""States, afterstates and the states of the largest age, for a p4 that is not 0 or 1."""
KEY_BYTES = 0.9
"""Bytes per key on disk; 0.89 on 3x3, 0.80 on 5x2."""


def sizes_of(problem: Problem) -> tuple[int, int, int]:
    """States, afterstates and the states of the largest age, counted or extrapolated."""
    return SIZES.get(_shape(problem)) or _extrapolated()


def is_counted(problem: Problem) -> bool:
    """Whether the states of a board have been counted, not extrapolated."""
    return _shape(problem) in SIZES


def _shape(problem: Problem) -> tuple[int, int]:
    rules = problem.rules
    return min(rules.rows, rules.cols), max(rules.rows, rules.cols)


def _extrapolated() -> tuple[int, int, int]:
    """The size of 6x2, which nobody has solved: the ratio of neighbours grows as it did before."""
    sizes = [SIZES[2, n] for n in (3, 4, 5)]
    found = [c * c // b * (c // b) // (b // a) for a, b, c in zip(*sizes, strict=True)]
    return found[0], found[1], found[2]


def disk_bytes(problem: Problem, values: str, keep: str) -> int:
    """The bytes that a table takes on disk while it is being made."""
    states, afters, _ = sizes_of(problem)
    stored = KINDS[values].itemsize * states if keep == "table" else 0
    return int(KEY_BYTES * states) + stored + 4 * afters


def check_room(
    problem: Problem,
    folder: Path,
    values: str = "float64",
    keep: str = "table",
    *,
    needed: int | None = None,
    elsewhere: str = "--out",
) -> None:
    """Raise `ValueError` if a new table seems too large for the disk of its folder.

    `needed` overrides the estimate of its bytes, `elsewhere` is the option that names another
    disk. A table that is already begun is not checked: it gets as far as the disk allows.
    """
    needed = disk_bytes(problem, values, keep) if needed is None else needed
    free = free_space(folder)
    if needed <= free or not _would_begin(folder, keep):
        return
    smaller = "--values float32, " if (keep, values) == ("table", "float64") else ""
    smaller = f"--keep summary, {smaller}" if keep == "table" else smaller
    raise ValueError(
        f"{problem.name} needs about {size(needed)} of disk and {folder} has "
        f"{size(free)} free; lab2048 solve has {smaller}{elsewhere} for another disk, "
        "and --force to begin all the same"
    )


def _would_begin(folder: Path, keep: str) -> bool:
    """Whether a solve would begin a new table: the folder has none, finished or begun."""
    if (folder / PROGRESS).exists():  # checked first: it is removed once there is a manifest
        return False
    try:
        manifest = load_manifest(folder)
    except TableError:  # the solve itself reports what is wrong
        return False
    return manifest is None or (manifest.get("keep"), keep) == ("summary", "table")


def free_space(folder: Path) -> int:
    """The free bytes of the disk that a folder is on, or will be."""
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free
