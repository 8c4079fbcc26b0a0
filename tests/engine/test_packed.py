"""`lab2048.engine.packed`: the packed kernels against the naive game, and published counts."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lab2048 import Board
from lab2048.engine import packed as board
from lab2048.engine import slides
from lab2048.engine.jit import U, kernel
from lab2048.game import randomness as chance
from tests import naive
from tests.conftest import WITH_JIT, grids


def direct(line: list[int]) -> tuple[list[int], int]:
    """A line of ranks slid left, by the naive game, with the reward."""
    slid, reward = naive.slide_row_left([2**rank if rank else 0 for rank in line])
    return [tile.bit_length() - 1 if tile else 0 for tile in slid], reward


def cells_of(lines: np.ndarray, length: int) -> np.ndarray:
    """The ranks of packed lines: a row for every cell."""
    return np.array([lines >> 4 * i & 15 for i in range(length)], np.uint8)


def packed(cells: np.ndarray) -> np.ndarray:
    """The opposite."""
    lines = np.zeros(cells.shape[1], np.int64)
    for i, ranks in enumerate(cells):
        lines |= ranks.astype(np.int64) << 4 * i
    return lines


def push(cells: np.ndarray) -> None:
    """Move tiles into the empty cell at their left, until none has one there."""
    for _ in cells[1:]:
        for i in range(len(cells) - 1):
            free = cells[i] == 0
            cells[i] += cells[i + 1] * free
            cells[i + 1] *= ~free


def slide_left(cells: np.ndarray) -> np.ndarray:
    """Slide many lines left, as the naive game does; the rewards."""
    rewards = np.zeros(cells.shape[1], np.int64)
    push(cells)
    for i in range(len(cells) - 1):
        merge = (cells[i] == cells[i + 1]) & (cells[i] > 0)
        cells[i] += merge
        cells[i + 1] *= ~merge
        rewards += np.where(merge, np.int64(1) << cells[i], 0)
    push(cells)
    return rewards


@kernel("void(uint64[::1], uint64[::1], uint64[::1], uint64[::1], uint32[::1], int64)")
def slide_all(lines, left, right, rewards, table, length):
    """Lines of a length, slid both ways."""
    for i in range(lines.size):
        left[i] = slides.slide_rows(lines[i], U(0), table, 1, length)
        right[i] = slides.slide_rows(lines[i], U(1), table, 1, length)
        rewards[i] = slides.reward_rows(lines[i], table, 1, length)


def check_reference(lines, length):
    """Compare `slide_left` with the naive game, line by line."""
    before = cells_of(lines, length)
    after = before.copy()
    rewards = slide_left(after)
    for line, slid, reward in zip(before.T.tolist(), after.T.tolist(), rewards, strict=True):
        assert direct(line) == (slid, reward)


def check_lines(lines, length):
    """Compare kernels with `slide_left`; how many lines make a tile that does not fit."""
    left, right, rewards = (np.empty(len(lines), np.uint64) for _ in range(3))
    slide_all(lines.astype(np.uint64), left, right, rewards, slides.table(length), length)
    cells = cells_of(lines, length)
    back = cells[::-1].copy()
    gained = slide_left(cells)
    assert (slide_left(back) == gained).all()
    fits = cells.max(axis=0) <= 15
    assert (left[fits] == packed(cells)[fits]).all()
    assert (right[fits] == packed(back[::-1])[fits]).all()
    assert (rewards[fits] == gained[fits]).all()
    assert (rewards[fits] < slides.OVERFLOW).all()
    # what does not fit is flagged, and its reward is right beside the flag
    assert (rewards[~fits] == gained[~fits] + slides.OVERFLOW).all()
    return (~fits).sum()


LONGEST = 4 if WITH_JIT else 3


@pytest.mark.parametrize(
    "length",
    [
        *range(2, LONGEST + 1),
        *(pytest.param(n, marks=pytest.mark.slow) for n in range(LONGEST + 1, 7) if WITH_JIT),
    ],
)
def test_every_line_slides_both_ways_as_the_naive_one(length):
    count = 16**length
    # the naive game takes long: of lines of five and six cells it slides some, from everywhere
    check_reference(np.arange(0, count, 1 if length <= 4 else count // 20_000 | 1), length)
    few = np.array([*itertools.product([0, 1, 2, 15], repeat=length)])
    check_reference(packed(few.T), length)
    blocks = np.split(np.arange(count), max(1, count >> 16))
    assert sum(check_lines(lines, length) for lines in blocks) > 0


@given(st.one_of(grids(), grids(largest=15), grids(ranks=st.sampled_from([0, 14, 15]))))
@example([[2**15] * 2] * 2)
@example([[2**15] * 4] * 4)
def test_kernels_agree_with_the_naive_game(grid):
    rows, cols = len(grid), len(grid[0])
    packed = U(naive.packed(grid))
    across, down = slides.table(cols), slides.table(rows)
    mask = int(board.legal(packed, rows, cols))
    assert [d for d in range(4) if mask >> d & 1] == naive.legal_moves(grid)
    for direction in range(4):
        after, reward = naive.move(grid, direction)
        found = slides.reward(packed, U(direction), across, down, rows, cols)
        assert int(found) & ~slides.OVERFLOW == reward
        if max(map(max, after)) <= 2**15:
            assert int(found) == reward
            slid = slides.slide(packed, U(direction), across, down, rows, cols)
            assert int(slid) == naive.packed(after)
        else:
            assert int(found) & slides.OVERFLOW


@given(grids())
def test_symmetries_agree_with_the_naive_game(grid):
    rows, cols = len(grid), len(grid[0])
    packed = U(naive.packed(grid))
    assert int(board.transpose(packed, rows, cols)) == naive.packed(naive.transpose(grid))
    assert int(board.mirror(packed, rows, cols)) == naive.packed(naive.mirror(grid))
    assert int(board.flip(packed, rows, cols)) == naive.packed(naive.flip(grid))
    images = [naive.packed(image) for image in naive.images(grid)]
    for image in images:
        assert int(board.smallest(U(image), rows, cols)) == min(images)
    for symmetry, image in enumerate(images):
        assert int(board.image_of(packed, symmetry, rows, cols)) == image


@given(grids(largest=15))
def test_sums_and_masks_agree_with_the_naive_game(grid):
    packed = U(naive.packed(grid))
    rows, cols = len(grid), len(grid[0])
    tiles = [tile for row in grid for tile in row]
    assert board.age(packed) == naive.age(grid)
    assert board.max_rank(packed) == max(tile.bit_length() - 1 if tile else 0 for tile in tiles)
    assert board.potential(packed, rows * cols) == sum(t * (t.bit_length() - 2) for t in tiles if t)
    empty = board.empty_cells(packed, rows, cols)
    cells = [cell for cell, tile in enumerate(tiles) if tile == 0]
    assert int(empty) == sum(1 << 4 * cell for cell in cells)
    assert int(board.lowest_cell(empty)) == (1 << 4 * cells[0] if cells else 0)
    if 0 < len(cells) < 16:
        assert int(board.count(empty)) == len(cells)
        assert [int(board.select(empty, U(k))) for k in range(len(cells))] == cells


@given(st.integers(0, chance.MASK64), st.integers(0, 2**63))
def test_words_agree_with_python(seed, index):
    assert int(board.mix(U(seed))) == chance.mix(seed)
    assert int(board.game_key(U(seed), U(index))) == chance.game_key(seed, index)


@given(st.integers(0, chance.MASK64), st.integers(1, 16))
def test_bounded_agrees_with_python(word, n):
    for w in (word, word & 0xFFFF_FFFF):
        k, last = board.bounded(U(w), U(n))
        assert (int(k), int(last)) == chance.bounded(w, n)


@kernel("int64(uint64, int64, uint32[::1])")
def perft(position, depth, table):
    """Ways to go on for `depth` moves on 4x4; the last spawns are counted, not made."""
    total = 0
    for direction in range(4):
        after = slides.slide(position, U(direction), table, table, 4, 4)
        if after == position:
            continue
        empty = ~board.occupied(after)
        if depth == 1:
            total += 2 * np.int64(board.count(empty & board.CELLS))
            continue
        for cell in range(16):
            if (after >> U(4 * cell)) & U(15) == U(0):
                for rank in (1, 2):
                    total += perft(after | (U(rank) << U(4 * cell)), depth - 1, table)
    return total


# counts that several 2048 programs agree on
PERFT = [(1, 112), (2, 11_536), (3, 1_124_032), (4, 104_575_264)]


@pytest.mark.parametrize(("depth", "nodes"), PERFT if WITH_JIT else PERFT[:2])
def test_perft(depth, nodes):
    #  2 . . .
    #  . . . .      two 2s in opposite corners
    #  . . . .
    #  . . . 2
    start = Board.parse("2 . . . / . . . . / . . . . / . . . 2")
    assert perft(U(start.packed), depth, slides.table(4)) == nodes
    if depth <= 2:
        assert naive.perft([list(row) for row in start.tiles], depth) == nodes
