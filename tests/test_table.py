"""Tables: probing, damage, and making them in spite of everything."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from conftest import WITH_JIT

from lab2048.game import Board, Direction
from lab2048.solve import crew as crew_module
from lab2048.solve import making
from lab2048.solve.problem import Problem
from lab2048.solve.solver import make_table
from lab2048.solve.store import TableError
from lab2048.solve.table import NotInTableError, Table, open_table, remove_table
from lab2048.solve.verify import verify

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not WITH_JIT, reason="takes too long without the JIT"),
]

FILES = ("keys.bin", "blocks.bin", "values.bin", "manifest.json")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The folder of a table of 3x2."""
    folder = tmp_path_factory.mktemp("tables") / "3x2"
    make_table(Problem.of("3x2"), folder)
    return folder


@pytest.fixture
def copy(made, tmp_path):
    """A copy of it, to be damaged."""
    return shutil.copytree(made, tmp_path / "copy")


def check(folder):
    with open_table(folder) as table:
        verify(table)


def flip(path, place):
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)


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
    import zlib

    from lab2048.solve.store import read_json, write_json

    manifest = read_json(copy / "manifest.json")
    values = np.memmap(copy / "values.bin", "<f8", "r+")
    layer = len(manifest["layers"]["states"]) // 2
    begin, count = sum(manifest["layers"]["states"][:layer]), manifest["layers"]["states"][layer]
    values[begin] += 1e-3
    values.flush()
    manifest["layers"]["value_crcs"][layer] = zlib.crc32(values[begin : begin + count].tobytes())
    write_json(copy / "manifest.json", manifest)
    with (
        open_table(copy) as table,
        pytest.raises(TableError, match=r"is worth .* in the table, but"),
    ):
        verify(table, full=True)


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named(copy, name):
    (copy / name).unlink()
    with pytest.raises(TableError, match=name):
        open_table(copy)


