"""The arena: many games of a player, on all cores.

Game number i depends on rules, seed, player and i alone: its spawns are those of `Game` with the
same moves, and the player has random words of its own for it. So results do not depend on threads
or order, except for players that look at the clock.

Each thread plays some games side by side, so that the player decides about many boards in one call:
one game at first, and more as long as a step of all of them is quick.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from lab2048 import chance
from lab2048.board import OVERFLOW, table
from lab2048.game import Game, Rules
from lab2048.jit import U
from lab2048.lanes import begin_games, next_words, step_kernel
from lab2048.notation import checked_threads
from lab2048.player import Player

WIDEST = 2048
"""Games that a thread plays side by side at most."""
QUICK = 1e-3
"""Seconds: while a step takes less, more games are put side by side."""


@dataclass(frozen=True, slots=True)
class Played:
    """A game that was played to its end."""

    index: int
    score: int
    max_tile: int
    moves: bytes
    """The directions, one a byte."""


class Lanes:
    """Games side by side, and what has happened in them."""

    def __init__(self, player: Player, seed: int) -> None:
        rules = player.rules
        self.player, self.rules, self.seed = player, rules, seed
        self.step = step_kernel(rules.rows, rules.cols)
        self.four = np.array(chance.four_threshold(rules.p4), np.uint64)
        self.tables = table(rules.cols), table(rules.rows)
        self.state = np.zeros((4, 0), np.uint64)  # boards, words of spawns, legal moves, own words
        self.games = np.zeros(0, np.int64)
        self.scores = np.zeros(0, np.int64)
        self.lengths = np.zeros(0, np.int64)
        self.made = np.zeros((0, 256), np.uint8)  # the moves of each game, as many as its length

    def add(self, indices: list[int]) -> None:
        """Begin more games."""
        state = np.zeros((4, len(indices)), np.uint64)
        rows, cols = self.rules.rows, self.rules.cols
        begin_games(state, U(self.seed), np.array(indices, np.uint64), self.four, rows, cols)
        self.state = np.concatenate([self.state, state], axis=1)
        self.games = np.append(self.games, np.array(indices, np.int64))
        self.scores = np.append(self.scores, np.zeros(len(indices), np.int64))
        self.lengths = np.append(self.lengths, np.zeros(len(indices), np.int64))
        room = np.zeros((len(indices), self.made.shape[1]), np.uint8)
        self.made = np.concatenate([self.made, room])

    def turn(self) -> list[Played]:
        """One move in every game; those that are over then."""
        words = np.empty(len(self.games), np.uint64)
        next_words(self.state[3], words)
        moves = self.player.choose_many(self.state[0], words)
        rewards = np.empty(len(moves), np.int64)
        self.step(self.state[:3], moves, self.four, *self.tables, rewards)
        large = rewards >= OVERFLOW
        self.scores += rewards
        if self.lengths.max() == self.made.shape[1]:
            self.made = np.concatenate([self.made, np.zeros_like(self.made)], axis=1)
        self.made[np.arange(len(moves)), self.lengths] = moves
        self.lengths += 1
        over = (self.state[2] == 0) | large
        return self._take(over, large) if over.any() else []

    def _take(self, over: np.ndarray, large: np.ndarray) -> list[Played]:
        """The games that are over; those with a tile that is too large are first played to it."""
        done = []
        for lane in np.flatnonzero(over).tolist():
            index, made = int(self.games[lane]), self.made[lane, : self.lengths[lane]].tobytes()
            if large[lane]:
                done.append(play_exactly(self.player, self.seed, index, made))
            else:
                ranks = int(self.state[0, lane])
                top = max(ranks >> 4 * cell & 15 for cell in range(self.rules.cells))
                done.append(Played(index, int(self.scores[lane]), 1 << top, made))
        stay = ~over
        self.state = np.ascontiguousarray(self.state[:, stay])
        self.games, self.scores = self.games[stay], self.scores[stay]
        self.made, self.lengths = self.made[stay], self.lengths[stay]
        return done


def play_exactly(player: Player, seed: int, index: int, made: bytes) -> Played:
    """A game on boards without a largest tile, from the moves that were made so far."""
    game = Game(player.rules, seed, index=index)
    for move in made:
        game.play(move)
    key = chance.player_key(game.key)
    while not game.over:
        game.play(player.choose(game.board, chance.word(key, len(game.moves))))
    return Played(index, game.score, game.board.max_tile, bytes(game.moves))


def play_games(
    player: Player, games: Iterator[int], seed: int, threads: int | None = None
) -> Iterator[Played]:
    """Play these games of a seed, and yield each when it is over, in any order.

    Whoever does not want more closes the iterator; games that are not over then are lost.
    """
    seed = chance.checked_seed(seed)
    workers = checked_threads(threads)
    player.prepare()
    done: queue.SimpleQueue[Played | BaseException | None] = queue.SimpleQueue()
    lock, stop = threading.Lock(), threading.Event()

    def take(n: int) -> list[int]:
        with lock:
            return list(islice(games, n))

    def work() -> None:
        try:
            _work(Lanes(player, seed), take, done.put, stop)
        except BaseException as error:
            done.put(error)
        done.put(None)

    crew = [threading.Thread(target=work, daemon=True) for _ in range(workers)]
    for thread in crew:
        thread.start()
    try:
        for _ in crew:
            while (found := done.get()) is not None:
                if isinstance(found, BaseException):
                    raise found
                yield found
    finally:
        stop.set()
        for thread in crew:
            thread.join()


def _work(
    lanes: Lanes,
    take: Callable[[int], list[int]],
    give: Callable[[Played], None],
    stop: threading.Event,
) -> None:
    """Play games until there are no more."""
    width, more = 1, True
    while not stop.is_set():
        room = width - len(lanes.games)
        if room > 0 and more:
            new = take(room)
            more = len(new) == room
            lanes.add(new)
        if not len(lanes.games):
            return
        began = time.thread_time()  # without the time that other threads were at work
        for game in lanes.turn():
            give(game)
        if time.thread_time() - began < QUICK and len(lanes.games) * 2 > width:
            width = min(2 * width, WIDEST)
