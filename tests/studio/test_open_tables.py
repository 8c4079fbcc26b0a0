"""Tables of the studio: read off the event loop, opened once, closed when they are let go of."""

from __future__ import annotations

import asyncio
import gc
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import httpx
import pytest

from lab2048.game import Board, Rules
from lab2048.solver.key_file import KeyFile
from lab2048.solver.problem import Problem
from lab2048.solver.table import NotDecodedError, Table
from lab2048.solver.table_files import TableError
from lab2048.studio import limits, open_tables
from lab2048.studio import resources as library
from tests.serving import serving

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

BOARD = Board.parse("16 4 / 2 8 / . 2")
ASKED = {"board": str(BOARD)}
TABLES = Path(__file__).parents[1] / "files" / "tables"
PATIENCE = 10.0
"""Seconds after which a server that does not answer is taken to be stuck."""


@contextmanager
def held(monkeypatch, owner, name):
    """Make a method wait. Yields its calls, an event that one began, and one to let it go on."""
    calls, begun, free = [], threading.Event(), threading.Event()
    method = getattr(owner, name)

    def wait(*args, **kwargs):
        calls.append(args)
        begun.set()
        assert free.wait(60)
        return method(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, wait)
        try:
            yield calls, begun, free
        finally:
            free.set()


@pytest.mark.parametrize(
    ("owner", "name"), [(Table, "__init__"), (KeyFile, "block")], ids=["opened", "decoded"]
)
def test_others_are_answered_while_a_table_is_read(solved_home, monkeypatch, made, owner, name):
    with (
        serving() as address,
        httpx.Client(base_url=address, timeout=PATIENCE) as client,
        ThreadPoolExecutor(3) as pool,
        held(monkeypatch, owner, name) as (calls, begun, free),
    ):
        ask = partial(pool.submit, httpx.get, f"{address}/api/analyse", params=ASKED, timeout=60)
        asked = [ask()]
        assert begun.wait(PATIENCE)
        assert client.get("/api").json()["name"] == "lab2048"
        asked += [ask(), ask()]
        assert client.get("/api/analyse", params={"board": 16 * "1"}).status_code == 200
        assert not any(each.done() for each in asked)
        free.set()
        answers = [each.result().json() for each in asked]
        opened = len(calls)
    with Table(made) as table:
        assert {answer["value"] for answer in answers} == {table.value(BOARD)}
    if owner is Table:
        assert opened == 1  # by three requests at the same time


def test_what_is_decoded_is_looked_up_without_a_thread(solved_home, monkeypatch):
    async def all_of_it():
        books = library.Library()
        problem = Problem.of("3x2")
        threads = [
            await books.tables.ask(
                problem, lambda table: (table.moves(BOARD), threading.get_ident())
            )
            for _ in range(2)
        ]
        await books.close()
        return threads

    (moves, first), (again, second) = asyncio.run(all_of_it())
    assert moves == again
    assert first != threading.get_ident() == second


def test_the_files_of_an_open_table_are_looked_at_by_threads_and_seldom(solved_home, monkeypatch):
    looked = []
    is_current = open_tables.OpenTable.is_current

    def noted(self):
        looked.append(asyncio._get_running_loop())
        return is_current(self)

    async def all_of_it():
        books = open_tables.OpenTables()
        for _ in range(20):
            assert await books.get(Problem.of("3x2")) is not None
        assert looked == []
        monkeypatch.setattr(open_tables, "RECHECK", 0.0)
        await asyncio.gather(*(books.get(Problem.of("3x2")) for _ in range(20)))
        books.close()

    monkeypatch.setattr(open_tables.OpenTable, "is_current", noted)
    asyncio.run(all_of_it())
    assert looked == [None]


def test_nobody_waits_for_a_check_of_files_unless_the_last_is_long_ago(solved_home, monkeypatch):
    problem, begun, free = Problem.of("3x2"), threading.Event(), threading.Event()
    current_table = open_tables.current_table

    def check(*args):
        begun.set()
        assert free.wait(60)
        return current_table(*args)

    async def ask():
        tables = open_tables.OpenTables()
        table = await tables.get(problem)
        monkeypatch.setattr(open_tables, "current_table", check)
        tables._kept[problem].looked -= 1.5 * open_tables.RECHECK
        assert await asyncio.wait_for(tables.get(problem), PATIENCE) is table
        assert await asyncio.to_thread(begun.wait, PATIENCE)
        tables._kept[problem].looked -= open_tables.RECHECK
        later = asyncio.create_task(tables.get(problem))
        await asyncio.sleep(0.1)
        assert not later.done()
        free.set()
        assert await later is table
        tables.close()

    asyncio.run(ask())


