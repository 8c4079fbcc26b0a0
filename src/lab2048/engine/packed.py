"""A board as one packed integer, and the kernels that every fast part is built from.

A board of R rows and C columns is a uint64; cell (r, c) is nibble number r*C + c, counted from
the lowest four bits, and holds the rank of its tile (0 is empty, 15 is 32768). On 3x3:

    bit  35                                    0
         |(2,2)|(2,1)|(2,0)|(1,2)| ... |(0,1)|(0,0)|

Conventions of this file:
- `rows` and `cols` come last. The building blocks are inlined, so a kernel that passes them as
  constants is compiled for that board; called from Python, they work for any board.
- A *mask* is a set of cells: it has bit 0 of the nibble set for each of them.
"""

from __future__ import annotations

import numpy as np

from lab2048.engine.arrays import Counts, Words
from lab2048.engine.jit import U, inline, kernel
from lab2048.game import direction_on_image, randomness

CELLS = U(0x1111_1111_1111_1111)
BYTES = U(0x0101_0101_0101_0101)
LOW_NIBBLES = U(0x0F0F_0F0F_0F0F_0F0F)
LOW_HALF = U(0xFFFF_FFFF)
GOLDEN = U(randomness.GOLDEN)
MIX1 = U(randomness.MIX1)
MIX2 = U(randomness.MIX2)
PLAYER = U(randomness.PLAYER)


# -- words -----------------------------------------------------------------------------------


@inline("uint64(uint64)")
def mix(z: U) -> U:
    """`randomness.mix`."""
    z = (z ^ (z >> U(30))) * MIX1
    z = (z ^ (z >> U(27))) * MIX2
    return z ^ (z >> U(31))


@inline("uint64(uint64, uint64)")
def game_key(seed: U, index: U) -> U:
    """`randomness.game_key`."""
    return mix(mix(seed) + (index + U(1)) * GOLDEN)


@kernel("Tuple((uint64, uint64))(uint64, uint64)")
def bounded(word: U, n: U) -> tuple[U, U]:
    """`randomness.bounded`."""
    while True:
        product = (word >> U(32)) * n
        low = product & LOW_HALF
        if low >= n or low >= U(1 << 32) % n:  # the remainder is below n, and slow to compute
            return product >> U(32), word
        word = mix(word + GOLDEN)


# -- cells -----------------------------------------------------------------------------------


@inline("uint64(uint64, int64)")
def rank_at(board: U, cell: int) -> U:
    """Return the rank in a cell of a packed board; your own heuristics may call it.

    >>> from lab2048 import Board, rank_at
    >>> int(rank_at(U(Board.parse("2 4 / . 8").packed), 3))
    3
    """
    return (board >> U(4 * cell)) & U(15)


@inline("uint64(uint64)")
def occupied(board: U) -> U:
    """The mask of the cells that hold a tile."""
    pairs = board | (board >> U(2))
    return (pairs | (pairs >> U(1))) & CELLS


@inline("uint64(int64, int64)")
def all_cells(rows: int, cols: int) -> U:
    """The mask of all cells of the board."""
    return CELLS >> U(64 - 4 * rows * cols)


@inline("uint64(uint64, int64, int64)")
def empty_cells(board: U, rows: int, cols: int) -> U:
    """The mask of the cells that hold no tile."""
    return ~occupied(board) & all_cells(rows, cols)


@inline("uint64(uint64)")
def lowest_cell(mask: U) -> U:
    """The mask of a mask's first cell alone; 0 for an empty mask."""
    return mask & (U(0) - mask)


@inline("uint64(uint64)")
def count(mask: U) -> U:
    """The number of cells in a mask, for masks of at most 15 cells."""
    return (mask * CELLS) >> U(60)


@inline("uint64(uint64, uint64)")
def select(mask: U, k: U) -> U:
    """The index of the mask's k-th cell (from 0), for masks of at most 15 cells.

    Nibble i of mask * CELLS counts the mask's cells up to cell i. The cell sought is the first
    with a count above k, so its index is the number of counts that are at most k. The counts are
    compared eight at a time, each in a byte: `128 + k - count` keeps its top bit if count <= k.
    """
    counts = mask * CELLS
    limit = (k | U(0x80)) * BYTES
    even = ((limit - (counts & LOW_NIBBLES)) >> U(7)) & BYTES
    odd = ((limit - ((counts >> U(4)) & LOW_NIBBLES)) >> U(7)) & BYTES
    return ((even + odd) * BYTES) >> U(56)


@inline("uint64(uint64, int64, int64)")
def legal(board: U, rows: int, cols: int) -> U:
    """The legal moves: bit d is set if direction d changes the board.

    A direction is legal if some tile's neighbour in it is an empty cell or an equal tile.
    """
    row = U(4 * cols)
    cells = all_cells(rows, cols)
    has_below = cells >> row
    last_column = U(0)
    for r in range(rows):
        last_column |= U(1) << U(4 * cols * (r + 1) - 4)
    has_right = cells & ~last_column
    full = occupied(board)
    same_across = ~occupied(board ^ (board >> U(4))) & full & has_right
    same_down = ~occupied(board ^ (board >> row)) & full & has_below
    up = same_down | (~full & (full >> row) & has_below)
    right = same_across | (full & ~(full >> U(4)) & has_right)
    down = same_down | (full & ~(full >> row) & has_below)
    left = same_across | (~full & (full >> U(4)) & has_right)
    return (
        U(up != U(0))
        | (U(right != U(0)) << U(1))
        | (U(down != U(0)) << U(2))
        | (U(left != U(0)) << U(3))
    )


