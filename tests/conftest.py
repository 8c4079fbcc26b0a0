"""What all tests share: a folder of their own, and boards to try things on."""

from __future__ import annotations

import importlib
import os
import shutil
import signal
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from tests import naive

WITH_JIT = os.environ.get("NUMBA_DISABLE_JIT", "0") == "0"
# Tests run side by side: torch with more threads than one would wait for cores.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# A shell starts what runs in the background with Ctrl-C ignored, and programs inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Runs are the same every time; without the JIT every example costs far more.
settings.register_profile(
    "repeatable",
    derandomize=True,
    deadline=None,
    max_examples=200 if WITH_JIT else 20,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("repeatable")


BEGUN_ELSEWHERE = (
    "solver.keys",
    "players.monte_carlo",
    "learn.encoding",
    "learn.neural_players",
    "solver.survey",
)


def pytest_configure():
    """Let a second worker begin elsewhere: kernels of modules are then compiled by one of both."""
    if WITH_JIT and os.environ.get("PYTEST_XDIST_WORKER") == "gw1":
        for name in BEGUN_ELSEWHERE:
            importlib.import_module(f"lab2048.{name}")


@pytest.fixture
def own_home(tmp_path, monkeypatch):
    """An empty data folder, for this process and those it starts."""
    monkeypatch.setenv("LAB2048_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def warm_home(tmp_path, monkeypatch):
    """A data folder that has nothing but compiled kernels, those of all tests."""
    from lab2048.engine.jit import cache_folder

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


# -- tables ------------------------------------------------------------------------------------

FILES = ("keys.bin", "blocks.bin", "values.bin", "manifest.json")


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """The folder of a table of 3x2."""
    from lab2048.solver.job import make_table
    from lab2048.solver.problem import Problem

    folder = tmp_path_factory.mktemp("tables") / "3x2"
    make_table(Problem.of("3x2"), folder)
    return folder


@pytest.fixture
def copy(made, tmp_path):
    """A copy of it, to be damaged."""
    return shutil.copytree(made, tmp_path / "copy")


def flip(path, place):
    """Change one bit of a file where it is: others may be reading it."""
    with path.open("r+b") as file:
        file.seek(place)
        (byte,) = file.read(1)
        file.seek(place)
        file.write(bytes([byte ^ 1]))


def same_bytes(one, other):
    """Whether two finished tables are the same."""
    names = {path.name for path in one.iterdir()} - {"run.json"}
    assert names == {path.name for path in other.iterdir()} - {"run.json"} == set(FILES)
    return all((one / name).read_bytes() == (other / name).read_bytes() for name in names)


@pytest.fixture(scope="module")
def solved_home(tmp_path_factory, made):
    """A data folder with a table of 3x2, and compiled kernels."""
    from lab2048.engine.jit import cache_folder

    kernels = cache_folder().parent
    home = tmp_path_factory.mktemp("home")
    (home / "kernels").symlink_to(kernels)
    (home / "tables").mkdir()
    (home / "tables" / "3x2-score").symlink_to(made)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAB2048_HOME", str(home))
        yield home


@pytest.fixture(scope="module")
def address(solved_home):
    """Where a studio is that knows 3x2."""
    from tests.serving import serving

    with serving() as found:
        yield found


# -- commands ----------------------------------------------------------------------------------


@pytest.fixture
def command(monkeypatch, capsys):
    """A command run in this process: exit code, output, errors."""
    from lab2048.cli.app import main

    # while tests compile kernels, nothing is said of how long that takes
    monkeypatch.setattr("lab2048.cli.console.FIRST", 3600.0)

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["lab2048", *arguments])
        with pytest.raises(SystemExit) as stopped:
            main()
        code = stopped.value.code
        return code or 0, *capsys.readouterr()

    return call


def run_command(*arguments, code=0):
    """What a command of a process of its own prints; it has to end with this code."""
    run = [sys.executable, "-m", "lab2048", *arguments]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return done
