"""`lab2048.game` and its notation: rules, boards, games, and what is said of bad ones."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab2048 import Board, Direction, Game, Rules, direction_from_image, direction_on_image
from tests import naive
from tests.conftest import grids


def as_grid(board):
    return [list(row) for row in board.tiles]


# -- moves and spawns against the naive game ---------------------------------------------------


@given(grids())
def test_moves_are_the_naive_ones(grid):
    board = Board.parse(grid)
    for direction in Direction:
        after, reward = naive.move(grid, direction)
        legal, gained, result = board.move(direction)
        assert legal == (after != grid)
        assert gained == (reward if legal else 0)
        assert as_grid(result) == after
    assert list(board.legal_moves) == naive.legal_moves(grid)
    assert board.is_terminal == (naive.legal_moves(grid) == [])


@given(grids(), st.sampled_from([0.0, 0.1, 0.25, 1.0]))
def test_spawns_are_the_naive_ones_and_sum_to_one(grid, p4):
    board = Board.parse(grid)
    rules = Rules(board.rows, board.cols, p4)
    if board.empty == 0:
        with pytest.raises(ValueError, match="no cell is empty"):
            rules.spawns(board)
        return
    expected = naive.spawns(grid, Fraction(p4))
    found = rules.spawns(board)
    assert [as_grid(spawn.board) for spawn in found] == [after for _, after in expected]
    assert [spawn.probability for spawn in found] == pytest.approx([float(p) for p, _ in expected])
    assert sum(p for p, _ in expected) == 1
    assert math.fsum(spawn.probability for spawn in found) == pytest.approx(1, abs=1e-12)
    for spawn in found:
        assert spawn.board == board.place(spawn.cell, spawn.rank)


@given(grids())
def test_a_move_keeps_the_age_and_a_spawn_adds_its_tile(grid):
    board = Board.parse(grid)
    assert board.age == naive.age(grid)
    for direction in board.legal_moves:
        after = board.move(direction).after
        assert after.age == board.age
        for spawn in Rules(board.rows, board.cols).spawns(after)[:4]:
            assert spawn.board.age == board.age + 2**spawn.rank


@given(grids(), st.sampled_from(list(Direction)))
def test_a_reward_is_the_rise_of_the_merged_sum(grid, direction):
    board = Board.parse(grid)
    move = board.move(direction)
    assert move.after.merged - board.merged == move.reward


def test_a_line_is_merged_from_the_side_it_slides_to():
    #  2 2 2 .      left: 4 2 . .      right: . . 2 4
    board = Board.parse("2 2 2 . / . . . .")
    assert str(board.move(Direction.LEFT).after) == "4 2 . . / . . . ."
    assert str(board.move(Direction.RIGHT).after) == ". . 2 4 / . . . ."
    #  a tile that was just made does not merge again
    assert str(Board.parse("4 2 2 . / . . . .").move(3).after) == "4 4 . . / . . . ."


# -- symmetries --------------------------------------------------------------------------------


@given(grids())
def test_images_are_the_naive_ones(grid):
    board = Board.parse(grid)
    expected = naive.images(grid)
    assert len(expected) == Rules(board.rows, board.cols).symmetries
    assert [as_grid(board.image(s)) for s in range(len(expected))] == expected


@given(grids())
def test_canonical_is_the_same_for_all_images_and_idempotent(grid):
    board = Board.parse(grid)
    image, symmetry = board.canonical()
    packed = [naive.packed(other) for other in naive.images(grid)]
    assert image.packed == min(packed)
    assert symmetry == packed.index(min(packed))
    assert board.image(symmetry) == image
    for s in range(len(packed)):
        assert board.image(s).canonical().board == image
    assert image.canonical() == (image, 0)


@given(grids(), st.integers(0, 7), st.sampled_from(list(Direction)))
def test_moves_commute_with_symmetries(grid, symmetry, direction):
    board = Board.parse(grid)
    there = direction_on_image(direction, symmetry)
    move, other = board.move(direction), board.image(symmetry).move(there)
    assert (move.legal, move.reward) == (other.legal, other.reward)
    assert move.after.image(symmetry) == other.after
    assert direction_from_image(there, symmetry) == direction


# -- large tiles -------------------------------------------------------------------------------


def test_two_32768s_merge_and_the_game_goes_on():
    start = Board.parse("32768 32768 . . / . . . . / . . . . / . . . .")
    game = Game(Rules(4, 4), seed=1, start=start)
    assert game.play(Direction.LEFT) == 65536
    assert game.score == 65536
    assert game.board.max_tile == 65536
    assert not game.over
    while not game.over:
        game.play(game.board.legal_moves[0])
    assert game.score > 65536
    assert game.score == game.board.merged - start.merged - 4 * sum(r == 2 for _, r in game.spawns)


def test_the_131072_tile_is_made_and_no_larger_one_can_be():
    assert Board.parse("65536 65536 / . .").move(3).after.max_tile == 131072
    assert Board.parse("65536 65536 / . .").move(3).reward == 131072
    with pytest.raises(ValueError, match="no game goes past 262140"):
        Board.parse("131072 131072 / . .")
    with pytest.raises(ValueError, match="262144"):
        Board.parse("131072 65536 / 65536 .")
    full = "131072 65536 32768 16384 / 8192 4096 2048 1024 / 512 256 128 64 / 32 16 8 4"
    assert Board.parse(full).age == 262140
    assert Board.parse(full).is_terminal


def test_a_chain_of_merges_up_to_131072_scores_every_step():
    # 65536 32768 16384 ... 4 4 in a snake: each move merges the two at its end
    board = Board.parse("65536 32768 16384 8192 / 512 1024 2048 4096 / 256 128 64 32 / 4 4 8 16")
    made = []
    for direction in "RRRULLLURRRULLL":  # follow the snake from its tail
        ways = {"R": Direction.RIGHT, "L": Direction.LEFT, "U": Direction.UP}
        board, reward = board.move(ways[direction]).after, board.move(ways[direction]).reward
        made.append(reward)
    assert max(made) == 131072
    assert sum(made) == 2**18 - 2**3
    assert board.max_tile == 131072
    assert board.empty == 15


wide_ranks = st.lists(
    st.one_of(st.integers(0, 17), st.sampled_from([0, 14, 15, 16, 17])), min_size=16, max_size=16
)


@given(wide_ranks)
def test_a_stand_in_is_packed_and_has_the_same_legal_moves(ranks):
    while sum(2**rank for rank in ranks if rank) > 262140:
        ranks[ranks.index(max(ranks))] -= 1
    board = Board(tuple(ranks), 4, 4)
    if board.is_terminal:
        return
    shown = board.stand_in()
    assert shown.max_tile <= 32768
    assert shown.packed == naive.packed(as_grid(shown))
    assert shown.legal_moves == board.legal_moves
    for i in range(16):
        assert (shown.ranks[i] == 0) == (board.ranks[i] == 0)
        for j in range(i):
            assert (shown.ranks[i] < shown.ranks[j]) == (board.ranks[i] < board.ranks[j])
    if board.max_tile <= 32768:
        assert shown == board


def test_stand_in_examples():
    # the gap at 16384 is closed from above; nothing else changes
    board = Board.parse("65536 32768 8192 2 / . . . . / . . . . / . . . .")
    assert str(board.stand_in()) == "32768 16384 8192 2 / . . . . / . . . . / . . . ."
    board = Board.parse("131072 65536 4 2 / . . . . / . . . . / . . . .")
    assert str(board.stand_in()) == "32768 16384 4 2 / . . . . / . . . . / . . . ."
    distinct = "65536 32768 16384 8192 / 512 1024 2048 4096 / 256 128 64 32 / 2 4 8 16"
    with pytest.raises(ValueError, match="no move is legal"):
        Board.parse(distinct).stand_in()


# -- parsing and printing ----------------------------------------------------------------------


@given(grids(largest=15))
def test_parse_and_print_round_trip(grid):
    board = Board.parse(grid)
    size = f"{board.rows}x{board.cols}"
    assert str(board) == naive.text(grid)
    assert as_grid(board) == grid
    assert Board.parse(str(board)) == board
    assert Board.parse(board.grid()) == board
    assert Board.parse(board.hex, size) == board
    assert Board.parse(str(as_grid(board))) == board
    assert Board.parse(np.array(grid)) == board
    assert eval(repr(board)) == board
    assert board.packed == naive.packed(grid)
    assert Board.from_packed(board.packed, board.rows, board.cols) == board


def test_ranks_of_numpy_become_ordinary_numbers():
    board = Board.parse(". . / . .").place(3, np.uint8(1))
    assert type(board.ranks[3]) is int
    assert Board((np.uint8(15),) * 4, 2, 2).packed == 0xFFFF


def test_messages_stay_on_one_short_line():
    deep = []
    for _ in range(100_000):
        deep = [deep]
    for bad in (
        deep,
        [["a\nb", "c"], ["d", "e"]],
        [["\x1b[31m", "c"], ["d", "e"]],
        np.zeros((3, 3, 3)),
    ):
        with pytest.raises(ValueError, match=r".") as caught:
            Board.parse(bad)
        assert str(caught.value).isprintable() and len(str(caught.value)) < 250
    with pytest.raises(ValueError, match="a seed is a whole number") as caught:
        Game(Rules(2, 2), "9" * 10**6)
    assert len(str(caught.value)) < 150


def test_all_forms_of_one_board():
    board = Board.parse("2 4 . / . 8 . / 2 . .")
    assert board.ranks == (1, 2, 0, 0, 3, 0, 1, 0, 0)
    for form in [
        "2 4 0 / 0 8 0 / 2 0 0",
        " 2 4 ./. 8 ./2 . . ",
        "2 4 .\n. 8 .\n2 . .",
        "2 4 . /\n. 8 . /\n2 . .",
        "2,4,0;0,8,0;2,0,0",
        "120030100",
        [[2, 4, 0], [0, 8, 0], [2, 0, 0]],
        "[[2, 4, 0], [0, 8, 0], [2, 0, 0]]",
        ((2, 4, 0), (0, 8, 0), (2, 0, 0)),
    ]:
        assert Board.parse(form) == board
    assert Board.parse("gh0100", "2x3") == Board.parse("65536 131072 . / 2 . .")
    assert Board.parse("GH0100", (2, 3)).hex == "gh0100"


BAD_BOARDS = {
    "3 . / . .": "row 1, column 1: 3 is not a tile; tiles are powers of two from 2 to 131072",
    "1 . / . .": "row 1, column 1: 1 is not a tile",
    ". -2 / . .": "row 1, column 2: -2 is not a tile",
    ". . / . 262144": "row 2, column 2: 262144 is not a tile",
    ". . / . x": "row 2, column 2: x is not a tile",
    ". . / . 2.0": "2.0 is not a tile",
    ". . / . ٢": "is not a tile",
    ". . / . " + "9" * 5000: "is not a tile",
    ". . / .": "row 2 has 1 cells and row 1 has 2; every row needs the same number",
    ". . / . . /": "row 3 has 0 cells",
    "": "the board is empty text; write rows of tiles, such as '2 4",
    "   ": "the board is empty text",
    "/": "the board is empty text",
    "2 4 8": "a board has 2 to 6 rows, 2 to 6 columns and at most 16 cells, not 1x3",
    "2 / 4": "not 2x1",
    ". . . . . . . / . . . . . . .": "not 2x7",
    ". . . . . / . . . . . / . . . . . / . . . . .": "at most 16 cells, not 4x5",
    "12003010": "'12003010' has 8 ranks; a square board has 4, 9 or 16 of them",
    "1" * 25: "at most 16 cells, not 5x5",
    "111": "has 3 ranks",
    "[[2, 4], [0, 8]": "is not a nested list",
    "[2, 4]": "is not a board",
    "[[2, 4], [0, 8.0]]": "row 2, column 2: 8.0 is not a tile",
    "[[2, 4], [0, true]]": "True is not a tile",
    '[["2", "4"], ["0", "8"]]': "2 is not a tile",
    "[" * 100_000: "is not a nested list",
    "[]": "not 0x0",
}


@pytest.mark.parametrize("text", BAD_BOARDS, ids=lambda text: text[:20])
def test_a_bad_board_is_refused_in_one_line(text):
    with pytest.raises(ValueError, match=r".") as caught:
        Board.parse(text)
    assert BAD_BOARDS[text] in str(caught.value)
    assert len(str(caught.value)) < 200
    assert "\n" not in str(caught.value)


@given(st.text(max_size=60))
def test_garbage_never_fails_in_another_way(text):
    try:
        board = Board.parse(text)
    except ValueError as error:
        assert "\n" not in str(error)
    else:
        assert Board.parse(str(board)) == board


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=2), inner),
        max_leaves=12,
    )
)
def test_garbage_lists_never_fail_in_another_way(source):
    try:
        Board.parse(source)
    except ValueError as error:
        assert "\n" not in str(error)


def test_a_size_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="the board is 3x3, not 4x4"):
        Board.parse("2 4 . / . 8 . / 2 . .", "4x4")
    with pytest.raises(ValueError, match="has 9 ranks; a 4x3 board has 12 of them"):
        Board.parse("120030100", "4x3")
    for size in ("3", 5, (1, 2, 3)):
        with pytest.raises(ValueError, match="a board size is written ROWSxCOLS"):
            Board.parse("120030100", size)
    with pytest.raises(ValueError, match="has 4 cells, not 0"):
        Board(5, 2, 2)
    with pytest.raises(ValueError, match="a 3x3 board has 9 cells, not 8"):
        Board((0,) * 8, 3, 3)
    with pytest.raises(ValueError, match="18 is not a rank"):
        Board((18, 0, 0, 0), 2, 2)
    with pytest.raises(ValueError, match="below 16\\*\\*4"):
        Board.from_packed(1 << 16, 2, 2)
    with pytest.raises(ValueError, match="holds tiles up to 32768"):
        _ = Board.parse("65536 . / . .").packed
    for cell in (0, 4, -1, None, 1.0):
        with pytest.raises(ValueError, match="is not the number of an empty cell"):
            Board.parse("2 . / . .").place(cell, 1)
    for rank in (1.0, True, 18, None):
        with pytest.raises(ValueError, match="is not a rank"):
            Board.parse("2 . / . .").place(1, rank)


@pytest.mark.parametrize(
    ("rows", "cols"), [(1, 4), (4, 1), (7, 2), (2, 7), (4, 5), (6, 3), (0, 0), (-2, 2), (2.0, 2)]
)
def test_sides_out_of_range_are_refused(rows, cols):
    with pytest.raises(ValueError, match="2 to 6 rows, 2 to 6 columns and at most 16 cells"):
        Rules(rows, cols)


def test_every_allowed_size_is_accepted():
    assert len(naive.SHAPES) == 15
    for rows, cols in naive.SHAPES:
        rules = Rules.parse(f"{rows}x{cols}")
        assert (rules.cells, rules.name) == (rows * cols, f"{rows}x{cols}")


@pytest.mark.parametrize("p4", [-0.1, 1.1, math.nan, math.inf, 10**400, "0.1", b"0.1", None, True])
def test_a_p4_that_is_no_chance_is_refused(p4):
    with pytest.raises(ValueError, match="p4, the chance of a 4, is a number from 0 to 1"):
        Rules(4, 4, p4)


def test_a_direction_may_be_named():
    board = Board.parse("2 . / . .")
    assert board.move("right") == board.move(Direction.RIGHT) == board.move(np.int64(1))
    assert Game(Rules(2, 2), 1, start=board).play("down") == 0


def test_a_symmetry_that_is_none_is_refused():
    for symmetry in (-1, 8, 1.0, None):
        with pytest.raises(ValueError, match="a symmetry is a number from 0 to 7"):
            Board.parse("2 . / . .").image(symmetry)
        with pytest.raises(ValueError, match="a symmetry is a number from 0 to 7"):
            direction_on_image(0, symmetry)


@pytest.mark.parametrize("direction", [-1, 4, "UP", "north", 1.0, None])
def test_a_direction_that_is_none_is_refused(direction):
    with pytest.raises(ValueError, match=r"a direction is (0|up)"):
        Board.parse("2 . / . .").move(direction)


# -- games -------------------------------------------------------------------------------------


def test_the_same_seed_is_the_same_game_and_another_is_another():
    def boards(seed, index=0):
        game = Game(Rules(4, 4), seed, index=index)
        out = [game.board]
        for _ in range(20):
            game.play(game.board.legal_moves[-1])
            out.append(game.board)
        return out

    assert boards(5) == boards(5)
    assert boards(5) != boards(6)
    assert boards(5) != boards(5, index=1)


def test_undo_takes_back_and_the_same_move_spawns_the_same_tile():
    game = Game(Rules(3, 3), seed=3)
    assert not game.undo()
    before = game.board
    direction = before.legal_moves[0]
    game.play(direction)
    after, score = game.board, game.score
    assert game.undo()
    assert (game.board, game.score, game.moves, len(game.spawns)) == (before, 0, [], 2)
    game.play(direction)
    assert (game.board, game.score) == (after, score)


def test_an_illegal_move_is_refused_and_changes_nothing():
    game = Game(Rules(2, 2), seed=1, start=Board.parse("2 4 / . ."))
    with pytest.raises(ValueError, match=r"left is not legal on 2 4 / \. \."):
        game.play(Direction.LEFT)
    assert str(game.board) == "2 4 / . ."
    assert game.moves == []


def test_p4_of_0_and_1_spawn_only_2s_and_only_4s():
    for p4, rank in [(0.0, 1), (1.0, 2)]:
        game = Game(Rules(4, 4, p4), seed=2)
        while not game.over:
            game.play(game.board.legal_moves[0])
        assert {r for _, r in game.spawns} == {rank}


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, "1", True])
def test_a_seed_that_is_none_is_refused(seed):
    with pytest.raises(ValueError, match="a seed is a whole number"):
        Game(Rules(4, 4), seed)


def test_seeds_of_numpy_and_a_game_at_a_glance():
    game = Game(Rules(4, 4), np.int64(7), index=np.uint8(1))
    assert game.board == Game(Rules(4, 4), 7, index=1).board
    assert repr(game) == "<Game 4x4, seed 7, 0 moves, score 0>"
    with pytest.raises(ValueError, match="the index of a game is a whole number"):
        Game(Rules(4, 4), 7, index=-1)


def test_without_a_seed_games_differ():
    assert Game(Rules(4, 4)).seed != Game(Rules(4, 4)).seed
