"""The commands solve, table and probe on solved boards."""

from __future__ import annotations

import json

import numpy as np
import pytest

from lab2048.game import Board
from lab2048.solver.job import make_table
from lab2048.solver.problem import Problem
from lab2048.solver.tables import open_table
from tests.conftest import FILES, WITH_JIT, flip, run_command
from tests.solver.damaging import change_value

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not WITH_JIT, reason="takes too long without the JIT"),
]


# -- damage ------------------------------------------------------------------------------------


def test_probe_of_a_damaged_table_is_one_line(command, copy):
    board = Board.from_packed(change_value(copy, 20, lambda _: np.nan, seal=False), 3, 2)
    for more in ((), ("--json",)):
        code, out, error = command("probe", str(board), "--table", str(copy), *more)
        assert (code, out) == (2, "")
        assert error.startswith("lab2048: the values of age 44 in ") and error.count("\n") == 1


# -- the command line ----------------------------------------------------------------------------


def test_solve_and_tables_on_the_command_line(warm_home):
    found = json.loads(run_command("solve", "2x2", "--json").stdout)
    assert list(found)[:9] == [
        *("board", "p4", "objective", "gamma", "states", "afterstates", "terminals", "max_age"),
        "value",
    ]
    assert found["value"].keys() == {"start", "2+2", "2+4", "4+4"}
    assert found["seconds"].keys() == {"enumerate", "values", "total"}
    folder = warm_home / "tables" / "2x2-score"
    assert found["table"] == str(folder)
    assert found["table_bytes"] == sum((folder / name).stat().st_size for name in FILES[:3])
    again = run_command("solve", "2x2", "--json")
    assert again.stderr == "2x2-score is already solved\n"
    assert json.loads(again.stdout) == found
    text = run_command("solve", "2x2", "--objective", "reach:16").stdout
    assert "41 (6 of them terminal)" in text
    (warm_home / "tables" / "notes.txt").write_text("not a table")
    listed = run_command("table", "list").stdout
    assert "2x2-score" in listed and "67.70" in listed and "reach:16" in listed
    assert [row["states"] for row in json.loads(run_command("table", "list", "--json").stdout)] == [
        41,
        110,
    ]
    assert "110" in run_command("table", "info", "2x2").stdout
    assert json.loads(run_command("table", "info", "2x2-score", "--json").stdout) == found
    assert (
        "is sound: 110 states, 110 of them"
        in run_command("table", "verify", "2x2", "--full").stdout
    )
    assert "removed" in run_command("table", "remove", "2x2-reach-16", "--yes").stdout
    assert not (warm_home / "tables" / "2x2-reach-16").exists()
    error = run_command("table", "info", "5x5", code=2).stderr
    assert error == "lab2048: there is no table 5x5; lab2048 table list shows what there is\n"
    flip(folder / "keys.bin", 5)
    assert "damaged" in run_command("table", "verify", "2x2", code=2).stderr


def test_tables_are_listed_without_compiling_anything(own_home):
    assert "There is no table" in run_command("table", "list").stdout
    assert not (own_home / "kernels").exists()


def test_a_folder_that_is_a_file_is_said(own_home, tmp_path):
    (tmp_path / "file").write_text("")
    error = run_command("solve", "2x2", "--out", str(tmp_path / "file"), code=2).stderr
    assert error == f"lab2048: {tmp_path / 'file'} is a file; a table is a folder\n"


def test_a_board_too_large_for_the_disk_is_refused(warm_home):
    done = run_command("solve", "4x3", code=2)
    estimate, error = done.stderr.splitlines()[-2:]
    assert "4x3-score: 1,152,817,492,752 states" in estimate and "TB of disk" in estimate
    assert error.startswith("lab2048: 4x3-score needs about") and "--force" in error
    assert not (warm_home / "tables").exists()


def test_probe_on_the_command_line(warm_home):
    make_table(Problem.of("2x2"))
    found = json.loads(run_command("probe", "2 2 / 4 .", "--json").stdout)
    with open_table("2x2") as table:
        assert found["value"] == table.value("2 2 / 4 .")
        for direction, move in table.moves("2 2 / 4 .").items():
            shown = found["moves"][str(direction)]
            assert (shown["q"], shown["regret"], shown["optimal"]) == (
                move.q,
                move.regret,
                move.optimal,
            )
            assert shown["after_value"] == move.after_value
    assert found["moves"]["up"]["q"] is None
    spawns = json.loads(run_command("probe", "2 2 / 4 .", "--after", "left", "--json").stdout)[
        "spawns"
    ]
    assert len(spawns) == 4 and sum(spawn["probability"] for spawn in spawns) == pytest.approx(1)
    mean = sum(spawn["probability"] * spawn["value"] for spawn in spawns)
    assert mean == pytest.approx(found["moves"]["left"]["after_value"], rel=1e-12)
    text = run_command("probe", "2 2 / 4 .").stdout
    assert "value 64.9077 (score, p4 0.1)" in text and "7.1619" in text
    error = run_command("probe", "2 . / . .", code=2).stderr
    assert error.startswith("lab2048: 2 . / . . is not reachable on 2x2") and error.count("\n") == 1
    error = run_command("probe", "2 2 / 4 .", "--after", "up", code=2).stderr
    assert error == "lab2048: up is not legal on 2 2 / 4 .\n"
    assert "lab2048 solve 3x3" in run_command("probe", "2 2 . / . . . / . . .").stdout
    unsolved = json.loads(run_command("probe", "2 2 . / . . . / . . .", "--json").stdout)
    assert unsolved["value"] is None and unsolved["moves"]["left"]["q"] is None
    assert unsolved["moves"]["left"]["reward"] == 4
    error = run_command("probe", "2 2 / . .", "--table", "nowhere", code=2).stderr
    assert "there is no table nowhere" in error
    there = ("probe", "2 2 / . .", "--table", str(table.path))
    run_command(*there, "--p4", "0.1", "--objective", "score")
    error = run_command(*there, "--p4", "0.3", code=2).stderr
    wanted = "is of 2x2-score, what is asked for is 2x2-score-p4-0.3"
    assert error == f"lab2048: the table in {table.path} {wanted}\n"
