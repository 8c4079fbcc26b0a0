"""The arena: many games of a player, on all cores.

Game number i depends only on rules, seed, player and i: its spawns are those of `Game` with the
same moves, and the player draws from a random stream of its own for each game. So results do not
depend on threads or order, except for players with a time limit.

Each thread plays several games side by side, so that the player chooses moves for many boards in
one call: at first as many games as the player asks for (`Player.together`), then more, as long as a
step of all of them is quick.
"""

from __future__ import annotations

import math
import queue
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import islice
from operator import length_hint
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lab2048.engine.arrays import Bytes, Counts, Flags, Slides, Words
from lab2048.engine.batch import begin_games, next_words, step_kernel
from lab2048.engine.intrinsics import lowest_bit
from lab2048.engine.jit import U, kernel
from lab2048.engine.packed import GOLDEN, max_rank, mix
from lab2048.engine.slides import OVERFLOW, slide, table
from lab2048.engine.spawns import four_threshold, spawn
from lab2048.game import MAX_PACKED_RANK, Board, Game, Rules, randomness
from lab2048.game.notation import checked_threads
from lab2048.game.record import Record
from lab2048.measure.journal import Journal, Played, read_journal
from lab2048.players.player import Player, PlayerError
from lab2048.tabular import Tabular

WIDEST = 2048
"""Maximum number of games that a thread plays side by side."""
AT_ONCE = 256
"""Maximum number of moves in each game per call of `Player.play_on`."""
QUICK = 1e-3
"""Seconds: a thread plays more games side by side while a step takes less."""


class OpenGames:
    """Games in progress, side by side, with their scores and moves so far."""

    def __init__(self, player: Player, seed: int) -> None:
        rules = player.rules
        self.player, self.rules, self.seed = player, rules, seed
        self.step = step_kernel(rules.rows, rules.cols)
        self.four = four_threshold(rules)
        self.tables = table(rules.cols), table(rules.rows)
        self.state = np.zeros((4, 0), np.uint64)  # boards, words of spawns, legal moves, own words
        self.games = np.zeros(0, np.int64)
        self.scores = np.zeros(0, np.int64)
        self.lengths = np.zeros(0, np.int64)
        self.made = np.zeros((0, 256), np.uint8)  # moves of each game, valid up to its length

    def add(self, indices: list[int]) -> None:
        """Start the games with these numbers."""
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
        """Make one or more moves in every game. Return the games that have ended."""
        results = np.empty((len(self.games), 3), np.int64)
        moves = np.empty((len(self.games), AT_ONCE), np.uint8)
        if self.player.play_on(self.state, self.four, moves, results):
            return self._played_on(moves, results)
        return self._one_move()

    def _played_on(self, moves: Bytes, results: Counts) -> list[Played]:
        """Record the moves that the player made. Return the games that have ended."""
        self._make_room(AT_ONCE)
        for lane, (count, reward, _) in enumerate(results.tolist()):
            length = self.lengths[lane]
            self.made[lane, length : length + count] = moves[lane, :count]
            self.scores[lane] += reward
        self.lengths += results[:, 0]
        large = results[:, 2] != 0
        over = (self.state[2] == 0) | large
        return self._take(over, large) if over.any() else []

    def _make_room(self, moves: int) -> None:
        """Make room to record `moves` more moves of each game."""
        while self.lengths.max() + moves > self.made.shape[1]:
            self.made = np.concatenate([self.made, np.zeros_like(self.made)], axis=1)

    def _one_move(self) -> list[Played]:
        """Make one move in every game. Return the games that have ended."""
        words = np.empty(len(self.games), np.uint64)
        next_words(self.state[3], words)
        moves = self.player.choose_many(self.state[0], words)
        if moves.min() < 0:
            board = Board.from_packed(
                int(self.state[0, moves.argmin()]), self.rules.rows, self.rules.cols
            )
            raise PlayerError(f"{self.player.spec} makes no move on {board}")
        rewards = np.empty(len(moves), np.int64)
        self.step(self.state[:3], moves, self.four, *self.tables, rewards)
        large = rewards >= OVERFLOW
        self.scores += rewards
        self._make_room(1)
        self.made[np.arange(len(moves)), self.lengths] = moves
        self.lengths += 1
        over = (self.state[2] == 0) | large
        return self._take(over, large) if over.any() else []

    def _take(self, over: Flags, large: Flags) -> list[Played]:
        """Remove and return the games in `over`; those in `large` are first finished unpacked.

        A game is in `large` when its next tile does not fit a packed board.
        """
        done = []
        for lane in np.flatnonzero(over).tolist():
            index, made = int(self.games[lane]), self.made[lane, : self.lengths[lane]].tobytes()
            if large[lane]:
                done.append(play_exactly(self.player, self.seed, index, made))
            else:
                top = 1 << int(max_rank(self.state[0, lane]))
                done.append(Played(index, int(self.scores[lane]), top, made))
        stay = ~over
        self.state = np.ascontiguousarray(self.state[:, stay])
        self.games, self.scores = self.games[stay], self.scores[stay]
        self.made, self.lengths = self.made[stay], self.lengths[stay]
        return done


