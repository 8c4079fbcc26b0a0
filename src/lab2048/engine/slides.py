"""Slide packed boards: lookup tables of all lines of a length, and the kernels that use them.

The basic `table` has three parts of 16**length entries each: the line slid towards its first cell,
slid towards its last, and the reward. Two 32768s that merge do not fit a nibble: the reward then
has the bit OVERFLOW and the slid line must not be used.

There are three tables, because lookups in a smaller one are faster: `table` for one move in a
known direction; `pairs` for both sides at once, in the solver and in searches, where most moves
need no reward; `lines` for both sides and the reward, where every move needs it.

`rows` and `cols` come last, as in `packed`.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from lab2048.engine.arrays import Pairs, Slides, Words
from lab2048.engine.jit import IN_PYTHON, U, fragment, inline, kernel
from lab2048.engine.packed import rank_at, transpose

OVERFLOW = 1 << 28
"""Set in a reward when two 32768s merge: the game has to continue as a `lab2048.game.Board`."""
LONGEST_TABLE = 4 if IN_PYTHON else 5
"""Longer lines are slid cell by cell: a table for length 6 would take 200 MB."""


@kernel("Tuple((uint64, uint64))(uint64, int64)")
def slide_line(line: U, length: int) -> tuple[U, U]:
    """Slide one line towards its first cell, cell by cell; return it and the reward."""
    slid = U(0)
    reward = U(0)
    filled = U(0)  # bits of `slid` in use
    last = U(0)  # rank that the next tile may merge with, 0 if none
    for cell in range(length):
        rank = rank_at(line, cell)
        if rank == U(0):
            continue
        if rank == last:
            if rank == U(15):
                reward |= U(OVERFLOW)
            else:
                slid += U(1) << (filled - U(4))
            reward += U(2) << rank
            last = U(0)
        else:
            slid |= rank << filled
            filled += U(4)
            last = rank
    return slid, reward


@kernel("uint64(uint64, int64)")
def reverse_line(line: U, length: int) -> U:
    """One line in reverse order."""
    out = U(0)
    for cell in range(length):
        out |= rank_at(line, cell) << U(4 * (length - 1 - cell))
    return out


@kernel("void(uint32[::1], int64)")
def fill_table(table: Slides, length: int) -> None:
    """Write the table of all lines of a length."""
    lines = 1 << (4 * length)
    for line in range(lines):
        slid, reward = slide_line(U(line), length)
        back = reverse_line(U(line), length)
        table[line] = slid
        table[lines + np.int64(back)] = reverse_line(slid, length)
        table[2 * lines + line] = reward


@cache
def table(length: int) -> Slides:
    """The basic table of all lines of a length; empty if they are slid cell by cell."""
    if length > LONGEST_TABLE:
        return np.zeros(0, np.uint32)
    made = np.empty(3 << (4 * length), np.uint32)
    fill_table(made, length)
    return made


@inline("uint64(uint64, uint64, uint64, uint32[::1], int64)")
def slid_row(row: U, side: U, part: U, table: Slides, cols: int) -> U:
    """Slide one row; `part` is where that side begins in the table."""
    if cols <= LONGEST_TABLE:
        return U(table[part | row])
    if side != U(0):
        return reverse_line(slide_line(reverse_line(row, cols), cols)[0], cols)
    return slide_line(row, cols)[0]


@inline("uint64(uint64, uint64, uint32[::1], int64, int64)")
def slide_rows(board: U, side: U, table: Slides, rows: int, cols: int) -> U:
    """Slide all rows to their first cell (side 0) or their last (side 1)."""
    line = (U(1) << U(4 * cols)) - U(1)
    part = side << U(4 * cols)
    out = U(0)
    for r in range(rows):
        row = (board >> U(4 * cols * r)) & line
        out |= slid_row(row, side, part, table, cols) << U(4 * cols * r)
    return out


@inline("uint64(uint64, uint32[::1], int64, int64)")
def reward_rows(board: U, table: Slides, rows: int, cols: int) -> U:
    """The reward of sliding all rows, to either side; see OVERFLOW."""
    line = (U(1) << U(4 * cols)) - U(1)
    part = U(2) << U(4 * cols)
    reward = U(0)
    overflow = U(0)
    for r in range(rows):
        row = (board >> U(4 * cols * r)) & line
        gained = U(table[part + row]) if cols <= LONGEST_TABLE else slide_line(row, cols)[1]
        overflow |= gained & U(OVERFLOW)
        reward += gained & ~U(OVERFLOW)
    return reward | overflow


@cache
def pairs(length: int) -> Pairs:
    """The table of all lines of a length, slid to both sides; a stub if slid cell by cell.

    An entry has the line slid to its first cell in the low half, slid to its last in the high half.
    """
    if length > LONGEST_TABLE:
        return np.zeros(1, np.uint64)
    lines = 16**length
    slid = table(length)
    first, last = slid[:lines].astype(np.uint64), slid[lines : 2 * lines].astype(np.uint64)
    if length > 4:
        return first | (last << U(32))
    return (first | (last << U(16))).astype(np.uint32)


@kernel("uint64(uint64, int64)")
def slid_pair(line: U, length: int) -> U:
    """The entry of a line that is too long for a table."""
    first = slide_line(line, length)[0]
    last = reverse_line(slide_line(reverse_line(line, length), length)[0], length)
    return first | (last << U(32))


@fragment
def slide_both(board: U, both: Pairs, rows: int, cols: int) -> tuple[U, U]:
    """Slide all rows to their first cell, and to their last. `both` is of uint32 or uint64."""
    line = (U(1) << U(4 * cols)) - U(1)
    half = U(16 if cols <= 4 else 32)
    first = U(0)
    last = U(0)
    for r in range(rows):
        place = U(4 * cols * r)
        row = (board >> place) & line
        pair = U(both[row]) if cols <= LONGEST_TABLE else slid_pair(row, cols)
        first |= (pair & line) << place
        last |= (pair >> half) << place
    return first, last


@cache
def lines(length: int) -> Words:
    """The table of all lines of a length, with slides and reward; a stub if slid cell by cell.

    An entry has, from the lowest bit: the line slid to its first cell, slid to its last, reward.
    """
    if length > LONGEST_TABLE:
        return np.zeros(1, np.uint64)
    n, made = U(4 * length), table(length).astype(np.uint64).reshape(3, -1)
    found: Words = made[0] | (made[1] << n) | ((made[2] & ~U(OVERFLOW)) << (n + n))
    return found


@fragment
def slide_lines(board: U, lines: Words, rows: int, cols: int) -> tuple[U, U, U]:
    """Slide all rows to their first cell, and to their last; return both, and the reward of either.

    Two 32768s merge into one 32768: a nibble holds nothing larger.
    """
    line = (U(1) << U(4 * cols)) - U(1)
    first = last = gained = U(0)
    for r in range(rows):
        place = U(4 * cols * r)
        row = (board >> place) & line
        if cols <= LONGEST_TABLE:
            entry = lines[row]
            gained += entry >> U(8 * cols)
        else:
            entry = slid_pair(row, cols)
            gained += slide_line(row, cols)[1] & ~U(OVERFLOW)
        first |= (entry & line) << place
        last |= ((entry >> U(4 * cols if cols <= LONGEST_TABLE else 32)) & line) << place
    return first, last, gained


@inline("uint64(uint64, uint64, uint32[::1], uint32[::1], int64, int64)")
def slide(board: U, direction: U, across: Slides, down: Slides, rows: int, cols: int) -> U:
    """The afterstate of a move, or the board itself if it is illegal.

    `across` is the table of the rows, `down` that of the columns.
    """
    side = ((direction + U(1)) >> U(1)) & U(1)  # right and down go to the last cell
    if direction & U(1):
        return slide_rows(board, side, across, rows, cols)
    turned = transpose(board, rows, cols)
    return transpose(slide_rows(turned, side, down, cols, rows), cols, rows)


@inline("uint64(uint64, uint64, uint32[::1], uint32[::1], int64, int64)")
def reward(board: U, direction: U, across: Slides, down: Slides, rows: int, cols: int) -> U:
    """The reward of a move, with the bit OVERFLOW where `slide` cannot hold the afterstate."""
    if direction & U(1):
        return reward_rows(board, across, rows, cols)
    return reward_rows(transpose(board, rows, cols), down, cols, rows)
