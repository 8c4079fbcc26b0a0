"""The player that values boards by an n-tuple network, and searches with it.

At depth 1 it makes the move with the largest r + g V(x), x the afterstate and g the discount;
deeper, it is expectimax over afterstates (`players.expectimax`) with V as the heuristic.

A network knows nothing about tiles that training has hardly seen. So a board whose largest tile is
one of those is *downgraded* first: all tiles above the largest missing rank are halved, until the
largest tile is known well. The order and equality of tiles stay the same, and so do the moves.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import types

from lab2048.engine.array_types import BYTE_ROWS, COUNT_ROWS, FLOAT_ROWS, FLOATS, WORD_ROWS, WORDS
from lab2048.engine.arrays import Bytes, Counts, Floats, Slides, Words
from lab2048.engine.jit import U, kernel
from lab2048.engine.packed import GOLDEN, legal, max_rank, mix, rank_at
from lab2048.engine.slides import OVERFLOW, lines, reward, slide, table
from lab2048.engine.spawns import spawn
from lab2048.game import Game, Rules
from lab2048.learn.network_files import NetworkFile, check_board, network_file
from lab2048.learn.ntuple import Network, Weights, network_kernels
from lab2048.learn.ntuple_files import KIND, Stored, read_weights
from lab2048.learn.td_moves import after_value_kernel, four_moves
from lab2048.players.expectimax import DEEPEST, Searcher
from lab2048.players.expectimax_kernels import BestMoves, RootValues, search_kernel
from lab2048.players.player import PlayerError, option
from lab2048.players.search_step import MakeMoves, Steps, Worth, open_cells_kernel

WELL = 0.8
"""A tile is known well if at least this share of the last training games reached it."""


class Judge(NamedTuple):
    """A network for one board, and the tables of its moves: the evaluator of a search kernel."""

    across: Words
    down: Words
    weights: Weights
    initial: float
    gamma: float
    two: float
    """The probability of a 2; `four` is that of a 4."""
    four: float
    dead: float
    """The value of a state without a legal move."""


def judge_of(stored: Stored, rules: Rules) -> Judge:
    """The `Judge` of a network, on a board of these rules."""
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


class Playing(NamedTuple):
    """What playing whole games needs, besides the network."""

    across: Slides
    down: Slides
    four: Words
    well: int
    tie: float


def playing_table(rules: Rules, four: Words, well: int, tie: float) -> Playing:
    """The `Playing` of a board of these rules."""
    return Playing(table(rules.cols), table(rules.rows), four, well, tie)


_NONE = np.empty(0, np.uint64)
JUDGE = numba.typeof(Judge(_NONE, _NONE, np.empty(0, np.float32), 0.0, 0.0, 0.0, 0.0, 0.0))
PLAYING = numba.typeof(Playing(np.empty(0, np.uint32), np.empty(0, np.uint32), _NONE, 0, 0.0))
QValues = Callable[[Words, Any, Floats], None]
PlayOn = Callable[[Words, Any, Any, Bytes, Counts], None]
BestMove = Callable[[U, Any, float], tuple[U, U, U]]


# -- kernels: the parts of a search, and whole games


def make_moves_kernel(rows: int, cols: int) -> MakeMoves:
    """The kernel that makes all moves of a state."""

    @kernel(types.void(types.uint64, JUDGE, WORDS, FLOATS), lean=True)
    def make_moves(state: U, by: Any, afters: Words, gains: Floats) -> None:
        """Write the afterstate of each direction, 0 if it is illegal, and the reward."""
        up, right, low, left, down, across = four_moves(state, by, rows, cols)
        afters[0], afters[1], afters[2], afters[3] = up, right, low, left
        gains[0] = gains[2] = np.float64(down)
        gains[1] = gains[3] = np.float64(across)

    return make_moves


def worth_kernel(network: Network, rule: str) -> Worth:
    """The kernel that values an afterstate by a network of the rule `td` or `state`."""
    after_value = after_value_kernel(network_kernels(network, 1, False), rule, JUDGE, JUDGE)

    @kernel(types.float64(types.uint64, JUDGE), lean=True)
    def worth(after: U, by: Any) -> float:
        """The discounted value of an afterstate."""
        return float(by.gamma * after_value(after, by, by, by.weights))

    return worth


def best_moves_kernel(rows: int, cols: int, worth: Worth) -> BestMoves:
    """The kernel that makes the last move of a search."""

    @kernel(types.void(WORD_ROWS, types.int64, JUDGE, FLOAT_ROWS), lean=True)
    def best_moves(lanes: Words, filled: int, by: Any, best: Floats) -> None:
        """Write the best Q of a single move on the board of every lane."""
        for j in range(filled):
            up, right, low, left, down, across = four_moves(lanes[0, j], by, rows, cols)
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

    return best_moves


@cache
def q_values_kernel(network: Network) -> QValues:
    """The kernel that values moves by a network of the rule `q`."""
    rows, cols = network.rows, network.cols
    value = network_kernels(network, 1, True).value

    @kernel(types.void(WORDS, JUDGE, FLOAT_ROWS), lean=True)
    def q_values(states: Words, by: Any, out: Floats) -> None:
        """Write Q of every direction of every state; NaN if it is illegal."""
        for i in range(len(states)):
            state = states[i]
            up, right, low, left, _, _ = four_moves(state, by, rows, cols)
            out[i, 0] = by.initial + value(state, 0, by.weights) if up else np.nan
            out[i, 1] = by.initial + value(state, 1, by.weights) if right else np.nan
            out[i, 2] = by.initial + value(state, 2, by.weights) if low else np.nan
            out[i, 3] = by.initial + value(state, 3, by.weights) if left else np.nan

    return q_values


@kernel("uint64(uint64, int64)", lean=True)
def lowered(board: U, well: int) -> U:
    """The board with ranks lowered until the largest is at most `well`, or no rank is missing.

    Each time, all ranks above the largest missing one are lowered by one.
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
    """Write each board with its ranks lowered; see `lowered`."""
    for i in range(len(boards)):
        out[i] = lowered(boards[i], well)


