"""Small files that somebody has changed, with a right checksum."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from lab2048.solver.job import make_table
from lab2048.solver.manifest import description, read_manifest
from lab2048.solver.problem import Problem
from lab2048.solver.table_files import TableError, read_json, write_json
from lab2048.solver.tables import list_tables, open_table
from tests.conftest import FILES, WITH_JIT, flip, run_command
from tests.solver.damaging import check

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not WITH_JIT, reason="takes too long without the JIT"),
]


# -- small files that somebody has changed, with a right checksum ---------------------------------


ODD = (None, -1, 10**30, 0.5, "", [], {}, [[[]]], {"": {}}, True)


def fields(found, path=()):
    """The path of every field, one item of each list and object among them."""
    if path:
        yield path
    if isinstance(found, dict):
        for name, value in found.items():
            yield from fields(value, (*path, name))
    elif isinstance(found, list) and found:
        yield from fields(found[0], (*path, 0))


def changed(found, path, value):
    """A copy of an object in which one field is another."""
    found = json.loads(json.dumps(found))
    inner = found
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = value
    return found


def odd_versions(found):
    """All objects that differ from one in one odd field: its path, the value, the object."""
    for path in fields(found):
        for value in ODD:
            yield path, value, changed(found, path, value)


def is_sensible(path, value):
    """Whether a value may be that of a field, even if it is not the right one."""
    if path[0] == "value":
        absent = value is None and path[1:] != ("start",)
        return len(path) == 2 and (absent or value in (0.5, 10**30))
    return path in (("p4",), ("gamma",)) and value == 0.5


def test_any_field_of_a_manifest_may_be_odd(warm_home, command, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda file: None)  # there is much to write
    folder = Path(make_table("2x2")["table"])
    sound = read_json(folder / "manifest.json")

    def probe():
        with open_table(folder) as table:
            table.moves("2 2 / . .")

    for path, value, odd in odd_versions(sound):
        write_json(folder / "manifest.json", odd)
        asked = [lambda: read_manifest(folder), lambda: make_table("2x2"), probe]
        if is_sensible(path, value):  # wrong chances do not fit the values
            asked = [probe] if path[0] != "value" else []
        for ask in asked:
            with pytest.raises(TableError) as error:
                ask()
            assert "\n" not in str(error.value) and len(str(error.value)) < 500
        ((_, listed),) = list_tables()
        assert isinstance(listed, dict) == is_sensible(path, value)
    for path, value in ((("layers", "states"), [[[]]]), (("p4",), 0.5), (("format",), "x" * 9999)):
        write_json(folder / "manifest.json", changed(sound, path, value))
        for arguments in (("table", "verify", "2x2"), ("solve", "2x2")):
            code, out, error = command(*arguments)
            assert (code, out) == (2, "")
            assert error.startswith("lab2048: ") and error.count("\n") == 1 and len(error) < 500
        code, out, error = command("probe", "2 2 / . .")  # the board is small: solved aside
        assert code == 0 and "67.6963" in out
        assert error.startswith("lab2048: ") and max(map(len, error.splitlines())) < 500
    write_json(folder / "manifest.json", sound)
    check(folder)


@pytest.mark.parametrize(
    "text", [b"[" * 100_000, b'{"checksum": NaN}', b"\xff\xfe", b"", b"9" * 10_000]
)
def test_a_manifest_that_is_none(copy, text):
    (copy / "manifest.json").write_bytes(text)
    with pytest.raises(TableError, match=r"manifest.json is damaged"):
        open_table(copy)


def test_an_odd_record_of_the_run_is_not_believed(copy, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda file: None)
    for path, _, odd in odd_versions(read_json(copy / "run.json")):
        write_json(copy / "run.json", odd)
        found = description(copy, read_manifest(copy))
        assert found["seconds"] is None or path == ("runs",) or found["seconds"]["total"] >= 0


def test_whatever_lies_among_the_tables_they_are_listed(warm_home, command, copy):
    from lab2048.studio.resources import solved_tables

    make_table("2x2")
    tables = warm_home / "tables"
    for name in ("folder", "pipe", "huge", "bytes", "deep", "loop", "older"):
        (tables / name).mkdir()
    (tables / "folder" / "manifest.json").mkdir()
    os.mkfifo(tables / "pipe" / "manifest.json")
    with (tables / "huge" / "manifest.json").open("wb") as file:
        file.truncate(1 << 33)
    (tables / "bytes" / "manifest.json").write_bytes(b"\xff{}")
    (tables / "deep" / "manifest.json").write_bytes(b"[" * 1_000_000)
    (tables / "loop" / "manifest.json").symlink_to("manifest.json")
    write_json(tables / "older" / "manifest.json", {"format": 1, "board": "2x2"})
    (tables / "gone").symlink_to(tables / "nowhere")
    (tables / "file").write_text("not a table")
    shutil.copytree(copy, os.fsdecode(bytes(tables / "odd") + b"\xff\x1b[2J"))
    listed = {folder.name: found for folder, found in list_tables()}
    assert isinstance(listed.pop("2x2-score"), dict)
    assert listed.pop("older") == "format 1"
    assert listed == dict.fromkeys(("folder", "pipe", "huge", "bytes", "deep", "loop"), "damaged")
    assert [each["name"] for each in solved_tables()] == ["2x2-score"]
    for more in ((), ("--json",)):
        code, out, error = command("table", "list", *more)
        assert (code, error) == (0, "") and "2x2-score" in out


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named(copy, name):
    (copy / name).unlink()
    with pytest.raises(TableError, match=name):
        open_table(copy)


def test_what_is_wrong_with_a_folder_is_said(copy, tmp_path):
    with (copy / "values.bin").open("ab") as file:
        file.write(b"more")
    with pytest.raises(TableError, match=r"values.bin has 174,020 bytes, not 174,016"):
        open_table(copy)
    manifest = read_json(copy / "manifest.json")
    write_json(copy / "manifest.json", {**manifest, "format": 1})
    with pytest.raises(TableError, match="is of format 1; this version of lab2048 reads format 2"):
        open_table(copy)
    with pytest.raises(TableError, match="there is no table"):
        open_table(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(TableError, match="is not a table"):
        open_table(tmp_path / "empty")
    (copy / "manifest.json").write_text("[1, 2]")
    with pytest.raises(TableError, match="damaged"):
        open_table(copy)


# -- the command line ----------------------------------------------------------------------------


def test_a_damaged_table_does_not_hide_the_others(warm_home):
    make_table(Problem.of("2x2"))
    make_table(Problem.of("2x2", objective="worst-case"))
    flip(warm_home / "tables" / "2x2-score" / "manifest.json", 30)
    listed = run_command("table", "list").stdout
    assert "damaged" in listed and "2x2-worst-case" in listed
    (warm_home / "tables" / "2x2-worst-case" / "run.json").write_text("{}")
    assert "2x2-worst-case" in run_command("table", "list").stdout