_LEGAL = [[d for d in range(4) if mask >> d & 1] for mask in range(16)]
CHOICES = np.array([len(moves) for moves in _LEGAL], np.uint64)
"""The number of moves in each mask of legal moves."""
CHOICE = np.array([sum(d << 8 * k for k, d in enumerate(moves)) for moves in _LEGAL], np.uint64)
"""The moves in each mask, one per byte."""


@inline("uint64(uint64, uint64)")
def nth_move(mask: U, k: U) -> U:
    """The k-th move (from 0) in a mask of legal moves."""
    return U((CHOICE[mask] >> (k << U(3))) & U(3))


# -- symmetries ------------------------------------------------------------------------------


@inline("uint64(uint64, int64, int64)")
def transpose(board: U, rows: int, cols: int) -> U:
    """The transposed board, of `cols` rows: its cell (c, r) is this one's (r, c)."""
    if rows != cols:
        out = U(0)
        for r in range(rows):
            for c in range(cols):
                out |= rank_at(board, r * cols + c) << U(4 * (c * rows + r))
        return out
    if rows == 4:  # within 2x2 blocks, then the blocks: two swaps, where the diagonals need three
        inner = (board ^ (board >> U(12))) & U(0x0000_F0F0_0000_F0F0)
        board = board ^ inner ^ (inner << U(12))
        outer = (board ^ (board >> U(24))) & U(0x0000_0000_FF00_FF00)
        return board ^ outer ^ (outer << U(24))
    out = board
    for d in range(1, rows):  # cells (i, i + d) change places with (i + d, i)
        places = U(0)
        for i in range(rows - d):
            places |= U(15) << U(4 * (i * cols + i + d))
        shift = U(4 * d * (rows - 1))
        swap = (board ^ (board >> shift)) & places
        out = out ^ swap ^ (swap << shift)
    return out


@inline("uint64(uint64, int64, int64)")
def mirror(board: U, rows: int, cols: int) -> U:
    """The board with its columns in reverse order."""
    column = U(0)
    for r in range(rows):
        column |= U(15) << U(4 * cols * r)
    out = U(0)
    for c in range(cols):
        out |= ((board >> U(4 * c)) & column) << U(4 * (cols - 1 - c))
    return out


@inline("uint64(uint64, int64, int64)")
def flip(board: U, rows: int, cols: int) -> U:
    """The board with its rows in reverse order."""
    row = (U(1) << U(4 * cols)) - U(1)
    out = U(0)
    for r in range(rows):
        out |= ((board >> U(4 * cols * r)) & row) << U(4 * cols * (rows - 1 - r))
    return out


@inline("uint64(uint64, int64, int64)")
def smallest(board: U, rows: int, cols: int) -> U:
    """The canonical form: the smallest image (`Board.canonical`), without a branch."""
    mirrored = mirror(board, rows, cols)
    best = min(board, mirrored, flip(board, rows, cols), flip(mirrored, rows, cols))
    if rows == cols:
        turned = transpose(board, rows, cols)
        mirrored = mirror(turned, rows, cols)
        best = min(best, turned, mirrored, flip(turned, rows, cols), flip(mirrored, rows, cols))
    return best


@inline("uint64(uint64, int64, int64, int64)")
def image_of(board: U, symmetry: int, rows: int, cols: int) -> U:
    """The image of a board (`Board.image`)."""
    image = board
    if symmetry & 4:
        image = transpose(image, rows, cols)
    if symmetry & 1:
        image = mirror(image, rows, cols)
    if symmetry & 2:
        image = flip(image, rows, cols)
    return image


ON_IMAGE = np.array([[direction_on_image(d, s) for d in range(4)] for s in range(8)], np.int64)
"""The direction on the image, by symmetry and direction on the board."""


# -- sums ------------------------------------------------------------------------------------


@inline("int64(uint64)")
def age(board: U) -> np.int64:
    """The sum of the tiles."""
    total = U(0)
    for cell in range(16):
        total += (U(1) << rank_at(board, cell)) & ~U(1)  # an empty cell counts 0, not 1
    return np.int64(total)


@kernel("void(uint64[::1], int64[::1])")
def write_ages(boards: Words, out: Counts) -> None:
    """Write the age of each board."""
    for i in range(len(boards)):
        out[i] = age(boards[i])


def ages_of(boards: Words) -> Counts:
    """The age of each board."""
    out = np.empty(len(boards), np.int64)
    write_ages(boards, out)
    return out


@inline("int64(uint64, int64)")
def potential(board: U, cells: int) -> np.int64:
    """The sum of tile * (rank - 1) (`Board.merged`). A move adds its reward, a spawned 4 adds 4.

    So the score of a game is the increase, minus 4 for every 4 that spawned.
    """
    total = U(0)
    for cell in range(cells):
        rank = rank_at(board, cell)
        total += ((U(1) << rank) & ~U(1)) * (rank - U(1))
    return np.int64(total)


@inline("int64(uint64)")
def max_rank(board: U) -> np.int64:
    """The largest rank on the board."""
    best = U(0)
    for cell in range(16):
        best = max(best, rank_at(board, cell))
    return np.int64(best)
