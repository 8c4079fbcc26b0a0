"""The choice of a move by values: the best moves, and how ties are broken."""

from __future__ import annotations

import numpy as np

from lab2048.engine.arrays import Counts, Flags, Floats, Words
from lab2048.engine.jit import U, kernel
from lab2048.engine.packed import CHOICES, bounded, legal, nth_move
from lab2048.game import Rules


@kernel("int64(float64[::1], float64)")
def best_of(values: Floats, tie: float) -> int:
    """The mask of the best moves, to within `tie` (`Player.tie`); 0 if none is legal."""
    best = -np.inf
    for direction in range(4):
        if not np.isnan(values[direction]):
            best = max(best, values[direction])
    slack = tie * max(abs(best), 1.0) if best > -np.inf else 0.0
    mask = 0
    for direction in range(4):
        if values[direction] >= best - slack:
            mask |= 1 << direction
    return mask


@kernel("void(float64[:, ::1], uint64[::1], boolean, float64, int64[::1])")
def pick_moves(values: Floats, words: Words, split: bool, tie: float, moves: Counts) -> None:
    """Write a best move of each row: the first, or one drawn by a word; -1 if none is legal."""
    for i in range(len(values)):
        mask = best_of(values[i], tie)
        left = np.int64(0)
        if split and mask:
            left = np.int64(bounded(words[i], CHOICES[mask])[0])
        moves[i] = -1 if mask == 0 else np.int64(nth_move(U(mask), U(left)))


def pick(values: Floats, words: Words, split: bool, tie: float) -> Counts:
    """A best move of each row of values: the first, or one drawn by a word; -1 if none is legal."""
    moves = np.empty(len(values), np.int64)
    pick_moves(values, words, split, tie, moves)
    return moves


@kernel("void(float64[:, ::1], boolean, float64, float64[:, ::1])")
def share_out(values: Floats, split: bool, tie: float, out: Floats) -> None:
    """Write the probability of each move if a best one is made; see `shares`."""
    for i in range(len(values)):
        mask = best_of(values[i], tie)
        share = 1.0 / np.float64(CHOICES[mask]) if split and mask else 1.0
        for direction in range(4):
            chosen = (mask >> direction) & 1
            out[i, direction] = share if chosen else 0.0
            if chosen and not split:
                mask = 0


def shares(values: Floats, split: bool, tie: float) -> Floats:
    """The probability of each move if a best one is made: the first, or each equally often."""
    out = np.empty(values.shape)
    share_out(values, split, tie, out)
    return out


@kernel("void(uint64[::1], uint64[::1], int64, int64)")
def legal_masks(boards: Words, masks: Words, rows: int, cols: int) -> None:
    """Write the legal moves of each board: bit d for direction d."""
    for i in range(len(boards)):
        masks[i] = legal(boards[i], rows, cols)


def legal_moves(boards: Words, rules: Rules) -> Flags:
    """Which of the four moves are legal on each board.

    >>> from lab2048 import Board
    >>> legal_moves(np.array([Board.parse("2 4 / . .").packed], np.uint64), Rules(2, 2)).tolist()
    [[False, False, True, False]]
    """
    masks = np.empty_like(boards)
    legal_masks(boards, masks, rules.rows, rules.cols)
    return np.asarray((masks[:, None] >> np.arange(4, dtype=np.uint64)) & np.uint64(1) == 1)