def test_the_player_by_a_table_takes_little_memory_and_follows_its_files(
    made, tmp_path, monkeypatch
):
    monkeypatch.setenv("LAB2048_HOME", str(tmp_path))
    folder = tmp_path / "tables" / "3x2-score"
    shutil.copytree(made, folder)
    books = library.Library()
    ask = partial(books.player, "optimal", Rules(3, 2))
    first = ask()
    assert ask() is first and first.table._layers._room == open_tables.TABLE_BYTES
    shutil.rmtree(folder)
    shutil.copytree(made, folder, copy_function=shutil.copy)  # written now
    again = ask()
    assert again is not first and ask() is again
    assert again.choose(BOARD, 0) == first.choose(BOARD, 0)


def test_a_view_of_memory_reads_no_file(made):
    with Table(made) as table:
        view = table.in_memory()
        with pytest.raises(NotDecodedError):
            view.value(BOARD)
        assert table.value(BOARD) == view.value(BOARD)  # which is in memory by then


def test_only_some_tables_stay_open(made, tmp_path, monkeypatch):
    monkeypatch.setattr(open_tables, "TABLES_KEPT", 1)
    monkeypatch.setenv("LAB2048_HOME", str(tmp_path))
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "3x2-score").symlink_to(made)
    (tmp_path / "tables" / "2x2-score").symlink_to(TABLES / "2x2-score")

    async def all_of_it():
        books = open_tables.OpenTables()
        files = []
        for name in ("3x2", "2x2", "3x2"):
            assert await books.ask(Problem.of(name), lambda table: table.states) > 0
            assert [each.rules.name for each in books._kept] == [name]
            files.append(books._kept[Problem.of(name)].table.keys)
            end = time.monotonic() + PATIENCE
            while any(is_open(file) for file in files[:-1]):  # a thread may still let go of it
                assert time.monotonic() < end
                gc.collect()
                await asyncio.sleep(0.01)
            assert is_open(files[-1])
        books.close()

    asyncio.run(all_of_it())


def is_open(file):
    """Whether the file of a table's keys is open."""
    return file._file >= 0


def test_a_table_that_is_replaced_is_opened_again(solved_home, made, tmp_path, monkeypatch):
    monkeypatch.setenv("LAB2048_HOME", str(tmp_path))
    monkeypatch.setattr(open_tables, "RECHECK", 0.0)
    folder = tmp_path / "tables" / "3x2-score"
    problem = Problem.of("3x2")

    async def all_of_it():
        books = open_tables.OpenTables()
        found = [await books.get(problem)]
        shutil.copytree(made, folder)
        found += [await books.get(problem) for _ in range(2)]
        manifest = folder / "manifest.json"
        text = manifest.read_text()
        manifest.write_text("no table")
        with pytest.raises(TableError):
            await books.get(problem)
        manifest.write_text(text)
        found.append(await books.get(problem))
        shutil.rmtree(folder)
        found.append(await books.get(problem))
        books.close()
        return found

    missing, first, same, again, removed = asyncio.run(all_of_it())
    assert missing is None and removed is None
    assert first is same and again is not first and again.value(BOARD) == first.value(BOARD)


def test_who_leaves_does_not_end_the_opening_for_others(solved_home, monkeypatch):
    async def all_of_it(begun, free):
        books = open_tables.OpenTables()
        ask = [asyncio.create_task(books.get(Problem.of("3x2"))) for _ in range(2)]
        assert await asyncio.to_thread(begun.wait, PATIENCE)
        ask[0].cancel()
        await asyncio.sleep(0)
        free.set()
        found = await ask[1]
        books.close()
        return ask[0].cancelled(), found.rules

    with held(monkeypatch, Table, "__init__") as (calls, begun, free):
        assert asyncio.run(all_of_it(begun, free)) == (True, Rules(3, 2))
        assert len(calls) == 1


def test_a_player_is_made_once_however_many_ask_for_it(solved_home, monkeypatch):
    books = library.Library()
    with (
        held(monkeypatch, limits, "make_player") as (calls, begun, free),
        ThreadPoolExecutor(4) as p,
    ):
        asked = [p.submit(books.player, "greedy", Rules(3, 2)) for _ in range(4)]
        assert begun.wait(PATIENCE)
        free.set()
        assert len({each.result() for each in asked}) == 1
    assert len(calls) == 1 and books._makers == {}