def play_exactly(player: Player, seed: int, index: int, made: bytes) -> Played:
    """Finish a game on unpacked boards, which have no largest tile, after the moves `made`."""
    game = Game(player.rules, seed, index=index)
    for move in made:
        game.play(move)
    while not game.over:
        game.play(player.choose(game.board, game.own_word))
    return Played(index, game.score, game.board.max_tile, bytes(game.moves))


def prepare(player: Player) -> None:
    """Compile and load what games of a player need."""
    step_kernel(player.rules.rows, player.rules.cols)
    player.prepare()


def play_games(
    player: Player, games: Iterator[int], seed: int, threads: int | None = None
) -> Generator[Played, None, None]:
    """Play these games of a seed, and yield each as it ends, in any order.

    Close the generator to stop early; unfinished games are lost.
    """
    seed = randomness.checked_seed(seed)
    workers = checked_threads(threads)
    if not player.parallel:
        workers = 1
    prepare(player)
    width = max(1, min(player.together, math.ceil(length_hint(games, WIDEST) / workers)))
    done: queue.SimpleQueue[Played | BaseException | None] = queue.SimpleQueue()
    lock, stop = threading.Lock(), threading.Event()

    def take(n: int) -> list[int]:
        with lock:
            return list(islice(games, n))

    def work() -> None:
        try:
            _work(OpenGames(player, seed), width, take, done.put, stop)
        except BaseException as error:
            done.put(error)
        done.put(None)

    started = [threading.Thread(target=work, daemon=True) for _ in range(workers)]
    for thread in started:
        thread.start()
    try:
        for _ in started:
            while (found := done.get()) is not None:
                if isinstance(found, BaseException):
                    raise found
                yield found
    finally:
        stop.set()
        for thread in started:
            thread.join()


def _work(
    open_games: OpenGames,
    width: int,
    take: Callable[[int], list[int]],
    give: Callable[[Played], None],
    stop: threading.Event,
) -> None:
    """Play games until there are no more or `stop` is set, at first `width` side by side."""
    more = True
    while not stop.is_set():
        room = width - len(open_games.games)
        if room > 0 and more:
            new = take(room)
            more = len(new) == room
            open_games.add(new)
        if not len(open_games.games):
            return
        began = time.thread_time()  # CPU time of this thread alone
        for game in open_games.turn():
            give(game)
        if time.thread_time() - began < QUICK and len(open_games.games) * 2 > width:
            width = min(2 * width, WIDEST)


Play = Callable[[Player, Iterator[int], int, int | None], Generator[Played, None, None]]
"""The signature of `play_games`, for functions that play the games elsewhere."""


# -- replayed games ------------------------------------------------------------------------------


class Traced(NamedTuple):
    """A replayed game: its boards, including the final one, and its spawns."""

    boards: Words
    spawns: Words
    """4 * cell + rank; the first two are the tiles of the start."""


