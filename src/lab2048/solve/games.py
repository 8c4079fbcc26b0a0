"""Many games at once, played perfectly with a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lab2048 import chance
from lab2048.board import GOLDEN, Words, game_key, mix, slide, spawn, start_board
from lab2048.board import Table as Slides
from lab2048.board import table as slides
from lab2048.jit import U, kernel
from lab2048.solve.table import Floats, Table

Counts = NDArray[np.int64]


@cache
def start_kernel(rows: int, cols: int) -> Callable[..., None]:
    """The kernel that starts games on one board."""

    @kernel("void(uint64, uint64[::1], uint64[::1], uint64[::1])")
    def start(seed: U, four: Words, keys: Words, boards: Words) -> None:
        """Write the key and the first board of game 0, 1, ... of a seed."""
        for i in range(len(boards)):
            keys[i] = game_key(seed, U(i))
            boards[i], _ = start_board(keys[i], four, rows, cols)

    return start


@cache
def turn_kernel(rows: int, cols: int) -> Callable[..., None]:
    """The kernel that makes one move in many games on one board."""

    @kernel(
        "void(uint64[::1], int64[::1], uint64[::1], uint64, uint32[::1], uint32[::1], uint64[::1])"
    )
    def turn(
        boards: Words, moves: Counts, keys: Words, t: U, across: Slides, down: Slides, four: Words
    ) -> None:
        """Make the moves, and spawn what word `t` of each game draws."""
        for i in range(len(boards)):
            after = slide(boards[i], U(moves[i]), across, down, rows, cols)
            boards[i], _ = spawn(after, mix(keys[i] + t * GOLDEN), four, rows, cols)

    return turn


class Turn(NamedTuple):
    """All games that have come to one move number."""

    boards: Words
    q: Floats
    """Of the four moves; NaN if one is illegal."""
    over: int
    """How many games ended before this move."""


def perfect_games(table: Table, games: int, seed: int) -> Iterator[Turn]:
    """Play games of `seed`; equally good moves are chosen by chance, evenly."""
    rules = table.rules
    four = np.array(chance.four_threshold(rules.p4), np.uint64)
    keys, boards = np.empty(games, np.uint64), np.empty(games, np.uint64)
    start_kernel(rules.rows, rules.cols)(U(chance.checked_seed(seed)), four, keys, boards)
    turn = turn_kernel(rules.rows, rules.cols)
    rng = np.random.default_rng(seed)
    t = 3  # the words 1 and 2 have drawn the start
    while len(boards):
        q = table.probe_many(boards).q
        assert q is not None
        going = ~np.isnan(q).all(axis=1)
        yield Turn(boards[going], q[going], int(np.count_nonzero(~going)))
        boards, keys, q = boards[going], keys[going], q[going]
        best = np.nanmax(q, axis=1, keepdims=True) if len(q) else q
        draw = np.where(best - q <= table.tolerance(best), rng.random(q.shape), -1.0)
        moves = draw.argmax(axis=1)
        turn(boards, moves, keys, U(t), slides(rules.cols), slides(rules.rows), four)
        t += 1
