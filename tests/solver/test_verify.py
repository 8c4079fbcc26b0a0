"""Damage of every kind is found, and never told as a value."""

from __future__ import annotations

import shutil
import subprocess
import sys

import numpy as np
import pytest

from lab2048.solver.job import make_table
from lab2048.solver.manifest import description, read_manifest
from lab2048.solver.problem import Problem
from lab2048.solver.table_files import TableError, read_json, write_json
from lab2048.solver.tables import open_table
from lab2048.solver.verify import verify
from tests.conftest import FILES, WITH_JIT, flip
from tests.solver.damaging import change_value, check

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not WITH_JIT, reason="takes too long without the JIT"),
]


@pytest.mark.parametrize("name", FILES)
def test_a_flipped_byte_is_found(copy, name):
    with open_table(copy) as table:
        verify(table)
    size = (copy / name).stat().st_size
    for place in (0, size // 3, size - 2):
        before = (copy / name).read_bytes()
        flip(copy / name, place)
        with pytest.raises(TableError, match=r"damaged|invalid or out of order"):
            check(copy)
        (copy / name).write_bytes(before)


def test_a_damaged_block_is_noticed_when_it_is_read(copy):
    flip(copy / "keys.bin", (copy / "keys.bin").stat().st_size // 2)
    with (
        open_table(copy) as table,
        pytest.raises(TableError, match=r"block 0 of age \d+ in .*damaged"),
    ):
        for _ in table.layers():
            pass


def test_a_wrong_value_with_a_right_checksum_is_found(copy):
    """The Bellman equation itself."""
    middle = len(read_manifest(copy)["layers"]["states"]) // 2
    change_value(copy, middle, lambda value: value + 1e-3)
    with (
        open_table(copy) as table,
        pytest.raises(TableError, match=r"is worth [0-9.]+, but its best move [0-9.]+; remove"),
    ):
        verify(table, full=True)


@pytest.mark.parametrize("sealed", [False, True])
@pytest.mark.parametrize("value", [-5.0, np.nan, np.inf, 1.7e308])
def test_a_damaged_value_is_never_told(copy, value, sealed):
    """Not even if its checksum is right: then it does not fit the moves."""
    board = change_value(copy, 20, lambda _: value, seal=sealed)
    with open_table(copy) as table:
        for ask in (table.moves, table.best, lambda board: table.probe_many([board])):
            with pytest.raises(TableError, match=r"damaged: .*(checksum|negative|is worth)"):
                ask(board)
        if not (sealed and value > 1e300):  # nothing but its moves tells that it is wrong
            with pytest.raises(TableError, match=r"the values of age 44 in .* are damaged"):
                table.value(board)
        assert table.value("2 2 / . . / . .") > 0  # layers that are sound answer


def test_values_or_manifest_of_another_objective_are_noticed(tmp_path):
    """They have the same size, and stand for the same keys."""
    for objective in ("score", "worst-case"):
        make_table(Problem.of("2x2", objective=objective), tmp_path / objective)
    for name in ("values.bin", "manifest.json"):
        mixed = shutil.copytree(tmp_path / "score", tmp_path / f"mixed-{name}")
        shutil.copy(tmp_path / "worst-case" / name, mixed)
        with open_table(mixed) as table:
            with pytest.raises(TableError, match="their checksum is wrong"):
                table.value("2 2 / . .")
            with pytest.raises(TableError, match="their checksum is wrong"):
                table.probe_many([0x11])
    sealed = shutil.copytree(tmp_path / "score", tmp_path / "sealed")
    manifest = read_json(sealed / "manifest.json")
    write_json(sealed / "manifest.json", {**manifest, "objective": "worst-case"})
    with open_table(sealed) as table, pytest.raises(TableError, match=r"is worth .*, but its best"):
        table.moves("2 2 / . .")


def test_a_file_that_is_cut_off_while_it_is_open_does_not_end_the_process(copy):
    """A mapped file would: with SIGBUS."""
    code = """
import os, sys
from pathlib import Path
from lab2048.solver.table import Table, TableError
table = Table(Path(sys.argv[1]))
assert table.value("2 2 / . . / . .") > 0
os.truncate(table.path / "values.bin", 8)
for ask in (table.value, table.moves, table.layer_values):
    try:
        ask("64 16 / 2 2 / . ." if ask != table.layer_values else 30)
    except TableError as error:
        print(error)
assert table.value("2 2 / . . / . .") > 0  # read before, when all was well
"""
    run = [sys.executable, "-c", code, str(copy)]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("damaged: the file ends too early\n") == 3


def test_a_file_that_changes_while_it_is_open_is_looked_at_again(copy):
    with open_table(copy, cache_bytes=0) as table:
        assert table.value("64 16 / 2 2 / . .") > 0
        assert table.value("2 2 / . . / . .") > 0  # there is room for one block
        size = (copy / "values.bin").stat().st_size
        (copy / "values.bin").write_bytes(bytes(size))
        with pytest.raises(TableError, match=r"age 84 in .*their checksum is wrong"):
            table.value("64 16 / 2 2 / . .")


@pytest.mark.parametrize("name", ["manifest.json", "run.json"])
def test_every_byte_of_a_small_file_is_covered(tmp_path, name):
    """White space too; a file with the line ends of another system is still read."""
    make_table("2x2", tmp_path / "t")
    path = tmp_path / "t" / name
    whole = path.read_bytes()
    blanks = [n for n in range(min(300, len(whole))) if whole[n] in b" \n"]
    places = {*blanks, *range(0, len(whole), 5)}
    flipped = [bytes([*whole[:n], whole[n] ^ 1, *whole[n + 1 :]]) for n in places]
    for damaged in (*flipped, whole + b" ", whole + b"\n", whole[:-1], b" " + whole):
        path.write_bytes(damaged)
        with pytest.raises(TableError, match=f"{name} is damaged"):
            read_json(path)
    path.write_bytes(whole.replace(b"\n", b"\r\n"))
    assert read_json(path) is not None


def test_a_damaged_record_of_the_run_is_found_and_a_lost_one_is_not_missed(copy):
    flip(copy / "run.json", 30)
    assert description(copy, read_manifest(copy))["seconds"] is None
    with pytest.raises(TableError, match=r"run.json is damaged"):
        check(copy)
    (copy / "run.json").unlink()
    check(copy)
