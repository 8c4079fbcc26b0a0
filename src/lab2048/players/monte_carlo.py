"""Pure Monte Carlo (Liu's algorithm 2): the move after which random games end best.

    Q(s, a) = mean over n games of the result         each: the move a, a spawn, then random moves

The result is the score from here on, the move's own reward included; or the largest tile of the
last board, or the sum of its tiles. The random games are those of `lab2048.engine.batch`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numba import types

from lab2048.engine.array_types import FLOAT_ROWS, WORD_ROWS, WORDS
from lab2048.engine.arrays import Floats, Words
from lab2048.engine.batch import games_kernel
from lab2048.engine.jit import U, kernel
from lab2048.engine.packed import GOLDEN, age, game_key, max_rank, mix, potential
from lab2048.engine.slides import table
from lab2048.engine.spawns import four_threshold, spawn
from lab2048.players.heuristics import evaluator
from lab2048.players.player import Player, option, ties_option
from lab2048.players.search_step import steps
from lab2048.players.time_limit import check_time, stop_flag

FirstBoards = Callable[[Words, Words, int, Words, Any, Floats, Words], int]
BACKUPS = ("score", "max", "sum")
TOGETHER = 4096
"""The approximate number of games that are played at a time."""


@cache
def boards_kernel(rows: int, cols: int) -> FirstBoards:
    """The kernel that writes the boards that random games begin with."""
    board = steps(rows, cols)
    make_moves = board.make_moves

    @kernel(types.int64(WORDS, WORDS, types.int64, WORDS, board.by, FLOAT_ROWS, WORD_ROWS))
    def first_boards(
        states: Words, words: Words, rollouts: int, four: Words, by: Any, out: Floats, games: Words
    ) -> int:
        """Write the boards that games begin with, after each move of each state, and their keys.

        `out` gets the reward of each legal move, NaN for the others. Returns the number of games.
        """
        moved, gains = np.empty(4, np.uint64), np.empty(4, np.float64)
        found = 0
        for i in range(len(states)):
            make_moves(states[i], by, moved, gains)
            for direction in range(4):
                out[i, direction] = gains[direction] if moved[direction] else np.nan
                if not moved[direction]:
                    continue
                for number in range(rollouts):
                    key = game_key(words[i], U(4 * number + direction)) + GOLDEN
                    games[0, found] = key  # its first word has drawn the spawn
                    games[1, found], _ = spawn(moved[direction], mix(key), four, rows, cols)
                    found += 1
        return found

    return first_boards


@kernel("float64(uint64, uint64, uint64, int64)")
def result_of(begin: U, last: U, fours: U, backup: int) -> float:
    """The result of a game from one board to another."""
    if backup == 0:
        return np.float64(potential(last, 16) - potential(begin, 16)) - 4 * np.float64(fours)
    if backup == 1:
        return np.float64(1 << max_rank(last))
    return np.float64(age(last))


@kernel("void(float64[:, ::1], int64, int64, uint64[::1], uint64[::1], uint64[:, ::1])")
def mean_results(
    out: Floats, rollouts: int, backup: int, begins: Words, last: Words, counts: Words
) -> None:
    """Write the mean result of the games after each legal move, in place of its reward."""
    game = 0
    for i in range(len(out)):
        for direction in range(4):
            if np.isnan(out[i, direction]):
                continue
            total = 0.0
            for _ in range(rollouts):
                total += result_of(begins[game], last[game], counts[game, 1], backup)
                game += 1
            out[i, direction] = total / rollouts + (out[i, direction] if backup == 0 else 0.0)


@dataclass(frozen=True, eq=False)
class MonteCarlo(Player):
    """The move after which random games end best."""

    rollouts: int = option(50, "random games after each move", low=1, high=1_000_000)
    backup: str = option(
        "score", "what counts: the score, the largest tile, or the sum of tiles", choices=BACKUPS
    )
    ties: str = ties_option()

    name = "montecarlo"
    about = "the move after which random games end best (pure Monte Carlo)"
    meaning = "mean result of random games after the move"

    @property
    def draws(self) -> bool:
        return True

    @property
    def points(self) -> bool:
        return self.backup == "score"

    def values_many(self, boards: Words, words: Words) -> Floats:
        out = np.empty((len(boards), 4))
        size = max(1, TOGETHER // (4 * self.rollouts))
        for begin in range(0, len(boards), size):
            part = slice(begin, begin + size)
            self._values(boards[part], words[part], out[part])
        return out

    def _values(self, boards: Words, words: Words, out: Floats) -> None:
        """Write the values of boards whose games are all in memory together."""
        rules, rollouts = self.rules, self.rollouts
        by = evaluator("zero", rules)
        four = four_threshold(rules)
        games = np.empty((2, 4 * rollouts * len(boards)), np.uint64)
        first_boards = boards_kernel(rules.rows, rules.cols)
        found = first_boards(boards, words, rollouts, four, by, out, games)
        keys, begins = games[0, :found], games[1, :found]
        last, counts = np.empty(found, np.uint64), np.empty((found, 2), np.uint64)
        play = games_kernel(rules.rows, rules.cols)
        stop_flag()  # the time counts from here
        for begin in range(0, found, TOGETHER):
            check_time()
            part = slice(begin, begin + TOGETHER)
            tables = four, table(rules.cols), table(rules.rows)
            play(keys[part], begins[part], *tables, last[part], counts[part])
        mean_results(out, rollouts, BACKUPS.index(self.backup), begins, last, counts)