def best_move_kernel(rows: int, cols: int, worth: Worth) -> BestMove:
    """The kernel that finds a best move."""

    @kernel(types.UniTuple(types.uint64, 3)(types.uint64, JUDGE, types.float64), lean=True)
    def best_move(board: U, by: Any, tie: float) -> tuple[U, U, U]:
        """The first of the best moves (as in `ties.best_of`), its afterstate and its reward."""
        up, right, low, left, down, across = four_moves(board, by, rows, cols)
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

    return best_move


@cache
def games_kernel(network: Network, rule: str) -> PlayOn:
    """The kernel that plays games with a network."""
    rows, cols = network.rows, network.cols
    best_move = best_move_kernel(rows, cols, worth_kernel(network, rule))

    @kernel(
        types.void(WORD_ROWS, JUDGE, PLAYING, BYTE_ROWS, COUNT_ROWS),
        lean=True,
    )
    def play_on(state: Words, by: Any, game: Any, moves: Bytes, results: Counts) -> None:
        """Make several moves in each game, one game after the other; see `Player.play_on`."""
        for j in range(state.shape[1]):
            board, word, length, score = state[0, j], state[1, j], 0, np.int64(0)
            results[j, 2] = 0
            while state[2, j] and length < moves.shape[1]:
                top = max_rank(board)
                seen = lowered(board, game.well) if top > game.well else board
                move, after, gained = best_move(seen, by, game.tie)
                if top > game.well or top == 15:
                    gained = reward(board, move, game.across, game.down, rows, cols)
                    after = slide(board, move, game.across, game.down, rows, cols)
                if gained & U(OVERFLOW):
                    results[j, 2] = 1
                    break
                moves[j, length] = move
                score += np.int64(gained)
                length += 1
                word += GOLDEN
                board, _ = spawn(after, mix(word), game.four, rows, cols)
                state[2, j] = legal(board, rows, cols)
            state[0, j], state[1, j] = board, word
            results[j, 0], results[j, 1] = length, score

    return play_on


@cache
def network_search(network: Network, rule: str) -> RootValues:
    """The kernel that searches with a network of the rule `td` or `state`."""
    rows, cols, worth = network.rows, network.cols, worth_kernel(network, rule)
    open_cells = open_cells_kernel(rows, cols)
    step = Steps(rows, cols, JUDGE, make_moves_kernel(rows, cols), open_cells, worth)
    return search_kernel(step, best_moves_kernel(rows, cols, worth))


# -- the player ----------------------------------------------------------------------------------


_loading = threading.Lock()


@lru_cache(maxsize=4)
def _loaded(file: NetworkFile) -> Stored:
    """A network from a file, cached until the file changes."""
    return read_weights(file.path)


def load_network(name: str, rules: Rules) -> Stored:
    """Load the network trained under a name, or the package's own for a board."""
    file = network_file(name, KIND, rules)
    with _loading:  # otherwise two threads would each load it, at hundreds of megabytes
        return _loaded(file)


@dataclass(frozen=True, eq=False)
class NTuple(Searcher):
    """Expectimax over afterstates with the values of an n-tuple network."""

    network: str = option("", "the name of a network that was trained", kind="name")
    depth: int = option(1, "own moves to look ahead", low=1, high=DEEPEST)
    downgrade: str = option("auto", "halve tiles above this one where possible; or auto, off")

    name = "ntuple"
    about = "the best move by a network that has learnt the values of boards"
    meaning = "the network's estimate of the score from here (of the downgraded board, if it is)"
    points = True

    given: Stored | None = field(default=None, repr=False)
    """A network in memory, in place of one from a file; it has no name."""
    stored: Stored = field(init=False, repr=False)
    well: int = field(init=False, repr=False)
    """The largest rank that the network knows well."""

    def __post_init__(self) -> None:
        super().__post_init__()
        stored = self.given.plain() if self.given else load_network(self.network, self.rules)
        object.__setattr__(self, "stored", stored)
        object.__setattr__(self, "well", self._known_well())
        facts = self.stored.facts
        check_board(self.network, facts, self.rules)
        if self.depth > 1 or self.timed:
            if facts["rule"] == "q":
                raise PlayerError("a network of Q-learning does not look ahead: depth is 1")
            if facts["gamma"] != 1:
                raise PlayerError("a network that was trained with a discount has depth 1")

    def _known_well(self) -> int:
        """The largest rank that is not lowered."""
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
        """Compile the kernels that play needs, with or without search."""
        if self.depth > 1 or self.timed:
            super().prepare()
            return
        self.choose(Game(self.rules, 0).board)
        if self.stored.facts["rule"] != "q":
            games_kernel(self.stored.network, self.stored.facts["rule"])

    def search(self) -> tuple[RootValues, Any]:
        stored = self.stored
        kernel = network_search(stored.network, stored.facts["rule"])
        return kernel, judge_of(stored, self.rules)

    def play_on(self, state: Words, four: Words, moves: Bytes, results: Counts) -> bool:
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
        out = np.empty((len(boards), 4))
        q_values_kernel(self.stored.network)(lowered, judge_of(self.stored, self.rules), out)
        return out
