"""Which table answers for a board: names, and tables of something else."""

from __future__ import annotations

import shutil
from contextlib import ExitStack

import pytest

from lab2048 import Game, Record, Rules, evaluate, exact_value, probe, review
from lab2048.cli.completion import tables
from lab2048.learn.train import table_against
from lab2048.solver.estimate import estimate
from lab2048.solver.job import make_table
from lab2048.solver.problem import Problem
from lab2048.solver.table_files import OtherTableError, TableError
from lab2048.solver.tables import (
    open_table,
    remove_table,
    solve,
    table_answering,
    table_folder,
    table_for,
)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Tables of 2x2 by their names, to be copied to where they are looked for."""
    folder = tmp_path_factory.mktemp("small")
    for facts in ({}, {"p4": 0.3}, {"objective": "reach:16"}):
        problem = Problem.of("2x2", **facts)
        make_table(problem, folder / problem.name)
    make_table(Problem.of("2x2"), folder / "2x2-score-float32", values="float32")
    return folder


@pytest.fixture
def other(small):
    """A table of 2x2 with another chance of a 4."""
    with open_table(small / "2x2-score-p4-0.3") as table:
        yield table


REFUSED = "is of 2x2-score-p4-0.3, what is asked for is 2x2-score"
CALLS = {
    "exact_value": lambda table: exact_value("greedy", "2x2", table=table),
    "evaluate": lambda table: evaluate("greedy", "2x2", games=2, table=table),
    "probe": lambda table: probe("2 2 / . .", table, p4=0.1),
    "against": lambda table: table_against(table, Rules(2, 2), ExitStack()),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_table_of_something_else_is_refused_by_all(call, other):
    for table in (other, str(other.path)):
        with pytest.raises(OtherTableError, match=REFUSED):
            CALLS[call](table)


def test_a_game_is_not_judged_by_a_table_of_other_rules(other):
    with pytest.raises(OtherTableError, match=REFUSED):
        review(Record.of(Game(Rules(2, 2), 1), "me"), other)


def test_only_what_is_asked_for_has_to_agree(other):
    assert probe("2 2 / . .", other).rules.p4 == 0.3
    with table_answering(Rules(2, 2), other, agree=("board",)) as found:
        assert found is other
    assert other.value("2 2 / . .") > 0  # it was not closed


def test_no_table_is_needed():
    for none in (None, False):
        with table_answering(Rules(2, 2), none) as found:
            assert found is None
    with table_answering(Rules(4, 4)) as found:
        assert found is None
    with pytest.raises(TableError, match="there is no table nowhere"):
        table_for(Rules(4, 4), "nowhere")


@pytest.fixture
def here(tmp_path, own_home, monkeypatch):
    """The folder that names are looked up in last."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def test_a_name_stands_for_the_same_folder_everywhere(small, own_home, here):
    """Each place that is filled comes before those that were."""
    (own_home / "tables").mkdir(parents=True)
    (own_home / "tables" / "2x2").mkdir()  # without a table
    places = [
        here / "2x2",
        own_home / "tables" / "2x2-score-float32",
        own_home / "tables" / "2x2-score",
        own_home / "tables" / "2x2",
    ]
    for place in places:
        source = "2x2-score-float32" if place.name.endswith("32") else "2x2-score"
        shutil.copytree(small / source, place, dirs_exist_ok=True)
        assert table_folder("2x2").resolve() == place
        with open_table("2x2") as table, table_for(Problem.of("2x2"), "2x2") as same:
            assert table.path.resolve() == same.path.resolve() == place
    assert table_folder("./2x2").resolve() == here / "2x2"
    assert tables("2x2") == ["2x2", "2x2-score", "2x2-score-float32"]


def test_the_size_of_a_board_is_the_table_of_what_is_asked_for(small, own_home):
    for name in ("2x2-score", "2x2-score-p4-0.3", "2x2-reach-16"):
        shutil.copytree(small / name, own_home / "tables" / name)
    with table_for(Problem.of("2x2", p4=0.3), "2x2") as table:
        assert table.path.name == "2x2-score-p4-0.3"
    with probe_table("2x2", objective="reach:16") as table:
        assert table.path.name == "2x2-reach-16"
    with pytest.raises(OtherTableError, match="is of 2x2-reach-16, what is asked for is 2x2-score"):
        table_for(Problem.of("2x2"), "2x2-reach-16")
    with pytest.raises(TableError, match="there is no table 3x3-score; make it with"):
        table_for(Problem.of("3x3"), "3x3")


def probe_table(name, **asked):
    from lab2048.measure.positions import position_table

    return position_table(Rules(2, 2), name, asked)


def test_a_folder_that_is_named_says_what_it_lacks(own_home, here):
    (here / "mine").mkdir()
    with pytest.raises(TableError, match="mine is not a table"):
        open_table("mine")
    with pytest.raises(TableError, match="there is no table yours"):
        open_table("yours")


@pytest.fixture
def full_disk(monkeypatch):
    """A disk with 1,000 bytes left."""
    monkeypatch.setattr("lab2048.solver.table_size.free_space", lambda folder: 1000)


def test_a_table_too_large_for_the_disk_is_not_begun(tmp_path, own_home, full_disk):
    for call in (
        lambda: solve("3x3"),
        lambda: solve("3x2", out=tmp_path / "t"),
        lambda: make_table("3x2", tmp_path / "t"),
    ):
        with pytest.raises(ValueError, match=r"of disk and .* has 1 kB free; .*--force"):
            call()
    assert not (tmp_path / "t").exists() and not own_home.exists()


def test_what_is_finished_or_begun_or_small_or_forced_needs_no_room(
    small, tmp_path, warm_home, full_disk
):
    assert make_table("2x2", small / "2x2-score")["states"] == 110
    solve("2x2").close()
    (tmp_path / "t").mkdir()
    make_table("2x2", tmp_path / "t", force=True, keep="summary")
    with pytest.raises(ValueError, match="to begin all the same"):
        make_table("2x2", tmp_path / "t")

    def stop(step):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_table("2x2", tmp_path / "t", force=True, progress=stop)
    assert make_table("2x2", tmp_path / "t")["keep"] == "table"


def test_a_folder_in_the_home_folder_may_begin_with_a_tilde(own_home, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    with solve("2x2", out="~/mine") as table:
        assert table.path == tmp_path / "mine"


def test_a_problem_is_not_changed_by_other_arguments():
    for more in ({"p4": 0.3}, {"gamma": 0.9}, {"objective": "worst-case"}):
        for call in (solve, open_table, estimate):
            with pytest.raises(ValueError, match="has its own objective, p4 and gamma"):
                call(Problem.of("2x2"), **more)


def test_what_is_freed_includes_folders(small, tmp_path):
    folder = shutil.copytree(small / "2x2-score", tmp_path / "copy")
    before = sum(path.stat().st_size for path in folder.iterdir())
    (folder / "shards").mkdir()
    (folder / "shards" / "keys").write_bytes(bytes(1000))
    assert remove_table(folder) == before + 1000 and not folder.exists()


@pytest.mark.parametrize(
    "options", [{"cores": 0}, {"rate": 0.0}, {"rate": -1.0}, {"cores": 4, "machines": 0},
                {"keep": "tabel"}]
)  # fmt: skip
def test_an_estimate_of_nothing_is_refused(options):
    with pytest.raises(ValueError, match=r"is a number above 0|keep is table or summary"):
        estimate("3x3", **{"rate": 1e6, **options})
