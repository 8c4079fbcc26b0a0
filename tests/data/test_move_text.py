"""Moves as text: the form of the supervised study, written, read, and refused line by line."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from lab2048.data import move_text
from lab2048.data import moves as data
from lab2048.data.move_rows import Moves, may_be
from lab2048.data.move_text import TextFile, to_text
from lab2048.data.parquet import DataError
from lab2048.game import Board, Game, Rules
from lab2048.measure.arena import play_games
from lab2048.players.registry import make_player
from tests import naive
from tests.data.some_moves import FOUR, SMALL, some_moves

EXAMPLE = "r 13 5 5 2 14 8 3 1 12 9 1 0 11 10 0 1 : 3 15\n"
"""The line that the study prints."""


def text_file(path, text, rules=FOUR):
    path.write_text(text)
    return TextFile(path, rules)


def naive_line(line, rules):
    """Board, direction and cell of a line, and what the cell may be."""
    left, right = line.split(":")
    ranks = [int(each) for each in left.split()[1:]]
    move, cell = map(int, right.split())
    tiles = [1 << rank if rank else 0 for rank in ranks]
    grid = [tiles[r * rules.cols : (r + 1) * rules.cols] for r in range(rules.rows)]
    after, _ = naive.move(grid, move)
    r, c = divmod(cell, rules.cols)
    packed = sum(rank << 4 * k for k, rank in enumerate(ranks))
    may = (grid[r][c] in (2, 4)) + 2 * (after[r][c] == 0) if after != grid else 0
    return packed, move, cell, may


def test_the_example_of_the_study(tmp_path):
    found = text_file(tmp_path / "a.txt", EXAMPLE).read(0)
    board = Board.from_packed(int(found.boards[0]), 4, 4)
    assert str(board) == str(Board.parse("8192 32 32 4/16384 256 8 2/4096 512 2 ./2048 1024 . 2"))
    assert (found.moves[0], found.cells[0]) == (3, 15)
    assert to_text(found, FOUR).decode() == EXAMPLE
    assert may_be(found, FOUR)[0] == 3  # a 2 is there, and after the move it is empty


@pytest.mark.slow
@pytest.mark.parametrize(
    "rules",
    [FOUR, *(pytest.param(rules, marks=pytest.mark.slow) for rules in [Rules(3, 3), Rules(2, 5)])],
)
def test_text_is_read_as_it_was_written(tmp_path, rules):
    moves = some_moves(rules)
    path = tmp_path / "a.txt"
    assert data.write_moves(path, iter([moves]), rules, {}) == 1000
    lines = path.read_text().splitlines()
    found = TextFile(path, rules).read(0)
    for k, line in enumerate(lines):
        board, move, cell, may = naive_line(line, rules)
        assert (found.boards[k], found.moves[k], found.cells[k]) == (board, move, cell)
        assert may & 2  # what is written is the cell of the tile after the move
    expected = [naive_line(line, rules)[3] for line in lines]
    assert may_be(found, rules).tolist() == expected


@pytest.mark.slow
def test_moves_are_those_of_the_games(tmp_path):
    player = make_player("greedy", SMALL)
    games = sorted(play_games(player, iter(range(8)), 5), key=lambda game: game.index)
    size = sum(len(game.moves) for game in games[:6]) + 7
    found = some_moves(SMALL, size, seed=5)
    place = 0
    for played in games[:7]:
        game = Game(SMALL, 5, index=played.index)
        for move in played.moves[: size - place]:
            assert found.boards[place] == game.board.packed and found.moves[place] == move
            game.play(move)
            assert found.cells[place] == game.spawns[-1][0]
            place += 1
    assert place == size == len(found.boards)


def test_blanks_and_empty_lines_do_not_matter(tmp_path):
    loose = EXAMPLE.replace(" : ", "  :\t").replace("\n", " \r\n")
    source = text_file(tmp_path / "a.txt", f"\n  \n  {loose}\n\n{EXAMPLE.strip()}")
    twice = text_file(tmp_path / "b.txt", EXAMPLE * 2)
    assert source.read(0).boards.tolist() == twice.read(0).boards.tolist()
    assert len(text_file(tmp_path / "c.txt", "\n\n").read(0).boards) == 0
    assert len(text_file(tmp_path / "d.txt", "")) == 0


@pytest.mark.slow
@pytest.mark.parametrize("piece", [7, 50, 130, 4096])
def test_pieces_have_every_line_once(tmp_path, monkeypatch, piece):
    moves = some_moves(size=300)
    data.write_moves(tmp_path / "a.txt", iter([moves]), FOUR, {})
    monkeypatch.setattr(move_text, "PIECE", piece)
    source = TextFile(tmp_path / "a.txt", FOUR)
    parts = [source.read(k) for k in range(len(source))]
    assert np.concatenate([each.boards for each in parts]).tolist() == moves.boards.tolist()
    assert np.concatenate([each.cells for each in parts]).tolist() == moves.cells.tolist()


WRONG = {
    "s 1 1": "a line is 'r', 16 ranks, ':', a direction and a cell, not 's 1 1'",
    "r 1 1 : 0 0": "a board of 4x4 has 16 ranks, not 2",
    EXAMPLE.replace("13", "16").strip(): "ranks go up to 15",
    EXAMPLE.replace("13", "99999999999999999999").strip(): "ranks go up to 15",
    EXAMPLE.replace("13", "-1").strip(): "a line is 'r', 16 ranks",
    EXAMPLE.replace(": 3", ": 4").strip(): "a direction is a number from 0 to 3, not 4",
    EXAMPLE.replace("3 15", "3 16").strip(): "a cell is a number from 0 to 15, not 16",
    EXAMPLE.replace("3 15", "3 15 1").strip(): "a line is 'r', 16 ranks",
    EXAMPLE.replace("3 15", "3").strip(): "a line is 'r', 16 ranks",
    EXAMPLE.replace("3 15", "3 0").strip(): "has no new tile, and is not empty after the move 3",
    "r" + " 1 0 0 0" * 4 + " : 3 5": "the move 3 is not legal on 2 . . . / ",
    "\x00\xff": "a line is 'r', 16 ranks",
    "r " + "1" * 60 + " x": "a line is 'r', 16 ranks",
}


@pytest.mark.parametrize(("line", "why"), WRONG.items())
@pytest.mark.parametrize("piece", [64, 1 << 20])
def test_a_line_that_is_wrong_is_named(tmp_path, monkeypatch, line, why, piece):
    monkeypatch.setattr(move_text, "PIECE", piece)
    path = tmp_path / "a.txt"
    path.write_bytes((EXAMPLE * 4 + "\n").encode() + line.encode("latin-1") + b"\n" + b"x\n")
    source = TextFile(path, FOUR)
    with pytest.raises(DataError) as error:
        data.summarise(source)
    assert f"{path}, line 6: " in str(error.value) and why in str(error.value)


def test_a_file_that_ends_in_the_middle(tmp_path):
    with pytest.raises(DataError, match="line 2: a line is 'r', 16 ranks"):
        text_file(tmp_path / "a.txt", EXAMPLE + EXAMPLE[:20]).read(0)


@pytest.mark.parametrize("piece", [64, 1 << 12, 1 << 20])
@pytest.mark.parametrize("line", ["r " + "1 " * 200_000, EXAMPLE.strip() + " " * 5000, " " * 5000])
def test_a_line_is_not_read_beyond_a_bound(tmp_path, monkeypatch, line, piece):
    monkeypatch.setattr(move_text, "PIECE", piece)
    source = text_file(tmp_path / "a.txt", EXAMPLE * 3 + line + "\n" + EXAMPLE)
    tracemalloc.start()
    with pytest.raises(DataError, match=r"a.txt, line 4: it has more than 4,096 characters"):
        data.summarise(source)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 8 * (piece + 100_000)


def test_what_cells_mean_is_found_out(tmp_path):
    moves = some_moves(size=500)
    before = Moves(moves.boards[1:], moves.moves[1:], moves.cells[:-1])
    same_game = np.array([n not in (1, 2) for n in may_be(before, FOUR)])
    before = Moves(*(each[: int(np.argmin(may_be(before, FOUR) & 1))] for each in before))
    assert len(before.boards) > 20 and not same_game.all()
    for name, found in [("after", moves), ("before", before)]:
        data.write_moves(tmp_path / "a.txt", iter([found]), FOUR, {})
        summary = data.summarise(TextFile(tmp_path / "a.txt", FOUR))
        assert summary.cell == name and summary.moves == len(found.boards)
        assert summary.directions == tuple(np.bincount(found.moves, minlength=4))
    both = Moves(*(np.concatenate(each) for each in zip(moves, before, strict=True)))
    data.write_moves(tmp_path / "a.txt", iter([both]), FOUR, {})
    with pytest.raises(DataError, match="some cells can only be those of the tile before the move"):
        data.summarise(TextFile(tmp_path / "a.txt", FOUR))
    assert data.summarise(text_file(tmp_path / "b.txt", EXAMPLE)).cell == "either"
