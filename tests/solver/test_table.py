"""Tables: probing one board and many, damage, and the command line."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest

from lab2048.game import Board, Direction
from lab2048.solver.job import make_table
from lab2048.solver.manifest import description, read_manifest
from lab2048.solver.problem import Problem
from lab2048.solver.table import NotInTableError
from lab2048.solver.table_files import TableError, read_json, write_json
from lab2048.solver.tables import list_tables, open_table
from lab2048.solver.verify import verify
from tests.conftest import FILES, WITH_JIT, flip, run_command

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not WITH_JIT, reason="takes too long without the JIT"),
]


def check(folder):
    with open_table(folder) as table:
        verify(table)


# -- one board ---------------------------------------------------------------------------------


def test_moves_have_reward_after_value_q_and_regret(made):
    with open_table(made) as table:
        board = Board.parse("2 2 / 4 . / . .")
        moves = table.moves(board)
        assert list(moves) == list(board.legal_moves)
        for direction, move in moves.items():
            _, reward, after = board.move(direction)
            spawns = table.rules.spawns(after)
            mean = sum(spawn.probability * table.value(spawn.board) for spawn in spawns)
            assert move.reward == reward
            assert move.after_value == pytest.approx(mean, rel=1e-13)
            assert move.q == reward + move.after_value
        best = max(move.q for move in moves.values())
        assert best == pytest.approx(table.value(board), rel=1e-12)
        assert [move.regret for move in moves.values()] == [best - m.q for m in moves.values()]
        close = tuple(d for d, move in moves.items() if best - move.q < 1e-9)
        assert table.best(board) == close == tuple(d for d, m in moves.items() if m.optimal)
        assert 0 < len(close) < len(moves)


def test_terminal_states_have_no_move(made):
    with open_table(made) as table:
        board = Board.parse("2 4 / 4 2 / 2 4")
        assert (table.value(board), table.moves(board), table.best(board)) == (0.0, {}, ())


def test_every_image_has_the_same_answer(made):
    from lab2048.game import direction_on_image

    with open_table(made) as table:
        board = Board.parse("2 4 / 8 2 / . 2")
        moves = table.moves(board)
        for symmetry in range(4):
            image = board.image(symmetry)
            found = table.moves(image)
            assert table.value(image) == table.value(board)
            assert len(found) == len(moves)
            for direction, move in moves.items():
                other = found[Direction(direction_on_image(direction, symmetry))]
                assert other == pytest.approx(move, rel=1e-13)


def test_a_board_in_any_form(made):
    with open_table(made) as table:
        board = Board.parse("2 2 / . . / . .")
        value = table.value(board)
        assert table.value("2 2 / . . / . .") == table.value("110000") == value
        assert table.value(board.packed) == table.value(np.uint64(board.packed)) == value


@pytest.mark.parametrize(
    ("board", "message"),
    [
        ("2 . / . . / . .", "is not reachable on 3x2 with p4 0.1"),
        ("256 2 / . . / . .", "is not reachable"),
        ("4096 2 / . . / . .", "is not reachable"),
        (". . / . . / . .", "is not reachable"),
        ("64 64 / 64 64 / 64 64", "is not reachable"),
        ("2 2 / . .", "the table is of 3x2, the board is 2x2"),
        ("2 2 . / . . .", "the table is of 3x2, the board is 2x3"),
    ],
)
def test_boards_that_are_not_in_the_table(made, board, message):
    with open_table(made) as table:
        with pytest.raises(NotInTableError, match=message) as error:
            table.value(board)
        assert isinstance(error.value, KeyError) and not str(error.value).startswith("'")
        assert table.get(board) is None and table.get(board, 7) == 7
        with pytest.raises(KeyError):
            table.moves(board)


def test_a_made_tile_is_certain(tmp_path):
    make_table(Problem.of("2x2", objective="reach:16"), tmp_path / "t")
    with open_table(tmp_path / "t") as table:
        assert table.value("16 2 / . .") == 1.0
        moves = table.moves("8 8 / 2 .")
        assert moves[Direction.LEFT].q == 1.0 and moves[Direction.LEFT].optimal
        assert moves[Direction.DOWN].q < 1 and not moves[Direction.DOWN].optimal
        boards = [Board.parse(text).packed for text in ("16 2 / . .", "8 8 / 2 .", "8 . / 4 2")]
        found = table.probe_many(boards)
        assert found.value.tolist() == pytest.approx([table.value(b) for b in boards], rel=1e-13)
        for row, board in zip(found.q, boards, strict=True):
            for direction, move in table.moves(board).items():
                assert row[direction] == pytest.approx(move.q, rel=1e-13)


# -- many boards -------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"objective": "worst-case"}, {"gamma": 0.9}, {"p4": 1.0}])
def test_many_boards_at_once_have_the_same_answers(tmp_path, options):
    make_table(Problem.of("2x2", **options), tmp_path / "t")
    rng = random.Random(4)
    with open_table(tmp_path / "t", cache_bytes=4000) as table:
        keys = [int(key) for _, keys, _ in table.layers() for key in keys]
        boards = [Board.from_packed(key, 2, 2).image(rng.randrange(8)).packed for key in keys]
        boards += [0, 1, 0x1111, 0xFFFF, 0xABCD]  # the first is empty, the others may not be there
        rng.shuffle(boards)
        found = table.probe_many(boards)
        values_only = table.probe_many(boards, moves=False, threads=1)
        assert values_only.q is None
        assert np.array_equal(values_only.value, found.value, equal_nan=True)
        for board, value, q in zip(boards, found.value, found.q, strict=True):
            wanted = table.get(board)
            if wanted is None:
                assert np.isnan(value) and np.isnan(q).all()
                continue
            assert value == wanted
            moves = table.moves(board)
            for direction in range(4):
                if direction in moves:
                    assert q[direction] == pytest.approx(moves[direction].q, rel=1e-13)
                else:
                    assert np.isnan(q[direction])


def test_no_boards_at_all(made):
    with open_table(made) as table:
        found = table.probe_many([])
        assert found.value.shape == (0,) and found.q.shape == (0, 4)


# -- how values are stored -----------------------------------------------------------------------


def test_float32_rounds_what_is_stored_and_nothing_else(made, tmp_path):
    make_table(Problem.of("3x2"), tmp_path / "t", values="float32")
    with open_table(made) as exact, open_table(tmp_path / "t") as rounded:
        for (_, keys, values), (_, same, stored) in zip(
            exact.layers(), rounded.layers(), strict=True
        ):
            assert (keys == same).all()
            assert (stored == values.astype(np.float32)).all()
        assert rounded.start_value == exact.start_value
        board = "2 2 / 4 . / . ."
        assert rounded.best(board) == exact.best(board)
        verify(rounded, full=True)
    assert (tmp_path / "t" / "values.bin").stat().st_size * 2 == (
        made / "values.bin"
    ).stat().st_size


def test_chances_too_small_to_be_stored_still_fit_their_moves(tmp_path):
    """float32 stores 1e-300 as 0; the moves of such a state have that chance."""
    problem = Problem.of("3x2", objective="reach:128", p4=1e-300)
    make_table(problem, tmp_path / "t", values="float32")
    with open_table(tmp_path / "t") as table:
        assert verify(table, full=True)["largest_residual"] > 0


def test_a_summary_keeps_nothing_large(made, tmp_path):
    found = make_table(Problem.of("3x2"), tmp_path / "t", keep="summary")
    whole = make_table(Problem.of("3x2"), made)
    assert {path.name for path in (tmp_path / "t").iterdir()} == {"manifest.json", "run.json"}
    for name in ("states", "afterstates", "terminals", "max_age", "value"):
        assert found[name] == whole[name]
    with pytest.raises(TableError, match="only a summary of t was kept"):
        open_table(tmp_path / "t")
    make_table(Problem.of("3x2"), tmp_path / "t")
    with open_table(tmp_path / "t") as table:
        assert table.states == 21_752


# -- damage ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FILES)
def test_a_flipped_byte_is_found(copy, name):
    with open_table(copy) as table:
        verify(table)
    size = (copy / name).stat().st_size
    for place in (0, size // 3, size - 2):
        before = (copy / name).read_bytes()
        flip(copy / name, place)
        with pytest.raises(TableError, match=r"damaged|not what it should be"):
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


def change_value(folder, layer, change, *, seal=True):
    """Change the first value of a layer, and if wanted its checksum; return its board."""
    manifest = read_json(folder / "manifest.json")
    counts, values = manifest["layers"]["states"], np.fromfile(folder / "values.bin", "<f8")
    begin = sum(counts[:layer])
    values[begin] = change(values[begin])
    values.tofile(folder / "values.bin")
    if seal:
        part = values[begin : begin + counts[layer]]
        manifest["layers"]["value_crcs"][layer] = zlib.crc32(part.tobytes())
        write_json(folder / "manifest.json", manifest)
    with open_table(folder) as table:
        return int(table.keys.layer(layer)[0])


@pytest.mark.parametrize("sealed", [False, True])
@pytest.mark.parametrize("value", [-5.0, np.nan, np.inf, 1.7e308])
def test_a_damaged_value_is_never_told(copy, value, sealed):
    """Not even if its checksum is right: then it does not fit the moves."""
    board = change_value(copy, 20, lambda _: value, seal=sealed)
    with open_table(copy) as table:
        for ask in (table.moves, table.best, lambda board: table.probe_many([board])):
            with pytest.raises(TableError, match=r"damaged: .*(checksum|numbers from 0|is worth)"):
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


def test_probe_of_a_damaged_table_is_one_line(command, copy):
    board = Board.from_packed(change_value(copy, 20, lambda _: np.nan, seal=False), 3, 2)
    for more in ((), ("--json",)):
        code, out, error = command("probe", str(board), "--table", str(copy), *more)
        assert (code, out) == (2, "")
        assert error.startswith("lab2048: the values of age 44 in ") and error.count("\n") == 1


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
        for arguments in (("table", "verify", "2x2"), ("probe", "2 2 / . ."), ("solve", "2x2")):
            code, out, error = command(*arguments)
            assert (code, out) == (2, "")
            assert error.startswith("lab2048: ") and error.count("\n") == 1 and len(error) < 500
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


def test_a_table_of_another_problem_is_not_taken_for_this_one(own_home, made):
    shutil.copytree(made, own_home / "tables" / "2x2-score")
    with pytest.raises(TableError, match="there is no table 2x2-score"):
        open_table("2x2")


def test_a_table_by_its_name(own_home):
    made = make_table("2x2")
    with open_table("2x2-score") as table:
        assert repr(table) == f"Table({made['table']!r}, 110 states)"
        assert "2 2 / . ." in table and "2 . / . ." not in table


def test_closing_twice_and_using_a_closed_table(made):
    table = open_table(made)
    table.value("2 2 / . . / . .")
    table.close()
    with open(__file__) as mine:
        table.close()
        mine.read()


def test_packed_boards_that_are_none(made):
    with open_table(made) as table:
        found = table.probe_many([-1, 0x2200000313231, 0x110000])
        assert np.isnan(found.value[:2]).all() and np.isnan(found.q[:2]).all()
        assert table.probe_many([[0x11, 0x11]]).value.shape == (2,)
        for garbage in ([1.5], ["17"], [2**64], [True], [None]):
            with pytest.raises(ValueError, match="packed boards are whole numbers"):
                table.probe_many(garbage)


def test_a_damaged_table_does_not_hide_the_others(warm_home):
    make_table(Problem.of("2x2"))
    make_table(Problem.of("2x2", objective="worst-case"))
    flip(warm_home / "tables" / "2x2-score" / "manifest.json", 30)
    listed = run_command("table", "list").stdout
    assert "damaged" in listed and "2x2-worst-case" in listed
    (warm_home / "tables" / "2x2-worst-case" / "run.json").write_text("{}")
    assert "2x2-worst-case" in run_command("table", "list").stdout