def test_what_is_wrong_with_a_folder_is_said(copy, tmp_path):
    from lab2048.solve.store import read_json, write_json

    with (copy / "values.bin").open("ab") as file:
        file.write(b"more")
    with pytest.raises(TableError, match=r"values.bin has 174,020 bytes, not 174,016"):
        open_table(copy)
    manifest = read_json(copy / "manifest.json")
    write_json(copy / "manifest.json", {**manifest, "format": 2})
    with pytest.raises(TableError, match="is of format 2; this version of lab2048 reads format 1"):
        open_table(copy)
    with pytest.raises(TableError, match="there is no table"):
        open_table(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(TableError, match="is not a table"):
        open_table(tmp_path / "empty")
    (copy / "manifest.json").write_text("[1, 2]")
    with pytest.raises(TableError, match="damaged"):
        open_table(copy)


# -- making a table, in spite of everything ----------------------------------------------------

STEPS = """
import os, random, signal, sys
from lab2048.solve import crew as crew_module
from lab2048.solve import making
from lab2048.solve.problem import Problem
from lab2048.solve.solver import make_table
making.COMMIT_SECONDS = float(sys.argv[4])
steps, fatal = 0, int(sys.argv[3])
def progress(step):
    global steps
    steps += 1
    if steps == fatal:
        os.kill(os.getpid(), signal.SIGKILL)
make_table(Problem.of("3x2"), sys.argv[1], values=sys.argv[2], threads=2, progress=progress)
print("done")
"""


def same_bytes(one, other):
    names = {path.name for path in one.iterdir()} - {"run.json"}
    assert names == {path.name for path in other.iterdir()} - {"run.json"} == set(FILES)
    return all((one / name).read_bytes() == (other / name).read_bytes() for name in names)


@pytest.mark.parametrize("kind", ["float64", "float32"])
def test_killed_at_any_layer_it_goes_on_and_ends_with_the_same_bytes(tmp_path, kind):
    whole = tmp_path / "whole"
    make_table(Problem.of("3x2"), whole, values=kind, threads=1)
    rng = random.Random(kind)
    for attempt in range(3):
        folder, kills = tmp_path / f"{attempt}", 0
        while True:
            run = [sys.executable, "-c", STEPS, str(folder), kind, str(rng.randint(1, 140)), "0"]
            done = subprocess.run(run, capture_output=True, text=True, check=False)
            if done.returncode == 0:
                break
            assert done.returncode == -signal.SIGKILL, done.stderr
            assert not (folder / "manifest.json").exists()
            with pytest.raises(TableError):
                open_table(folder)
            kills += 1
        assert kills > 0
        assert same_bytes(whole, folder)
        assert json.loads((folder / "run.json").read_text())["runs"] > 1


def test_a_lost_scratch_file_is_made_up_for(tmp_path, made):
    folder = tmp_path / "t"
    run = [sys.executable, "-c", STEPS, str(folder), "float64", "200", "0"]
    subprocess.run(run, capture_output=True, check=False)
    assert (folder / "progress.json").exists()
    (folder / "afterstates.tmp").write_bytes(b"rubbish")
    make_table(Problem.of("3x2"), folder)
    assert same_bytes(made, folder)


def test_a_damaged_record_of_the_work_is_said(tmp_path):
    folder = tmp_path / "t"
    run = [sys.executable, "-c", STEPS, str(folder), "float64", "200", "0"]
    subprocess.run(run, capture_output=True, check=False)
    flip(folder / "progress.json", 200)
    with pytest.raises(TableError, match=r"progress.json is damaged"):
        make_table(Problem.of("3x2"), folder)


def test_stopped_in_the_middle_nothing_is_lost(tmp_path, made, monkeypatch):
    """Ctrl-C commits what was done."""
    monkeypatch.setattr(making, "COMMIT_SECONDS", 1000.0)
    for stage in ("enumerate", "values"):

        def progress(step, stage=stage):
            if step.stage == stage and step.age == 100:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            make_table(Problem.of("3x2"), tmp_path / "t", progress=progress)
        record = json.loads((tmp_path / "t" / "progress.json").read_text())
        assert len(record["states"]) > 40 and (stage == "enumerate" or record["valued"] > 70)
    make_table(Problem.of("3x2"), tmp_path / "t")
    assert same_bytes(made, tmp_path / "t")


def test_a_full_disk_is_said_and_survived(tmp_path, made):
    """No file may grow past some size, as on a disk without room."""
    folder = tmp_path / "t"
    for blocks in (8, 40, 100):
        limited = f'ulimit -f {blocks}; exec "$0" "$@"'
        run = [
            "bash",
            "-c",
            limited,
            sys.executable,
            "-m",
            "lab2048",
            "solve",
            "3x2",
            "--out",
            str(folder),
        ]
        done = subprocess.run(run, capture_output=True, text=True, check=False)
        assert done.returncode == 1
        (line,) = [text for text in done.stderr.splitlines() if text.startswith("lab2048: /")]
        assert "File too large; make room and run the command again: it goes on" in line
    make_table(Problem.of("3x2"), folder)
    assert same_bytes(made, folder)


def test_two_at_once_do_not_get_in_each_others_way(tmp_path, made):
    folder = tmp_path / "t"
    slow = STEPS.replace(
        "steps += 1", "steps += 1; print('step', flush=True); sys.stdin.readline()"
    )
    run = [sys.executable, "-c", slow, str(folder), "float64", "0", "3"]
    first = subprocess.Popen(run, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert first.stdout.readline() == "step\n"
    with pytest.raises(TableError, match=f"being made by another process, number {first.pid}"):
        make_table(Problem.of("3x2"), folder)
    first.communicate("\n" * 1000)
    assert first.returncode == 0
    assert same_bytes(made, folder)


def test_a_folder_of_something_else_is_left_alone(tmp_path, made):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("dear")
    with pytest.raises(TableError, match=r"holds other files, such as thesis.tex"):
        make_table(Problem.of("2x2"), tmp_path / "mine")
    with pytest.raises(TableError, match="its board is 3x2, not 2x2"):
        make_table(Problem.of("2x2"), made)
    with pytest.raises(TableError, match="its values is float64, not float32"):
        make_table(Problem.of("3x2"), made, values="float32")
    (tmp_path / "file").write_text("")
    with pytest.raises(TableError, match="is a file; a table is a folder"):
        make_table(Problem.of("2x2"), tmp_path / "file")


def test_a_finished_table_is_not_made_again(made):
    before = {path: path.stat().st_mtime_ns for path in made.iterdir()}
    found = make_table(Problem.of("3x2"), made)
    assert found["states"] == 21_752 and found["table"] == str(made)
    assert {path: path.stat().st_mtime_ns for path in made.iterdir()} == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threads": 0}, "threads are a whole number"),
        ({"threads": 1.5}, "threads are a whole number"),
        ({"values": "float16"}, "values are stored as float64 or float32"),
        ({"keep": "all"}, "keep is table or summary"),
    ],
)
def test_wrong_options_are_refused(tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        make_table(Problem.of("2x2"), tmp_path / "t", **options)
    assert not (tmp_path / "t").exists()


def test_opening_takes_no_time(made):
    times = []
    for _ in range(20):
        began = time.perf_counter()
        Table(made).close()
        times.append(time.perf_counter() - began)
    assert min(times) < 0.05


# -- the command line ----------------------------------------------------------------------------


def command(*arguments, code=0):
    run = [sys.executable, "-m", "lab2048", *arguments]
    done = subprocess.run(run, capture_output=True, text=True, check=False, env=dict(os.environ))
    assert done.returncode == code, done.stderr
    return done


def test_solve_and_tables_on_the_command_line(warm_home):
    found = json.loads(command("solve", "2x2", "--json").stdout)
    assert list(found)[:9] == [
        *("board", "p4", "objective", "gamma", "states", "afterstates", "terminals", "max_age"),
        "value",
    ]
    assert found["value"].keys() == {"start", "2+2", "2+4", "4+4"}
    assert found["seconds"].keys() == {"enumerate", "values", "total"}
    folder = warm_home / "tables" / "2x2-score"
    assert found["table"] == str(folder)
    assert found["table_bytes"] == sum((folder / name).stat().st_size for name in FILES[:3])
    text = command("solve", "2x2", "--objective", "reach:16").stdout
    assert "41 (6 of them terminal)" in text
    listed = command("table", "list").stdout
    assert "2x2-score" in listed and "67.70" in listed and "reach:16" in listed
    assert [row["states"] for row in json.loads(command("table", "list", "--json").stdout)] == [
        41,
        110,
    ]
    assert "110" in command("table", "info", "2x2").stdout
    assert json.loads(command("table", "info", "2x2-score", "--json").stdout) == found
    assert "is sound: 110 states, 110 of them" in command("table", "verify", "2x2", "--full").stdout
    assert "removed" in command("table", "remove", "2x2-reach-16", "--yes").stdout
    assert not (warm_home / "tables" / "2x2-reach-16").exists()
    error = command("table", "info", "5x5", code=2).stderr
    assert error == "lab2048: there is no table 5x5; lab2048 table list shows what there is\n"
    flip(folder / "keys.bin", 5)
    assert "damaged" in command("table", "verify", "2x2", code=2).stderr


def test_a_board_too_large_for_the_disk_is_refused(warm_home):
    done = command("solve", "4x3", code=2)
    estimate, error = done.stderr.splitlines()[-2:]
    assert "4x3-score: 1,152,817,492,752 states" in estimate and "TB of disk" in estimate
    assert error.startswith("lab2048: 4x3-score needs about") and "--force" in error
    assert not (warm_home / "tables").exists()


def test_probe_on_the_command_line(warm_home):
    make_table(Problem.of("2x2"))
    found = json.loads(command("probe", "2 2 / 4 .", "--json").stdout)
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
    spawns = json.loads(command("probe", "2 2 / 4 .", "--after", "left", "--json").stdout)["spawns"]
    assert len(spawns) == 4 and sum(spawn["probability"] for spawn in spawns) == pytest.approx(1)
    mean = sum(spawn["probability"] * spawn["value"] for spawn in spawns)
    assert mean == pytest.approx(found["moves"]["left"]["after_value"], rel=1e-12)
    text = command("probe", "2 2 / 4 .").stdout
    assert "value 64.9077 (score, p4 0.1)" in text and "7.1619" in text
    error = command("probe", "2 . / . .", code=2).stderr
    assert error.startswith("lab2048: 2 . / . . is not reachable on 2x2") and error.count("\n") == 1
    error = command("probe", "2 2 / 4 .", "--after", "up", code=2).stderr
    assert error == "lab2048: up is not legal on 2 2 / 4 .\n"
    assert "lab2048 solve 3x3" in command("probe", "2 2 . / . . . / . . .").stdout
    unsolved = json.loads(command("probe", "2 2 . / . . . / . . .", "--json").stdout)
    assert unsolved["value"] is None and unsolved["moves"]["left"]["q"] is None
    assert unsolved["moves"]["left"]["reward"] == 4
    error = command("probe", "2 2 / . .", "--table", "nowhere", code=2).stderr
    assert "there is no table nowhere" in error


def test_unfinished_tables_are_listed(warm_home):
    folder = warm_home / "tables" / "3x2-score"
    run = [sys.executable, "-c", STEPS, str(folder), "float64", "100", "0"]
    subprocess.run(run, capture_output=True, check=False)
    assert "unfinished" in command("table", "list").stdout
    assert "is unfinished" in command("table", "info", "3x2", code=2).stderr


# -- more that went wrong once -------------------------------------------------------------------


def stop_in_values(step):
    if step.stage == "values" and step.age == 100:
        raise KeyboardInterrupt


def test_a_summary_that_was_cut_off_can_become_a_table(tmp_path, made):
    with pytest.raises(KeyboardInterrupt):
        make_table(Problem.of("3x2"), tmp_path / "t", keep="summary", progress=stop_in_values)
    make_table(Problem.of("3x2"), tmp_path / "t")
    assert same_bytes(made, tmp_path / "t")


@pytest.mark.parametrize("name", ["values.bin", "carry"])
@pytest.mark.parametrize("damage", ["missing", "short", "flipped"])
def test_damage_to_values_that_count_is_made_up_for(tmp_path, made, name, damage):
    folder = tmp_path / "t"
    with pytest.raises(KeyboardInterrupt):
        make_table(Problem.of("3x2"), folder, progress=stop_in_values)
    (path,) = folder.glob(f"{name}*")
    if damage == "missing":
        path.unlink()
    elif damage == "short":
        path.write_bytes(path.read_bytes()[:-9])
    else:
        flip(path, path.stat().st_size - 3)
    make_table(Problem.of("3x2"), folder)
    assert same_bytes(made, folder)


@pytest.mark.parametrize("name", ["keys.bin", "blocks.bin"])
def test_damage_to_keys_that_count_is_said(tmp_path, made, name):
    folder = tmp_path / "t"
    with pytest.raises(KeyboardInterrupt):
        make_table(Problem.of("3x2"), folder, progress=stop_in_values)
    whole = (folder / name).read_bytes()
    (folder / name).write_bytes(whole[:-9])
    with pytest.raises(TableError, match=f"{name} ends too early"):
        make_table(Problem.of("3x2"), folder)
    (folder / name).write_bytes(whole + b"what does not count")
    make_table(Problem.of("3x2"), folder)
    assert same_bytes(made, folder)


def test_a_write_that_fails_once_costs_nothing(tmp_path, made, monkeypatch):
    """A disk that was full for a moment, in the middle of the values."""
    write, calls = making._write_at, []

    def fail_once(*arguments):
        calls.append(1)
        if len(calls) == 30:
            raise OSError(28, "No space left on device")
        write(*arguments)

    monkeypatch.setattr(making, "_write_at", fail_once)
    with pytest.raises(OSError, match="make room and run the command again"):
        make_table(Problem.of("3x2"), tmp_path / "t")
    make_table(Problem.of("3x2"), tmp_path / "t")
    assert same_bytes(made, tmp_path / "t")


def test_ctrl_c_at_any_moment_is_safe(tmp_path, made, monkeypatch):
    """The signal of a timer, which comes when it likes."""
    monkeypatch.setattr(making, "COMMIT_SECONDS", 0.01)
    monkeypatch.setattr(crew_module, "ENOUGH", 64)
    handler = signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    rng, stopped, folder = random.Random(7), 0, tmp_path / "t"
    try:
        while stopped < 25:
            signal.setitimer(signal.ITIMER_REAL, rng.uniform(0.002, 0.15))
            try:
                make_table(Problem.of("3x2"), folder, threads=2)
            except KeyboardInterrupt:
                stopped += 1
                continue
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            assert same_bytes(made, folder)
            shutil.rmtree(folder)
    finally:
        signal.signal(signal.SIGALRM, handler)
    make_table(Problem.of("3x2"), folder)
    assert same_bytes(made, folder)


def test_a_finished_table_that_lost_a_file_is_made_again(copy, made):
    (copy / "values.bin").unlink()
    make_table(Problem.of("3x2"), copy)
    assert same_bytes(made, copy)


def test_files_of_others_are_never_touched(tmp_path):
    for name in ("movie.part", "notes.tmp"):
        folder = tmp_path / name.replace(".", "-")
        folder.mkdir()
        (folder / name).write_text("mine")
        with pytest.raises(TableError, match=f"holds other files, such as {name}"):
            make_table(Problem.of("2x2"), folder)
        assert (folder / name).read_text() == "mine"


def test_a_table_in_the_making_is_not_removed(tmp_path):
    def progress(step):
        with pytest.raises(TableError, match=r"being made by another process|there is no table"):
            remove_table(tmp_path / "t")

    make_table(Problem.of("2x2"), tmp_path / "t", progress=progress)
    assert remove_table(tmp_path / "t") > 0 and not (tmp_path / "t").exists()


def test_chances_that_are_next_to_nothing(tmp_path):
    found = make_table(Problem.of("2x2", p4=1e-300), tmp_path / "t")
    assert found["value"]["start"] == pytest.approx(68) and found["states"] == 110
    assert found["value"]["4+4"] is not None


def test_a_table_of_another_problem_is_not_taken_for_this_one(own_home, made):
    shutil.copytree(made, own_home / "tables" / "2x2-score")
    with pytest.raises(TableError, match="there is no table 2x2-score"):
        open_table("2x2")


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
    listed = command("table", "list").stdout
    assert "damaged" in listed and "2x2-worst-case" in listed
    (warm_home / "tables" / "2x2-worst-case" / "run.json").write_text("{}")
    assert "2x2-worst-case" in command("table", "list").stdout
