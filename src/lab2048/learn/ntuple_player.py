"""The player that values boards by an n-tuple network, and looks ahead with it.

At depth 1 it makes the move with the best r + V(x), x the afterstate; beyond, expectimax over
afterstates (`search.expectimax`) with V in the place of a heuristic.

A network knows nothing about tiles that training has hardly seen. So where the largest tile is one
of those, the board is *downgraded* first: all tiles above the largest rank that is missing are
halved, until the largest is known well. Order and equality of tiles stay, so the moves do.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import types

from lab2048.board import (
    GOLDEN,
    OVERFLOW,
    Words,
    legal,
    lines,
    max_rank,
    mix,
    rank_at,
    reward,
    slide,
    spawn,
    table,
)
from lab2048.board import Table as Slides
from lab2048.game import Game, Rules
from lab2048.jit import Kernels, U, kernel
from lab2048.learn.files import find_network
from lab2048.learn.ntuple import Network, Weights, network_kernels, value
from lab2048.learn.td import four_moves, mean_state
from lab2048.learn.weights import KIND, Stored, read_weights
from lab2048.player import Bytes, Floats, Moves, PlayerError, option
from lab2048.search.expectimax import BEST_MOVES, DEEPEST, Searcher, add_search
from lab2048.search.steps import steps

WELL = 0.8
"""A tile is known well if at least this share of the last games of a training reached it."""

ROWS = COLS = 0
"""The board that a kernel is compiled for."""
RULE = "td"


class Judge(NamedTuple):
    """A network for one board, and the tables of its moves: what a search kernel is given."""

    across: Words
    down: Words
    weights: Weights
    initial: float
    gamma: float
    two: float
    """The chance of a 2, and of a 4."""
    four: float
    dead: float
    """What a state without a move is worth."""


def judge_of(stored: Stored, rules: Rules) -> Judge:
    """What a search needs of a network, on a board of these rules."""
    return Judge(
        lines(rules.cols),
        lines(rules.rows),
        stored.weights,
        stored.facts["initial"],
        stored.facts["gamma"],
        1 - rules.p4,
        rules.p4,
        0.0,
    )


# -- kernels: the names are those that the search calls -------------------------------------------


def make_moves(state: U, by: Any, afters: Words, gains: Floats) -> None:
    """Write the afterstate of each direction, 0 if it is illegal, and the reward."""
    up, right, low, left, down, across = four_moves(state, by, ROWS, COLS)
    afters[0], afters[1], afters[2], afters[3] = up, right, low, left
    gains[0] = gains[2] = np.float64(down)
    gains[1] = gains[3] = np.float64(across)


def worth(after: U, by: Any) -> float:
    """What an afterstate is worth to the move before it."""
    if RULE == "state":
        return float(by.gamma * mean_state(after, by, by, by.weights))
    return float(by.gamma * (by.initial + value(after, 0, by.weights)))


def best_moves(lanes: Words, filled: int, by: Any, best: Floats) -> None:
    """The best Q of a single move on the board of every lane."""
    for j in range(filled):
        up, right, low, left, down, across = four_moves(lanes[0, j], by, ROWS, COLS)
        found = -np.inf
        if up:
            found = np.float64(down) + worth(up, by)
        if right:
            found = max(found, np.float64(across) + worth(right, by))
        if low:
            found = max(found, np.float64(down) + worth(low, by))
        if left:
            found = max(found, np.float64(across) + worth(left, by))
        best[0, j] = found if found > -np.inf else by.dead


def q_values(states: Words, by: Any, out: Floats) -> None:
    """Q of every direction of every state; NaN if it is illegal."""
    for i in range(len(states)):
        state = states[i]
        up, right, low, left, _, _ = four_moves(state, by, ROWS, COLS)
        out[i, 0] = by.initial + value(state, 0, by.weights) if up else np.nan
        out[i, 1] = by.initial + value(state, 1, by.weights) if right else np.nan
        out[i, 2] = by.initial + value(state, 2, by.weights) if low else np.nan
        out[i, 3] = by.initial + value(state, 3, by.weights) if left else np.nan


@kernel("uint64(uint64, int64)", lean=True)
def lowered(board: U, well: int) -> U:
    """The board with its tiles lowered until the largest rank is `well`, or none is missing.

    All tiles above the largest rank that is missing are lowered by one.
    """
    while max_rank(board) > well:
        ranks = U(0)
        for cell in range(16):
            ranks |= U(1) << rank_at(board, cell)
        missing = max_rank(board) - 1
        while missing > 0 and (ranks >> U(missing)) & U(1):
            missing -= 1
        if missing == 0:
            break
        for cell in range(16):
            if rank_at(board, cell) > U(missing):
                board -= U(1) << U(4 * cell)
    return board


@kernel("void(uint64[::1], int64, uint64[::1])", lean=True)
def downgrade(boards: Words, well: int, out: Words) -> None:
    """Write each board with its tiles lowered; see `lowered`."""
    for i in range(len(boards)):
        out[i] = lowered(boards[i], well)


def best_move(board: U, by: Any, tie: float) -> tuple[U, U, U]:
    """The first of the best moves, as `choice.best_of` has it; its afterstate and reward."""
    up, right, low, left, down, across = four_moves(board, by, ROWS, COLS)
    first = np.float64(down) + worth(up, by) if up else -np.inf
    second = np.float64(across) + worth(right, by) if right else -np.inf
    third = np.float64(down) + worth(low, by) if low else -np.inf
    fourth = np.float64(across) + worth(left, by) if left else -np.inf
    best = max(first, second, third, fourth)
    least = best - tie * max(abs(best), 1.0)
    if first >= least:
        return U(0), up, down
    if second >= least:
        return U(1), right, across
    if third >= least:
        return U(2), low, down
    return U(3), left, across


def play_on(state: Words, by: Any, game: Any, moves: Bytes, results: Moves) -> None:
    """Several moves in each game, one game after the other; see `Player.play_on`."""
    for j in range(state.shape[1]):
        board, word, length, score = state[0, j], state[1, j], 0, np.int64(0)
        results[j, 2] = 0
        while state[2, j] and length < moves.shape[1]:
            top = max_rank(board)
            seen = lowered(board, game.well) if top > game.well else board
            move, after, gained = best_move(seen, by, game.tie)
            if top > game.well or top == 15:
                gained = reward(board, move, game.across, game.down, ROWS, COLS)
                after = slide(board, move, game.across, game.down, ROWS, COLS)
            if gained & U(OVERFLOW):
                results[j, 2] = 1
                break
            moves[j, length] = move
            score += np.int64(gained)
            length += 1
            word += GOLDEN
            board, _ = spawn(after, mix(word), game.four, ROWS, COLS)
            state[2, j] = legal(board, ROWS, COLS)
        state[0, j], state[1, j] = board, word
        results[j, 0], results[j, 1] = length, score


class Playing(NamedTuple):
    """What a game is played with, besides the network."""

    across: Slides
    down: Slides
    four: Words
    well: int
    tie: float


def playing_table(rules: Rules, four: Words, well: int, tie: float) -> Playing:
    """What a game is played with."""
    return Playing(table(rules.cols), table(rules.rows), four, well, tie)


@cache
def playing_kernel(network: Network, rule: str) -> Callable[..., None]:
    """The search with a network, `root_values`; or `q_values` if it has values of moves."""
    board = steps(network.rows, network.cols)
    by, kernels = _judge_type(), _move_kernels(network, rule)
    if rule == "q":
        return kernels.add(q_values, types.void(types.uint64[::1], by, types.float64[:, ::1]))
    kernels.add(best_moves, types.void(*BEST_MOVES[:2], by, BEST_MOVES[2]))
    return add_search(kernels.more("search"), by, board.spawns)


def _judge_type() -> Any:
    """The type of a `Judge`."""
    none = np.empty(0, np.float32)
    return numba.typeof(Judge(lines(2), lines(2), none, 0.0, 0.0, 0.0, 0.0, 0.0))


@cache
def _move_kernels(network: Network, rule: str) -> Kernels:
    """`make_moves` and `worth` for a network."""
    by, word, real = _judge_type(), types.uint64, types.float64
    kernels = network_kernels(network, 1, rule == "q").more(f"play.{rule}", lean=True, RULE=rule)
    if rule == "state":
        kernels.add(mean_state, real(word, by, by, types.float32[::1]))
    kernels.add(worth, real(word, by))
    kernels.add(make_moves, types.void(word, by, word[::1], real[::1]))
    return kernels


@cache
def games_kernel(network: Network, rule: str) -> Callable[..., None]:
    """`play_on` for a network."""
    kernels = _move_kernels(network, rule).more("games", lean=True)
    game = playing_table(Rules(2, 2), np.empty(2, np.uint64), 0, 0.0)
    played = types.uint8[:, ::1], types.int64[:, ::1]
    grid, word = types.uint64[:, ::1], types.uint64
    kernels.add(best_move, types.UniTuple(word, 3)(word, _judge_type(), types.float64))
    return kernels.add(play_on, types.void(grid, _judge_type(), numba.typeof(game), *played))


# -- the player ----------------------------------------------------------------------------------


_loading = threading.Lock()


@lru_cache(maxsize=4)
def _loaded(path: Path, changed: tuple[int, int]) -> Stored:
    """A network from a file, kept as long as the file does not change."""
    return read_weights(path)


def load_network(name: str, rules: Rules) -> Stored:
    """The network that was trained under a name, or the package's own for a board."""
    path = find_network(name, KIND, rules.name)
    found = path.stat()
    with _loading:  # or two threads would each load it, at hundreds of megabytes
        return _loaded(path.resolve(), (found.st_mtime_ns, found.st_ino))


