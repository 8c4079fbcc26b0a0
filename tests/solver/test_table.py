"""Tables: probing one board and many, damage, and the command line."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from lab2048.game import Board, Direction
from lab2048.solver.job import make_table
from lab2048.solver.problem import Problem
from lab2048.solver.table import NotInTableError
from lab2048.solver.table_files import TableError
from lab2048.solver.tables import open_table
from tests.conftest import WITH_JIT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not WITH_JIT, reason="takes too long without the JIT"),
]


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


# -- the command line ----------------------------------------------------------------------------


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


def test_a_table_that_is_closed_says_so(copy):
    table = open_table(copy)
    table.close()
    for ask in (lambda: table.value("2 2 / . . / . ."), lambda: table.probe_many([0x11])):
        with pytest.raises(ValueError, match="copy is closed"):
            ask()
