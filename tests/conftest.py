"""What all tests share: a folder of their own, and boards to try things on."""

from __future__ import annotations

import os

import naive
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

WITH_JIT = os.environ.get("NUMBA_DISABLE_JIT", "0") == "0"

# Runs are the same every time; without the JIT every example costs far more.
settings.register_profile(
    "repeatable",
    derandomize=True,
    deadline=None,
    max_examples=200 if WITH_JIT else 20,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("repeatable")


def pytest_collection_modifyitems(items):
    for item in items:
        if item.name == "README.md":  # it solves a board: there is much to compile
            item.add_marker(pytest.mark.slow)


@pytest.fixture
def own_home(tmp_path, monkeypatch):
    """An empty data folder, for this process and those it starts."""
    monkeypatch.setenv("LAB2048_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def warm_home(tmp_path, monkeypatch):
    """A data folder that has nothing but compiled kernels, those of all tests."""
    from lab2048.jit import cache_folder

    kernels = cache_folder().parent
    monkeypatch.setenv("LAB2048_HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "kernels").symlink_to(kernels)
    return tmp_path / "home"


def usual_ranks(largest: int) -> st.SearchStrategy[int]:
    """Mostly small ranks and empty cells, so that much merges and moves."""
    return st.one_of(st.just(0), st.integers(1, 3), st.integers(0, largest))


@st.composite
def grids(draw, largest=14, ranks=None):
    """A grid of tiles of any shape."""
    rows, cols = draw(st.sampled_from(naive.SHAPES))
    kind = usual_ranks(largest) if ranks is None else ranks
    cells = draw(st.lists(kind, min_size=rows * cols, max_size=rows * cols))
    tiles = [2**rank if rank else 0 for rank in cells]
    return [tiles[r * cols : (r + 1) * cols] for r in range(rows)]
