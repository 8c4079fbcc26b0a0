"""Where tiles spawn, as kernels: the cell is uniform among the empty ones, the tile a 4 with p4.

`lab2048.game.spawns` has the same in plain Python, `lab2048.engine.batch` for several boards at
once.
"""

from __future__ import annotations

import numpy as np

from lab2048.engine.arrays import Words
from lab2048.engine.jit import U, inline, kernel
from lab2048.engine.packed import GOLDEN, LOW_HALF, bounded, count, empty_cells, mix, select
from lab2048.game import Rules
from lab2048.game import spawns as plain


def four_threshold(rules: Rules) -> Words:
    """`game.spawns.four_threshold` as an array: the argument `four` of kernels."""
    return np.array(plain.four_threshold(rules.p4), np.uint64)


@inline("uint64(uint64, uint64[::1])")
def drawn_rank(word: U, four: Words) -> U:
    """The rank that the rest of a word draws, after the cell."""
    low = word & LOW_HALF
    is_four = low < four[0]
    if low == four[0]:  # once in 4 billion
        is_four = mix(word + GOLDEN) < four[1]
    return U(1) + U(is_four)


@inline("UniTuple(uint64, 2)(uint64, uint64, uint64[::1])")
def drawn_tile(cells: U, word: U, four: Words) -> tuple[U, U]:
    """The cell (from a mask of 1 to 15) and the rank of the tile that a word draws.

    `four` is the `four_threshold` of the rules.
    """
    which, word = bounded(word, count(cells))
    return select(cells, which), drawn_rank(word, four)


@kernel("Tuple((uint64, uint64))(uint64, uint64, uint64[::1], int64, int64)")
def spawn(after: U, word: U, four: Words, rows: int, cols: int) -> tuple[U, U]:
    """The afterstate with the tile that a word draws (`game.spawns.draw_spawn`), and its rank.

    At least one cell of the afterstate must be empty.
    """
    if after == U(0):  # `count` takes at most 15 cells, and this may be 16
        cell, word = bounded(word, U(rows * cols))
        rank = drawn_rank(word, four)
    else:
        cell, rank = drawn_tile(empty_cells(after, rows, cols), word, four)
    return after | (rank << (cell * U(4))), rank


@inline("uint64(uint64)")
def word_after_start(key: U) -> U:
    """The state of a game's stream after the start, which takes the first two words."""
    return key + GOLDEN + GOLDEN


@kernel("Tuple((uint64, uint64))(uint64, uint64[::1], int64, int64)")
def start_board(key: U, four: Words, rows: int, cols: int) -> tuple[U, U]:
    """The board that the game `key` starts with, and the number of 4s on it."""
    board, first = spawn(U(0), mix(key + GOLDEN), four, rows, cols)
    board, second = spawn(board, mix(word_after_start(key)), four, rows, cols)
    return board, first + second - U(2)
