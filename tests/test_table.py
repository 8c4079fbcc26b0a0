"""Tables: probing one board and many, damage, and the command line."""

from __future__ import annotations

import json
import random
import shutil

import numpy as np
import pytest
from conftest import FILES, WITH_JIT, flip, run_command

from lab2048.game import Board, Direction
from lab2048.solve.problem import Problem
from lab2048.solve.solver import make_table
from lab2048.solve.store import TableError
from lab2048.solve.table import NotInTableError, open_table
from lab2048.solve.verify import verify

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
        pytest.raises(TableError, match=r"is worth [0-9.]+, but its best move [0-9.]+; remove"),
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
    assert error == f"lab2048: the table in {table.path} has p4 0.1, not 0.3\n"


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