@dataclass(frozen=True, eq=False)
class NTuple(Searcher):
    """Expectimax over afterstates with the values of an n-tuple network."""

    network: str = option("", "the name of a network that was trained", kind="name")
    depth: int = option(1, "own moves to look ahead", low=1, high=DEEPEST)
    downgrade: str = option("auto", "halve tiles above this one where possible; or auto, off")

    name = "ntuple"
    about = "the best move by a network that has learnt the values of boards"
    meaning = "expected score from here (of the board as it is seen), as far as the network knows"
    points = True

    given: Stored | None = field(default=None, repr=False)
    """A network that is not in a file; it has no name then."""
    stored: Stored = field(init=False, repr=False)
    well: int = field(init=False, repr=False)
    """The largest rank that the network knows well."""

    def __post_init__(self) -> None:
        super().__post_init__()
        stored = self.given.plain() if self.given else load_network(self.network, self.rules)
        object.__setattr__(self, "stored", stored)
        object.__setattr__(self, "well", self._known_well())
        facts = self.stored.facts
        if facts["board"] != self.rules.name:
            named = f"the network {self.network}"
            raise PlayerError(f"{named} is for {facts['board']}, the board is {self.rules.name}")
        if self.depth > 1 or self.timed:
            if facts["rule"] == "q":
                raise PlayerError("a network of Q-learning does not look ahead: depth is 1")
            if facts["gamma"] != 1:
                raise PlayerError("a network that was trained with a discount has depth 1")

    def _known_well(self) -> int:
        """The largest rank that boards are not lowered from."""
        if self.downgrade == "off":
            return 15
        tiles = {str(1 << rank): rank for rank in range(1, 16)}
        if self.downgrade == "auto":
            reach = self.stored.facts.get("reach", {})
            known = [tiles[tile] for tile, share in reach.items() if share >= WELL]
            return max(known, default=15)
        if self.downgrade not in tiles:
            found = self.downgrade[:40]
            raise PlayerError(f"downgrade is auto, off or a tile up to 32768, not {found}")
        return tiles[self.downgrade]

    @property
    def identity(self) -> str:
        facts = self.stored.facts
        sums = facts.get("checksums") or zlib.crc32(self.stored.weights.data)
        return f"{self.spec} {sums} {facts['initial']} {facts['gamma']} {self.well}"

    def prepare(self) -> None:
        """Compile, whichever way games are played."""
        if self.depth > 1 or self.timed:
            super().prepare()
            return
        self.choose(Game(self.rules, 0).board)
        if self.stored.facts["rule"] != "q":
            games_kernel(self.stored.network, self.stored.facts["rule"])

    def search(self) -> tuple[Callable[..., None], Any]:
        stored = self.stored
        kernel = playing_kernel(stored.network, stored.facts["rule"])
        return kernel, judge_of(stored, self.rules)

    def play_on(self, state: Words, four: Words, moves: Bytes, results: Moves) -> bool:
        rule = self.stored.facts["rule"]
        if self.depth > 1 or self.timed or self.splits or rule == "q":
            return False
        table = playing_table(self.rules, four, self.well, self.tie)
        by = judge_of(self.stored, self.rules)
        games_kernel(self.stored.network, rule)(state, by, table, moves, results)
        return True

    def values_many(self, boards: Words, words: Words) -> Floats:
        lowered = np.empty_like(boards)
        downgrade(boards, self.well, lowered)
        if self.stored.facts["rule"] != "q":
            return super().values_many(lowered, words)
        values, by = self.search()
        out = np.empty((len(boards), 4))
        values(lowered, by, out)
        return out
