"""What is in a table's folder before a solve: used if it can be, and never removed unasked."""

from __future__ import annotations

import json
import shutil

import pytest

from lab2048 import exact_value, probe
from lab2048.solver.existing_table import UnusableTableError
from lab2048.solver.job import make_table
from lab2048.solver.problem import Problem
from lab2048.solver.table import Table
from lab2048.solver.table_files import TableError, read_json, write_json
from lab2048.solver.tables import ensure_table, list_tables, remove_table, solve
from tests.conftest import same_bytes

pytestmark = pytest.mark.slow  # every case needs a solved board


def contents(folder):
    """All files of a folder but the lock, with what is in them."""
    paths = (path for path in folder.iterdir() if path.name != "lock")
    return {path.name: path.read_bytes() for path in paths}


def described_in(folder):
    """The file that says what a folder holds."""
    (path,) = [each for each in folder.glob("*.json") if each.name != "run.json"]
    return path


def claim(folder, **fields):
    """Have what is in a folder say something else about itself."""
    path = described_in(folder)
    write_json(path, {**read_json(path), **fields})


@pytest.fixture(params=["finished", "half-made"])
def table(request, made, tmp_path):
    """A table of 3x2, finished or not."""
    if request.param == "finished":
        return shutil.copytree(made, tmp_path / "t")

    def stop(step):
        if step.stage == "values" and step.age == 100:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_table("3x2", tmp_path / "t", progress=stop)
    return tmp_path / "t"


def assert_refused(folder, command, what):
    """That no solve uses or changes what is in a folder, and both say the same in one line."""
    before = contents(folder)
    with pytest.raises(UnusableTableError, match=what) as error:
        make_table("3x2", folder)
    code, out, said = command("solve", "3x2", "--out", str(folder))
    assert (code, out, said) == (2, "", f"lab2048: {error.value}\n")
    assert f"lab2048 table remove {folder} removes it, solve --replace makes it anew" in said
    assert contents(folder) == before


@pytest.mark.parametrize("number", [1, 3, None])
def test_another_format_is_left_alone(table, made, command, number):
    claim(table, format=number)
    assert_refused(
        table, command, f"is of format {number}; this version .* reads format 2 \\(.*B in"
    )
    make_table("3x2", table, replace=True)
    assert same_bytes(made, table)


def test_another_format_with_fields_that_nobody_knows_is_left_alone(table, made, command):
    write_json(described_in(table), {"format": 3, "layers": "elsewhere"})
    assert_refused(table, command, "is of format 3")
    code, _, said = command("solve", "3x2", "--out", str(table), "--replace")
    assert code == 0 and f"removed the unusable table in {table}" in said
    assert same_bytes(made, table)


def test_damage_is_left_alone(table, made, command):
    path = described_in(table)
    path.write_bytes(path.read_bytes()[:-9])
    assert_refused(table, command, f"{path.name} is damaged \\(")
    make_table("3x2", table, replace=True)
    assert same_bytes(made, table)


@pytest.mark.parametrize("name", ["keys.bin", "values.bin"])
def test_a_finished_table_without_a_file_is_left_alone(copy, made, command, name):
    (copy / name).unlink()
    assert_refused(copy, command, f"{name} is missing")
    make_table("3x2", copy, replace=True)
    assert same_bytes(made, copy)


def test_files_that_nothing_describes_are_left_alone(copy, made, command):
    (copy / "manifest.json").unlink()
    assert_refused(copy, command, r"keys.bin is there, but neither manifest.json nor progress.json")
    make_table("3x2", copy, replace=True)
    assert same_bytes(made, copy)


def test_another_table_is_not_replaced(table):
    before = contents(table)
    for problem, values in ((Problem.of("2x2"), "float64"), (Problem.of("3x2"), "float32")):
        with pytest.raises(TableError, match="is the folder of another table: its"):
            make_table(problem, table, values=values, replace=True)
    assert contents(table) == before


def test_what_can_be_used_is_not_replaced(table, made):
    stages = set()
    make_table("3x2", table, replace=True, progress=lambda step: stages.add(step.stage))
    assert same_bytes(made, table) and "enumerate" not in stages


def test_a_run_that_was_killed_at_once_is_not_in_the_way(tmp_path, made, monkeypatch):
    """Before anything was committed there are files, but they are known to be of this solve."""

    def die(*_):
        raise SystemExit

    monkeypatch.setattr("lab2048.solver.table_writer.KeyWriter.commit", die)
    with pytest.raises(SystemExit):
        make_table("3x2", tmp_path / "t")
    assert (tmp_path / "t" / "keys.bin").stat().st_size
    monkeypatch.undo()
    make_table("3x2", tmp_path / "t")
    assert same_bytes(made, tmp_path / "t")


def test_an_old_table_of_a_small_board_is_not_made_anew_by_the_way(warm_home):
    make_table("2x2")
    folder = warm_home / "tables" / "2x2-score"
    claim(folder, format=1)
    before = contents(folder)
    with pytest.raises(TableError, match="is of format 1"):
        solve("2x2")
    assert contents(folder) == before
    with solve("2x2", replace=True) as table:
        assert table.states == 110
    (folder / "manifest.json").write_text("damaged")
    with pytest.raises(TableError, match="is damaged"):
        solve("2x2")
    with solve("2x2", replace=True) as table:
        assert table.states == 110
    assert remove_table(folder) > 0


@pytest.mark.parametrize("damage", ["format", "manifest", "values"])
def test_a_small_board_does_without_a_table_that_cannot_be_used(damage, warm_home, capsys):
    make_table("2x2")
    folder = warm_home / "tables" / "2x2-score"
    if damage == "format":
        claim(folder, format=1)
    else:
        path = folder / ("manifest.json" if damage == "manifest" else "values.bin")
        path.write_bytes(path.read_bytes()[:-8])
    before = contents(folder)
    with ensure_table(Problem.of("2x2")) as table:
        assert table.states == 110 and table.path.parent != folder.parent
    (said,) = capsys.readouterr().err.splitlines()
    assert str(folder) in said and "temporary folder" in said and "--replace makes" in said
    assert round(exact_value("greedy", "2x2").regret, 3) == 40.171
    assert round(probe("2 2 / . .").value, 3) == 67.696
    assert contents(folder) == before


def test_a_table_of_an_objective_that_is_not_known_is_not_damaged(warm_home, command):
    make_table("2x2", warm_home / "tables" / "mine")
    folder = warm_home / "tables" / "mine"
    claim(folder, objective="mine")
    before = contents(folder)
    assert dict(list_tables())[folder] == "unknown objective"
    with pytest.raises(TableError, match=r"names no objective that is known here: an objective is"):
        Table(folder)
    code, _, said = command("solve", "2x2", "--out", str(folder), "--replace")
    assert code == 2 and "names no objective that is known here" in said
    assert contents(folder) == before


def test_json_says_nothing_of_what_was_removed(table, command):
    claim(table, format=1)
    code, out, _ = command("solve", "3x2", "--out", str(table), "--replace", "--json")
    assert code == 0 and json.loads(out)["states"] == 21_752
