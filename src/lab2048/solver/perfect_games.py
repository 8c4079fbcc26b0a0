"""Play many games at once, perfectly, with a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

import numpy as np

from lab2048.engine.arrays import Counts, Floats, Slides, Words
from lab2048.engine.jit import U, kernel
from lab2048.engine.packed import GOLDEN, age, game_key, mix
from lab2048.engine.slides import slide
from lab2048.engine.slides import table as slides
from lab2048.engine.spawns import four_threshold, spawn, start_board
from lab2048.game import randomness
from lab2048.solver.table import Table


@cache
def start_kernel(rows: int, cols: int) -> Callable[..., None]:
    """The kernel that starts games on one board."""

    @kernel("void(uint64, uint64[::1], uint64[::1], int64[::1], uint64[::1])")
    def start(seed: U, four: Words, boards: Words, ages: Counts, sources: Words) -> None:
        """Write the first board of game 0, 1, ... of a seed, its age and its source of words."""
        for i in range(len(boards)):
            key = game_key(seed, U(i))
            boards[i], _ = start_board(key, four, rows, cols)
            ages[i] = age(boards[i])
            sources[i] = key + U(3) * GOLDEN  # words 1 and 2 have drawn the start

    return start


@cache
def turn_kernel(rows: int, cols: int) -> Callable[..., None]:
    """The kernel that makes one move in some games on one board."""

    @kernel(
        "void(int64[::1], int64[::1], uint64[::1], int64[::1], uint64[::1], uint32[::1], "
        "uint32[::1], uint64[::1])"
    )
    def turn(
        games: Counts,
        moves: Counts,
        boards: Words,
        ages: Counts,
        sources: Words,
        across: Slides,
        down: Slides,
        four: Words,
    ) -> None:
        """Make a move in each game, and draw the spawn with its next random word."""
        for i in range(len(games)):
            game = games[i]
            after = slide(boards[game], U(moves[i]), across, down, rows, cols)
            boards[game], rank = spawn(after, mix(sources[game]), four, rows, cols)
            ages[game] += 1 << np.int64(rank)
            sources[game] += GOLDEN

    return turn


class Turn(NamedTuple):
    """All games that have reached one age."""

    age: int
    made: Counts
    """The number of moves made in each."""
    q: Floats
    """The values of the four moves of each; NaN if illegal, as all are where a game is over."""


def perfect_games(table: Table, games: int, seed: int) -> Iterator[Turn]:
    """Play games of `seed`, choosing uniformly at random among equally good moves.

    The games of the least age move first, so that layers of the table are needed one after another.
    """
    rules = table.rules
    four = four_threshold(rules)
    boards, sources = np.empty(games, np.uint64), np.empty(games, np.uint64)
    made, ages = np.zeros(games, np.int64), np.empty(games, np.int64)
    start_kernel(rules.rows, rules.cols)(
        U(randomness.checked_seed(seed)), four, boards, ages, sources
    )
    turn = turn_kernel(rules.rows, rules.cols)
    rng = np.random.default_rng(seed)
    present = 4
    while (ages >= present).any():  # a game that is over stays at its age
        here = np.flatnonzero(ages == present)
        q = table.probe_many(boards[here]).q
        assert q is not None
        yield Turn(present, made[here], q)
        going = ~np.isnan(q).all(axis=1)
        here, q = here[going], q[going]
        best = np.nanmax(q, axis=1, keepdims=True) if len(q) else q
        draw = np.where(best - q <= table.tolerance(best), rng.random(q.shape), -1.0)
        moves = draw.argmax(axis=1)
        turn(here, moves, boards, ages, sources, slides(rules.cols), slides(rules.rows), four)
        made[here] += 1
        present += 2
