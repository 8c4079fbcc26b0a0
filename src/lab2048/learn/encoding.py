"""Boards as the input of neural networks: the ranks of cells, and the images of a board.

A network turns ranks into one-hot planes itself: plane k is 1 where a cell holds 2**k, plane 0
where it is empty. There is one plane per rank that the board can have, and at most sixteen.
"""

from __future__ import annotations

import numpy as np

from lab2048.engine.arrays import Counts, Floats, Ints, Slides, Words
from lab2048.engine.jit import U, kernel
from lab2048.engine.packed import count, empty_cells, image_of, lowest_cell, rank_at
from lab2048.engine.slides import slide, table
from lab2048.game import MAX_PACKED_RANK, Rules


def planes(rules: Rules) -> int:
    """Return the number of planes of a board: n cells hold tiles up to 2**(n + 1), or 32768."""
    return min(rules.cells + 1, MAX_PACKED_RANK) + 1


@kernel("void(uint64[::1], int64[::1], uint64[::1], int64, int64)")
def write_images(boards: Words, which: Counts, out: Words, rows: int, cols: int) -> None:
    """Write an image of each board, by symmetry number `which`."""
    for i in range(len(boards)):
        out[i] = image_of(boards[i], which[i], rows, cols)


@kernel("void(uint64[::1], uint64[::1], int64[::1], int64, int64)")
def turn_upright(boards: Words, out: Words, which: Counts, rows: int, cols: int) -> None:
    """Write the largest image of each board, as packed integers compare, and its symmetry.

    So the last corner has the largest tile of all corners, and boards that are images of each other
    become the same board.
    """
    for i in range(len(boards)):
        out[i] = boards[i]
        which[i] = 0
        for symmetry in range(1, 8 if rows == cols else 4):
            image = image_of(boards[i], symmetry, rows, cols)
            if image > out[i]:
                out[i] = image
                which[i] = symmetry


@kernel("void(uint64[::1], int32[:, ::1], int64)")
def write_ranks(boards: Words, out: Ints, largest: int) -> None:
    """Write the rank of every cell, clamped to `largest`."""
    for i in range(len(boards)):
        for cell in range(out.shape[1]):
            out[i, cell] = min(int(rank_at(boards[i], cell)), largest)


def upright(boards: Words, rules: Rules) -> tuple[Words, Counts]:
    """Return the largest image of each board, and the symmetry that leads to it."""
    out, which = np.empty_like(boards), np.empty(len(boards), np.int64)
    turn_upright(boards, out, which, rules.rows, rules.cols)
    return out, which


def images(boards: Words, which: Counts, rules: Rules) -> Words:
    """Return an image of each board, by symmetry number `which`."""
    out = np.empty_like(boards)
    write_images(boards, which, out, rules.rows, rules.cols)
    return out


def ranks(boards: Words, rules: Rules) -> Ints:
    """Return the ranks of all cells, one row per board."""
    out = np.empty((len(boards), rules.cells), np.int32)
    write_ranks(boards, out, planes(rules) - 1)
    return out


@kernel("void(uint64[::1], int64[::1], uint32[::1], uint32[::1], int64, int64, uint64[::1])")
def write_slid(
    boards: Words, moves: Counts, across: Slides, down: Slides, rows: int, cols: int, out: Words
) -> None:
    """Write the afterstate of one legal move per board."""
    for i in range(len(boards)):
        out[i] = slide(boards[i], U(moves[i]), across, down, rows, cols)


def slid(boards: Words, moves: Counts, rules: Rules) -> Words:
    """Return the afterstate of one legal move per board."""
    out = np.empty_like(boards)
    write_slid(boards, moves, table(rules.cols), table(rules.rows), rules.rows, rules.cols, out)
    return out


@kernel("int64(uint64[::1], float64, int64, int64, uint64[::1], float64[::1], int64[::1])")
def write_spawns(
    afters: Words, p4: float, rows: int, cols: int, out: Words, chances: Floats, owners: Counts
) -> int:
    """Write all states that can follow the afterstates; return how many there are.

    `chances` gets the probability of each, `owners` the index of its afterstate.
    """
    found = 0
    for i in range(len(afters)):
        empty = empty_cells(afters[i], rows, cols)
        cells = np.float64(count(empty))
        while empty:
            cell = lowest_cell(empty)
            for rank in range(1, 3):
                out[found] = afters[i] | (cell * U(rank))
                chances[found] = (p4 if rank == 2 else 1.0 - p4) / cells
                owners[found] = i
                found += 1
            empty ^= cell
    return found


def spawns(afters: Words, rules: Rules) -> tuple[Words, Floats, Counts]:
    """Return all states that can follow the afterstates, their probabilities, and their owners.

    The owner of a state is the index of its afterstate.
    """
    room = 2 * rules.cells * len(afters)
    out, chances, owners = np.empty(room, np.uint64), np.empty(room), np.empty(room, np.int64)
    size = write_spawns(afters, rules.p4, rules.rows, rules.cols, out, chances, owners)
    return out[:size], chances[:size], owners[:size]
