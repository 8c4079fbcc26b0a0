"""Kernels that lead from many boards to the next: moves to afterstates, spawns to states.

All boards of a call have one shape, for which the kernel is compiled. Boards are taken a block at
a time, and every stage of the work is a short loop over the block that the compiler turns into
vector code; only where results are packed together does a loop go board by board, without branches.

What comes out is canonical (`smallest`). Which moves are made does not matter here, so a vertical
move is one of the transposed board; left and right come out of one look into a table of *pairs*
(`slides.pairs`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from lab2048.engine.arrays import Halves, Pairs, Words
from lab2048.engine.jit import U, fragment, kernel
from lab2048.engine.packed import CELLS, empty_cells, lowest_cell, occupied, smallest, transpose
from lab2048.engine.slides import pairs, slide_both

BLOCK = 256
TAG = U(56)
"""Where the byte of a word begins that may number the boards of a block."""
WIN = U(2**64 - 1)
"""Stands in place of an afterstate that ends the game: the tile that was to be made is on it."""


# -- blocks: inlined into the kernels ------------------------------------------------------------


@fragment
def holds(board: U, rank: U) -> bool:
    """Whether some cell holds a tile of just this rank (which is not 0)."""
    return bool(occupied(board ^ (rank * CELLS)) != CELLS)


# -- moves ---------------------------------------------------------------------------------------


@fragment
def pack_legal(slid: Words, before: Words, size: int, edges: Words, found: U) -> U:
    """Append the boards that were changed by the slide; how many there are then.

    The top byte, which no board uses, says which board of the block it was.
    """
    for i in range(U(size)):
        edges[found] = slid[i] | (i << TAG)
        found += U(slid[i] != before[i])
    return found


@fragment
def all_moves(
    keys: Words,
    stop: U,
    across: Pairs,
    down: Pairs,
    edges: Words,
    sources: Halves,
    rows: int,
    cols: int,
) -> int:
    """Write the canonical afterstates of all legal moves, and whose they are; how many.

    An afterstate that holds the rank `stop` is a `WIN`. There has to be room for 4 a key and one
    more. The pairs may also be of uint32.
    """
    board, turned = np.empty(BLOCK, np.uint64), np.empty(BLOCK, np.uint64)
    first, last = np.empty(BLOCK, np.uint64), np.empty(BLOCK, np.uint64)
    found = U(0)
    for start in range(0, len(keys), BLOCK):
        size = min(BLOCK, len(keys) - start)
        begin = found
        for i in range(size):
            board[i] = keys[start + i]
        for i in range(size):
            first[i], last[i] = slide_both(board[i], across, rows, cols)
        found = pack_legal(first, board, size, edges, found)
        found = pack_legal(last, board, size, edges, found)
        for i in range(size):
            turned[i] = transpose(board[i], rows, cols)
        for i in range(size):
            first[i], last[i] = slide_both(turned[i], down, cols, rows)
        if rows != cols:  # a square may stay on its side
            for i in range(size):
                turned[i] = board[i]
                first[i] = transpose(first[i], cols, rows)
                last[i] = transpose(last[i], cols, rows)
        found = pack_legal(first, turned, size, edges, found)
        found = pack_legal(last, turned, size, edges, found)
        for i in range(begin, found):  # unsigned: an index below 0 would stop the vectors
            sources[i] = np.uint32(U(start) + (edges[i] >> TAG))
            after = smallest(edges[i] & ((U(1) << TAG) - U(1)), rows, cols)
            edges[i] = WIN if holds(after, stop) else after
    return int(found)


@cache
def moves_kernel(rows: int, cols: int) -> Callable[..., int]:
    """`all_moves` for boards of one shape."""

    @kernel(
        f"int64(uint64[::1], uint64, {pairs(cols).dtype}[::1], {pairs(rows).dtype}[::1], "
        "uint64[::1], uint32[::1])"
    )
    def moves(
        keys: Words, stop: U, across: Pairs, down: Pairs, edges: Words, sources: Halves
    ) -> int:
        return all_moves(keys, stop, across, down, edges, sources, rows, cols)

    return moves


# -- spawns --------------------------------------------------------------------------------------


@fragment
def open_block(
    keys: Words, start: int, size: int, boards: Words, empty: Words, rows: int, cols: int
) -> int:
    """Take a block of afterstates and the masks of their empty cells; how many."""
    for i in range(size):
        boards[i] = keys[start + i]
        empty[i] = empty_cells(boards[i], rows, cols)
    return size


@fragment
def next_cells(boards: Words, empty: Words, sources: Halves, size: int) -> int:
    """Strike the lowest empty cell from every mask; the boards that have another, and how many."""
    left = 0
    for i in range(size):
        rest = empty[i] & (empty[i] - U(1))
        boards[left] = boards[i]
        empty[left] = rest
        sources[left] = sources[i]
        left += int(rest != U(0))
    return left


@fragment
def all_spawns(keys: Words, rank: U, out: Words, found: int, rows: int, cols: int) -> int:
    """Append the canonical states that a tile of this rank leads to; how many there are then.

    There has to be room for one an empty cell of each key.
    """
    boards, empty = np.empty(BLOCK, np.uint64), np.empty(BLOCK, np.uint64)
    sources = np.empty(BLOCK, np.uint32)
    for start in range(0, len(keys), BLOCK):
        left = open_block(keys, start, min(BLOCK, len(keys) - start), boards, empty, rows, cols)
        while left > 0:
            for i in range(U(left)):
                tile = lowest_cell(empty[i]) * rank
                out[U(found) + i] = smallest(boards[i] | tile, rows, cols)
            found += left
            left = next_cells(boards, empty, sources, left)
    return found
