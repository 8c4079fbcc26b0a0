"""Somebody else adds a player, an objective, a heuristic and a learner, by one call each."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import lab2048 as lab
from tests import outsider
from tests.learn.climber import Climb

ROOT = Path(__file__).parent.parent
POINTS = """\
[lab2048.players]
downhill = tests.outsider:Downhill
[lab2048.objectives]
length = tests.outsider:Length
"""


@pytest.fixture
def added(tmp_path, monkeypatch):
    """A distribution that brings a player and an objective, as pip would have installed it."""
    about = tmp_path / "outsider-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: outsider\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(POINTS)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{ROOT}")


def lab2048(*arguments):
    """What a command prints in a process of its own."""
    run = [sys.executable, "-m", "lab2048", *arguments]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_an_installed_player_and_objective_are_commands(added, warm_home):
    assert "downhill" in lab2048("players")
    out = lab2048("evaluate", "downhill:first=1", "--board", "2x2", "--games", "20", "--exact")
    assert "downhill:first=1" in out
    assert "11.96" in lab2048("solve", "2x2", "--objective", "length")
    assert "2x2-length" in lab2048("table", "list")


@pytest.mark.slow
def test_a_player(warm_home, forgetting):
    lab.register_player(outsider.Downhill)
    found = lab.player("downhill:first=1", "2x2")
    assert found.choose("2 2 / . .") == lab.Direction.RIGHT
    exact = lab.exact_value(found)
    low, high = lab.evaluate(found, games=4000)[0].ci95
    assert low < exact.value < high
    with pytest.raises(ValueError, match="first"):
        lab.player("downhill:first=7", "2x2")


@pytest.mark.slow
def test_an_objective(warm_home, forgetting):
    lab.register_objective(outsider.Length)
    with lab.solve("2x2", objective="length") as table:
        # on perfect play for length no other player lasts longer
        longest = table.start_value["start"]
    assert longest == pytest.approx(11.96, abs=1e-3)
    for spec in ("greedy", "random", "optimal"):
        assert lab.exact_value(spec, "2x2").moves <= longest + 1e-9


@pytest.mark.slow
def test_a_heuristic(warm_home, forgetting):
    lab.register_heuristic("last-corner", outsider.last_corner, scored=True)
    found = lab.player("minimax:depth=1,heuristic=last-corner", "2x2").values("4 4 / . .")
    assert found == {
        lab.Direction.RIGHT: 8.0,
        lab.Direction.DOWN: 200.0,
        lab.Direction.LEFT: 8.0,
    }


@pytest.mark.slow
def test_a_learner(warm_home, forgetting):
    lab.register_learner("outsider", Climb)
    run = lab.train.outsider("2x2", steps=30, out="first", against="2x2")
    assert run.log[-1]["exact"]["regret"] > 0
    assert lab.exact_value("outsider:first", "2x2").value == pytest.approx(run.log[-1]["mean"])
    more = lab.train.outsider("2x2", steps=60, out="first", resume=True)
    assert more.log[-1]["mean"] >= run.log[-1]["mean"]
