"""What tests of solving share."""

from __future__ import annotations

import pytest

from lab2048.solver.job import make_table
from lab2048.solver.problem import Problem
from lab2048.solver.tables import open_table
from tests import naive
from tests.conftest import WITH_JIT

needs_jit = pytest.mark.skipif(not WITH_JIT, reason="takes too long without the JIT")


def solved(folder, board, **options):
    """The description of a table made in a folder, and the table."""
    solving = {name: options.pop(name) for name in ("threads", "values") if name in options}
    found = make_table(Problem.of(board, **options), folder / "table", **solving)
    return found, open_table(folder / "table")


def canonical(grid):
    return min(naive.packed(image) for image in naive.images(grid))
