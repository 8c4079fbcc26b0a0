"""Moves in memory, and a check of each: the move is legal, and its cell fits."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lab2048.engine.arrays import Bytes, Slides, Words
from lab2048.engine.jit import U, kernel
from lab2048.engine.packed import rank_at
from lab2048.engine.slides import slide, table
from lab2048.game import Rules


class Moves(NamedTuple):
    """Moves of games, as columns."""

    boards: Words
    moves: Bytes
    cells: Bytes


@kernel("int64(uint64, uint64, uint64, uint32[::1], uint32[::1], int64, int64)")
def cell_may_be(
    board: U, move: U, cell: U, across: Slides, down: Slides, rows: int, cols: int
) -> int:
    """Which spawn the cell of a move may be that of: bit 0, the one before it; bit 1, after it.

    0 if it can be neither, or the move is illegal.
    """
    after = slide(board, move, across, down, rows, cols)
    if after == board:
        return 0
    before = rank_at(board, int(cell)) in (U(1), U(2))
    return int(before) + 2 * int(rank_at(after, int(cell)) == U(0))


@kernel(
    "void(uint64[::1], uint8[::1], uint8[::1], uint32[::1], uint32[::1], int64, int64, uint8[::1])"
)
def check_moves(
    boards: Words,
    moves: Bytes,
    cells: Bytes,
    across: Slides,
    down: Slides,
    rows: int,
    cols: int,
    out: Bytes,
) -> None:
    """Write `cell_may_be` of every move."""
    for i in range(len(boards)):
        out[i] = cell_may_be(boards[i], U(moves[i]), U(cells[i]), across, down, rows, cols)


def may_be(moves: Moves, rules: Rules) -> Bytes:
    """Which spawn the cell of each move may be that of (`cell_may_be`)."""
    out = np.empty(len(moves.boards), np.uint8)
    check_moves(*moves, table(rules.cols), table(rules.rows), rules.rows, rules.cols, out)
    return out