@kernel(
    "void(uint64, uint8[::1], uint64[::1], uint32[::1], uint32[::1], uint64[:, ::1], int64, int64)"
)
def trace(
    key: U,
    moves: Bytes,
    four: Words,
    across: Slides,
    down: Slides,
    out: Words,
    rows: int,
    cols: int,
) -> None:
    """Write the board after each spawn of a game, and the spawn; the first two are the start."""
    word = key
    board = U(0)
    for i in range(len(moves) + 2):
        if i > 1:
            board = slide(board, U(moves[i - 2]), across, down, rows, cols)
        word += GOLDEN
        spawned, rank = spawn(board, mix(word), four, rows, cols)
        out[1, i] = (lowest_bit(board ^ spawned) & ~U(3)) | rank
        board = spawned
        out[0, i] = board


def retrace(rules: Rules, seed: int, game: Played) -> Traced:
    """The boards and spawns of a finished game. Tiles above 32768 do not fit."""
    moves = np.frombuffer(game.moves, np.uint8).copy()
    four = four_threshold(rules)
    out = np.empty((2, len(moves) + 2), np.uint64)
    tables = table(rules.cols), table(rules.rows)
    key = U(randomness.game_key(seed, game.index))
    trace(key, moves, four, *tables, out, rules.rows, rules.cols)
    return Traced(out[0, 1:], out[1])


def record_of(player: Player, seed: int, game: Played) -> Record:
    """The record of a finished game."""
    rules = player.rules
    if game.max_tile > 1 << MAX_PACKED_RANK:
        again = Game(rules, seed, index=game.index)
        for move in game.moves:
            again.play(move)
        return Record.of(again, player.spec)
    spawns = retrace(rules, seed, game).spawns.tolist()
    text = "".join(f"{spawn >> 2:x}{spawn & 3}" for spawn in spawns)
    moves = "".join(map(str, game.moves))
    facts = game.index, game.score, game.max_tile
    return Record(rules, player.spec, seed, *facts, moves, text)


# -- matches -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Match(Tabular):
    """Games of a player, in the order of their numbers.

    >>> from lab2048 import play_match, player
    >>> found = play_match(player("corner", "2x2"), 3, seed=1)
    >>> [row["game"] for row in found.rows()], found.moves_per_second > 0
    ([0, 1, 2], True)
    """

    games: list[Played]
    moves_per_second: float | None
    """Of all threads together; None if all games came from the journal."""

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per game."""
        return [
            {"game": g.index, "score": g.score, "max_tile": g.max_tile, "moves": len(g.moves)}
            for g in self.games
        ]


def play_match(
    player: Player,
    games: int,
    seed: int,
    *,
    threads: int | None = None,
    journal: Path | None = None,
    progress: Callable[[int], object] = lambda done: None,
    play: Play = play_games,
) -> Match:
    """Play games 0, 1, ... of a seed.

    With a journal, each finished game is written to it, and games already in it are not played
    again, so that the same call resumes an interrupted match. `progress` is called with the number
    of finished games. Games are played on this machine, unless `play` plays them elsewhere.

    >>> from lab2048 import player
    >>> len(play_match(player("greedy", "2x2"), 10, seed=1).games)
    10
    """
    games = randomness.checked_seed(games, "games")
    if games == 0:
        raise ValueError("a match has at least one game")
    found = read_journal(journal, games) if journal else {}
    progress(len(found))
    missing = iter([index for index in range(games) if index not in found])
    prepare(player)
    made = 0
    with ExitStack() as stack:
        written = stack.enter_context(closing(Journal(journal))) if journal else None
        playing = stack.enter_context(closing(play(player, missing, seed, threads)))
        began = time.perf_counter()
        for game in playing:
            found[game.index] = game
            made += len(game.moves)
            if written is not None:
                written.add(game)
            progress(len(found))
    seconds = time.perf_counter() - began
    return Match([found[index] for index in range(games)], made / seconds if made else None)
