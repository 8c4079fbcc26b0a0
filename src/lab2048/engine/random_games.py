"""Whole games of the random player, on all cores.

A game's score is not summed move by move: it is the sum of tile * (rank - 1) on its last board
minus that on its first, minus 4 for every 4 that spawned. Its age must have grown by the sum of the
spawned tiles; if it has not, two 32768s have merged, and the game is played again, exactly, as a
`lab2048.game.Game`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from threading import Event
from typing import Any

import numpy as np

from lab2048.engine.arrays import Counts
from lab2048.engine.batch import game_keys, games_kernel, summarise
from lab2048.engine.jit import U
from lab2048.engine.slides import table
from lab2048.engine.spawns import four_threshold
from lab2048.game import MAX_PACKED_RANK, Board, Game, Rules, random_move, randomness
from lab2048.game.notation import checked_threads
from lab2048.tabular import Grid, Tabular, shown

_BLOCK = 16384


@dataclass(frozen=True, eq=False)
class RandomGames(Tabular):
    """The results of random games, as arrays in the order of the games.

    >>> from lab2048 import Rules, random_games
    >>> found = random_games(Rules(2, 2), 1000, seed=1)
    >>> len(found.score), int(found.score.min()) >= 0
    (1000, True)
    """

    score: Counts
    moves: Counts
    max_tile: Counts

    def __iter__(self) -> Iterator[Counts]:
        """Iterate over the three arrays, in the order of the fields."""
        return iter((self.score, self.moves, self.max_tile))

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per game."""
        columns = zip(*(each.tolist() for each in self), strict=True)
        return [
            {"game": number, "score": score, "moves": moves, "max_tile": tile}
            for number, (score, moves, tile) in enumerate(columns)
        ]

    def grid(self) -> Grid:
        """Return the mean, median, minimum and maximum over all games."""
        kinds = (np.mean, np.median, np.min, np.max) if len(self.score) else ()
        rows = [
            [name, *(shown(of(array).item()) for of in kinds)] for name, array in vars(self).items()
        ]
        return Grid(["figure", *("mean", "median", "least", "most")[: len(kinds)]], rows)


def random_games(
    rules: Rules,
    games: int,
    seed: int = 0,
    *,
    first: int = 0,
    start: Board | None = None,
    threads: int | None = None,
    progress: Callable[[int], object] | None = None,
) -> RandomGames:
    """Play whole games of the random player, which is uniform over the legal moves.

    Game number `first` + i depends only on the rules, the start, the seed and its number, and is
    the game that `lab2048.game.Game` plays with the same moves. `start` replaces the first two
    tiles. `progress` is called in this thread with the number of games just finished.

    >>> results = random_games(Rules(4, 4), 1000, seed=1)
    >>> int(results.max_tile.max())
    512
    """
    seed = randomness.checked_seed(seed)
    games, first = randomness.checked_seed(games, "games"), randomness.checked_seed(first, "first")
    randomness.checked_seed(first + games, "the number after the last game")
    workers = checked_threads(threads)
    if start is not None:
        rules.check(start)
    games_kernel(rules.rows, rules.cols)  # compile it once, before all threads need it
    size = max(1, min(_BLOCK, -(-games // (4 * workers))))
    out = np.zeros((games, 4), np.int64)

    stop = Event()

    def block(begin: int) -> int:
        part = out[begin : begin + size]
        _play_block(rules, seed, first + begin, start, part, stop)
        return len(part)

    with ThreadPoolExecutor(workers) as pool:
        try:
            for done in as_completed([pool.submit(block, i) for i in range(0, games, size)]):
                finished = done.result()
                if progress is not None:
                    progress(finished)
        except BaseException:
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise
    ranks = out[:, 2]
    return RandomGames(out[:, 0], out[:, 1], np.left_shift(1, ranks) * (ranks > 0))


def _play_block(
    rules: Rules, seed: int, first: int, start: Board | None, out: Counts, stop: Event
) -> None:
    """Play games first, first + 1, ... and write them to the rows of `out`."""
    if start is not None and (max(start.ranks) > MAX_PACKED_RANK or start.is_terminal):
        outgrown = list(range(len(out)))
    else:
        begin = U(start.packed if start is not None else 0)
        last, counts = np.empty(len(out), np.uint64), np.empty((len(out), 2), np.uint64)
        four = four_threshold(rules)
        play = games_kernel(rules.rows, rules.cols)
        keys, begins = np.empty(len(out), np.uint64), np.array([begin])
        game_keys(U(seed), U(first), keys)
        play(keys, begins, four, table(rules.cols), table(rules.rows), last, counts)
        summarise(last, counts, begin, U(0 if begin else 2), out)
        outgrown = np.flatnonzero(out[:, 3]).tolist()
    for i in outgrown:
        if stop.is_set():
            return
        out[i] = _play_exactly(rules, seed, first + i, start)


def _play_exactly(
    rules: Rules, seed: int, index: int, start: Board | None
) -> tuple[int, int, int, bool]:
    """Play one game of the random player on boards that are not packed; return a row of `out`."""
    game = Game(rules, seed, index=index, start=start)
    while not game.over:
        game.play(random_move(game.board, game.own_word))
    return game.score, len(game.moves), max(game.board.ranks), True
