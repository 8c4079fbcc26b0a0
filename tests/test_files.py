"""Files that an earlier version wrote are read, resumed and finished (tests/files/README.md)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.conftest import FILES as TABLE_FILES

OLD = Path(__file__).parent / "files"
TIMES = {"seconds", "moves_per_second", "learning"}
"""What a log says about the machine."""


@pytest.fixture
def old_home(warm_home):
    """A data folder as an earlier version left it."""
    for name in ("tables", "networks", "results", "surveys"):
        shutil.copytree(OLD / name, warm_home / name)
    shutil.copy(OLD / "best.json", warm_home)
    return warm_home


def answer(command, *arguments):
    """The JSON value that a command prints."""
    code, out, error = command(*arguments, "--json")
    assert code == 0, error
    return json.loads(out)


# -- tables ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_tables_are_listed_probed_and_sound(command, old_home):
    found = {Path(row["table"]).name: row for row in answer(command, "table", "list")}
    assert set(found) == {"2x2-score", "2x2-score-p4-0.2-gamma-0.9-float32", "2x3-score"}
    assert found["2x2-score"]["states"] == 110
    assert found["2x2-score"]["value"]["2+2"] == pytest.approx(67.6963, abs=1e-4)
    assert answer(command, "probe", "2 2 / 4 .")["value"] == pytest.approx(64.9077, abs=1e-4)
    for name, row in found.items():
        assert answer(command, "table", "verify", name, "--full")["states"] == row["states"]


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["half-enumerated", "half-valued"])
def test_half_made_tables_are_finished_with_the_same_bytes(command, old_home, tmp_path, stage):
    folder = shutil.copytree(OLD / "half-made" / stage, tmp_path / "2x3")
    begun = json.loads((folder / "progress.json").read_text())
    assert begun["enumerated"] == (stage == "half-valued")
    assert answer(command, "solve", "2x3", "--out", str(folder))["states"] == 21_752
    for name in TABLE_FILES:
        assert (folder / name).read_bytes() == (OLD / "tables" / "2x3-score" / name).read_bytes()


# -- networks ----------------------------------------------------------------------------------


def log_of(path):
    """The records of a log, without what depends on the machine."""
    records = [json.loads(line) for line in path.read_text().splitlines()]
    return [{k: v for k, v in each.items() if k not in TIMES} for each in records]


def about(one, other):
    """Whether two records agree, numbers to four digits: torch adds in another order elsewhere."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(about(one[key], other[key]) for key in one)
    return one == (pytest.approx(other, rel=1e-4) if isinstance(other, float | list) else other)


RESUMES = {
    "tuples": "ntuple --episodes 4000 --block 1000 --threads 1 --against 2x2",
    "phases": "ntuple --episodes 4000 --block 500 --threads 1",
    "student": "supervised --epochs 4 --threads 1 --data DATA/moves.parquet",
    "labelled": "supervised --epochs 4 --threads 1 --data DATA/perfect.parquet",
    "selfmade": "zero --moves 8k --parts 2 --threads 1 --against 2x2",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", RESUMES)
def test_trainings_are_resumed(command, old_home, name):
    words = RESUMES[name].replace("DATA", str(OLD / "data")).split()
    found = answer(command, "train", *words, "--resume", "--out", name)
    wanted = log_of(OLD / "networks" / name / "resumed.jsonl")
    logged = log_of(old_home / "networks" / name / "log.jsonl")
    assert len(logged) == len(wanted)
    for one, other in zip(logged, wanted, strict=True):
        assert about(one, other)
    result = found[0] if isinstance(found, list) else found
    assert result["name"] == name and len(result["log"]) == len(wanted)


def test_trained_networks_are_listed(command, old_home):
    found = answer(command, "train", "list")
    assert {name: row["trained"] for name, row in found.items()} == {
        "labelled": "2 of 2 epochs",
        "phases": "2,000 games",
        "selfmade": "5,747 moves",
        "student": "2 of 2 epochs",
        "tuples": "2,000 games",
    }


@pytest.mark.slow
def test_networks_play_as_before(command, old_home):
    specs = [f"ntuple:{OLD}/packed/tuples.safetensors", "ntuple:tuples"]
    specs += [f"supervised:{OLD}/packed/labelled.safetensors", "supervised:student"]
    specs += [f"zero:{OLD}/packed/selfmade.safetensors,simulations=0"]
    found = answer(command, "evaluate", *specs, "--board", "2x2", "--games", "5", "--exact")
    values = [row["exact"]["value"] for row in found]
    wanted = [66.9557992, 66.9557992, 63.8366571, 63.8366571, 66.7463982]
    assert values == pytest.approx(wanted, abs=1e-6)


# -- games, data, results ----------------------------------------------------------------------


@pytest.mark.slow
def test_games_are_replayed_and_reviewed(command, old_home):
    found = answer(command, "review", str(OLD / "data" / "games.jsonl"), "--game", "1")
    assert found["player"] == "greedy"
    code, out, _ = command("replay", str(OLD / "data" / "games.jsonl"))
    assert code == 0 and out.startswith("40 games")


def test_move_data_is_read(command, old_home):
    for name in ("moves.parquet", "moves.txt"):
        path = str(OLD / "data" / name)
        assert answer(command, "data", "check", path, "--board", "2x2")[path]["moves"] == 300


def test_kept_results_and_surveys_are_read(old_home):
    from lab2048.measure.archive import list_results, read_survey

    found = list_results()
    assert [[row["player"] for row in each["results"]] for each in found] == [
        ["greedy", "random"],
        ["greedy", "corner"],
    ]
    survey = read_survey("2x2-score")
    assert survey["score"]["mean"] == pytest.approx(66.964, abs=1e-3)


def test_best_scores_are_read(old_home):
    from lab2048.cli.play_screen import BestScores
    from lab2048.game import Rules

    assert BestScores().of(Rules(3, 3)) == 4321
