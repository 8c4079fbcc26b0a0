"""Kernels that expand many boards at once: moves to afterstates, spawns to states.

All boards of a call have one shape, for which the kernel is compiled. Boards are processed in
blocks, and every stage is a short loop over a block that the compiler vectorises; only the loops
that pack results together go board by board, without branches.

Results are canonical (`smallest`). The direction of a move does not matter here, so a vertical move
is made on the transposed board; one lookup in a table of *pairs* (`slides.pairs`) gives both left
and right.
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
"""The lowest bit of a word's top byte, which may hold the index of a board in its block."""
WIN = U(2**64 - 1)
"""Stands for an afterstate that ends the game because it holds the target tile."""


# -- blocks: inlined into the kernels ------------------------------------------------------------


@fragment
def holds(board: U, rank: U) -> bool:
    """Whether some cell holds exactly this rank, which must not be 0."""
    return bool(occupied(board ^ (rank * CELLS)) != CELLS)


# -- moves ---------------------------------------------------------------------------------------


@fragment
def pack_legal(slid: Words, before: Words, size: int, edges: Words, found: U) -> U:
    """Append the boards that the slide changed; return the new number of edges.

    The top byte, which no board uses, holds the index of the board in its block.
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
    """Write the canonical afterstate of every legal move and the index of its key; how many.

    An afterstate that holds the rank `stop` is written as `WIN`. `edges` and `sources` need room
    for 4 entries per key and one more. The pairs may also be of uint32.
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
        if rows != cols:  # a square board may stay transposed
            for i in range(size):
                turned[i] = board[i]
                first[i] = transpose(first[i], cols, rows)
                last[i] = transpose(last[i], cols, rows)
        found = pack_legal(first, turned, size, edges, found)
        found = pack_legal(last, turned, size, edges, found)
        for i in range(begin, found):  # unsigned: indices that may be negative prevent vector code
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
    """Write a block of afterstates and the masks of their empty cells; return its size."""
    for i in range(size):
        boards[i] = keys[start + i]
        empty[i] = empty_cells(boards[i], rows, cols)
    return size


@fragment
def next_cells(boards: Words, empty: Words, sources: Halves, size: int) -> int:
    """Clear the lowest cell of every mask; keep the boards that have another; return how many."""
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
    """Append the canonical states after a spawn of `rank`; return the new number of states.

    `out` needs room for one state per empty cell of each key.
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
