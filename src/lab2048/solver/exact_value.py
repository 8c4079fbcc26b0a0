"""The exact value of a player: its mean score, and what becomes of its games, without a sample.

The boards that games of the player come to are found age by age, each with the probability that a
game comes to it. On each, the player's chances of its moves say how that probability goes on:

    m(x)  = sum over states s of m(s) * P(a | s)       x is s after the move a
    m(s') = sum over afterstates x of m(x) * p(s' | x)

and the mean score is the sum of m(s) * P(a | s) * r(s, a). That is the value which induction with
the player's own choices would find for the start, and needs no more than three ages in memory.

Boards are taken as they are: most players do not play the images of a board alike, and asking them
only about canonical boards would give wrong values. A player that says it does (`symmetric`) is
asked about canonical boards only, of which there are up to eight times fewer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import types

from lab2048.engine.array_types import FLOAT_ROWS, FLOATS, SLIDES, WORDS
from lab2048.engine.arrays import Counts, Floats, Slides, Words
from lab2048.engine.jit import U, fragment, kernel
from lab2048.engine.packed import GOLDEN, count, lowest_cell, max_rank, potential, smallest
from lab2048.engine.slides import slide, table
from lab2048.game import Game, Rules
from lab2048.game.notation import checked_threads
from lab2048.players.player import Player
from lab2048.players.registry import PlayerLike
from lab2048.players.registry import player as make_player
from lab2048.solver.problem import MAX_CELLS
from lab2048.solver.successors import BLOCK, next_cells, open_block
from lab2048.solver.tables import TableLike, table_answering
from lab2048.tabular import Tabular

PART = 1 << 13
"""So many boards are carried on, and a player is asked about, in one call."""
SHARDS = 4
"""Boards are dealt out by their hash, so that threads can gather them without meeting."""

# places in the sums of a layer; behind them, how likely games end there with each largest rank
REWARD, MOVES, ENDS = range(3)


class Edges(NamedTuple):
    """Boards that were come to, with repetitions, and the probability of each: a row a shard."""

    keys: Words
    masses: Floats
    sizes: Counts


class Crowd(NamedTuple):
    """Different boards and the probability of each, by hash: two words each, a board in the first
    (0 where there is none), the probability in the second as a float64."""

    words: Words
    size: Counts
    """How many boards there are, in an array of one."""

    def boards(self) -> tuple[Words, Floats]:
        """All boards, and their probabilities."""
        here = np.flatnonzero(self.words[::2]) * 2
        return self.words[here], self.words.view(np.float64)[here + 1]


def new_edges(room: int) -> Edges:
    """Room for so many boards a shard."""
    keys, masses = np.empty((SHARDS, room), np.uint64), np.empty((SHARDS, room))
    return Edges(keys, masses, np.zeros(SHARDS, np.int64))


def new_crowd(boards: int) -> Crowd:
    """An empty crowd that is half full with so many boards."""
    slots = 1 << max(4, (2 * boards).bit_length())
    return Crowd(np.zeros(2 * slots, np.uint64), np.zeros(1, np.int64))


CROWD, EDGES = numba.typeof(new_crowd(1)), numba.typeof(new_edges(1))


@fragment
def deal(keys: Words, masses: Floats, size: int, edges: Any) -> None:
    """Append boards with a probability to the shards that they belong to."""
    for i in range(U(size)):
        shard = np.int64((keys[i] * GOLDEN) >> U(62))
        place = edges.sizes[shard]
        edges.keys[shard, place], edges.masses[shard, place] = keys[i], masses[i]
        edges.sizes[shard] = place + int(masses[i] > 0)


def move_on_kernel(rows: int, cols: int, symmetric: bool) -> Callable[..., None]:
    """The kernel that carries probabilities from states to afterstates."""

    @kernel(types.void(WORDS, FLOATS, FLOAT_ROWS, SLIDES, SLIDES, EDGES, FLOATS))
    def move_on(
        states: Words,
        masses: Floats,
        chances: Floats,
        across: Slides,
        down: Slides,
        edges: Any,
        sums: Floats,
    ) -> None:
        """Carry the probabilities of states to afterstates, and sum up what happens on the way."""
        boards, afters, carried = (
            np.empty(BLOCK, np.uint64),
            np.empty(BLOCK, np.uint64),
            np.empty(BLOCK),
        )
        for begin in range(0, len(states), BLOCK):
            size = min(BLOCK, len(states) - begin)
            for direction in range(4):
                found = 0
                for i in range(begin, begin + size):
                    boards[found] = states[i]
                    carried[found] = masses[i] * chances[i, direction]
                    found += int(chances[i, direction] > 0)
                for i in range(found):
                    afters[i] = slide(boards[i], U(direction), across, down, rows, cols)
                for i in range(found):  # a move adds its reward to the potential
                    gained = potential(afters[i], rows * cols) - potential(boards[i], rows * cols)
                    sums[REWARD] += carried[i] * np.float64(gained)
                    sums[MOVES] += carried[i]
                if symmetric:
                    for i in range(found):
                        afters[i] = smallest(afters[i], rows, cols)
                deal(afters, carried, found, edges)
            for i in range(begin, begin + size):
                going = chances[i, 0] + chances[i, 1] + chances[i, 2] + chances[i, 3]
                if going == 0:
                    sums[ENDS + max_rank(states[i])] += masses[i]

    return move_on


def spawn_on_kernel(rows: int, cols: int, symmetric: bool) -> Callable[..., None]:
    """The kernel that carries probabilities from afterstates to states."""

    @kernel(types.void(WORDS, FLOATS, types.uint64, types.float64, EDGES))
    def spawn_on(afters: Words, masses: Floats, rank: U, weight: float, edges: Any) -> None:
        """Carry the probabilities of afterstates to the states that a tile of this rank makes."""
        boards, empty = np.empty(BLOCK, np.uint64), np.empty(BLOCK, np.uint64)
        states, sources = np.empty(BLOCK, np.uint64), np.empty(BLOCK, np.uint32)
        share, carried = np.empty(BLOCK), np.empty(BLOCK)
        for begin in range(0, len(afters), BLOCK):
            size = min(BLOCK, len(afters) - begin)
            left = open_block(afters, begin, size, boards, empty, rows, cols)
            for i in range(size):
                sources[i] = i
                share[i] = masses[begin + i] * weight / np.float64(count(empty[i]))
            while left > 0:
                for i in range(U(left)):
                    states[i] = boards[i] | (lowest_cell(empty[i]) * rank)
                    carried[i] = share[sources[i]]
                if symmetric:
                    for i in range(U(left)):
                        states[i] = smallest(states[i], rows, cols)
                deal(states, carried, left, edges)
                left = next_cells(boards, empty, sources, left)

    return spawn_on


@kernel(types.int64(WORDS, FLOATS, CROWD))
def gather(keys: Words, masses: Floats, crowd: Any) -> int:
    """Add probabilities to boards, which are new to the crowd or not, until it is too full.

    Returns how many were added.
    """
    floats = crowd.words.view(np.float64)
    mask = U(len(crowd.words) - 1)
    room = len(crowd.words) * 3 // 8  # three in four of the slots
    size = crowd.size[0]
    for i in range(len(keys)):
        place = ((keys[i] * GOLDEN) >> U(20) << U(1)) & mask
        while crowd.words[place] != U(0) and crowd.words[place] != keys[i]:
            place = (place + U(2)) & mask
        if crowd.words[place] == U(0):
            if size == room:
                crowd.size[0] = size
                return i
            crowd.words[place] = keys[i]
            floats[place + U(1)] = masses[i]
            size += 1
        else:
            floats[place + U(1)] += masses[i]
    crowd.size[0] = size
    return len(keys)


class WalkKernels(NamedTuple):
    """The kernels of a walk on one board."""

    move_on: Callable[..., None]
    spawn_on: Callable[..., None]


@cache
def walk_kernels(rows: int, cols: int, symmetric: bool) -> WalkKernels:
    """The kernels for a board, and for players that play all images of a board alike or not."""
    return WalkKernels(
        move_on_kernel(rows, cols, symmetric), spawn_on_kernel(rows, cols, symmetric)
    )


class Layer(NamedTuple):
    """All boards of one age that games of a player come to."""

    age: int
    states: Words
    masses: Floats
    """The probability that a game comes to the state."""
    chances: Floats
    """Of the player's four moves."""


@dataclass
class ExactValue(Tabular):
    """What becomes of the games of a player, exactly: no games, no sample.

    >>> found = exact_value("corner", "2x2")
    >>> round(found.reach[16], 4), found.boards
    (0.2355, 218)
    """

    player: str = ""
    value: float = 0.0
    """The mean score."""
    moves: float = 0.0
    """The mean number of moves."""
    boards: int = 0
    """How many different boards its games come to."""
    ends: dict[int, float] = field(default_factory=dict)
    """How likely each tile is to be the largest at the end."""
    optimal_value: float | None = None
    """The mean score of perfect play; None if the board is not solved."""

    @property
    def regret(self) -> float | None:
        """How much perfect play scores more; None if the board is not solved."""
        return None if self.optimal_value is None else self.optimal_value - self.value

    def as_json(self) -> dict[str, Any]:
        """Return all figures as plain values."""
        return {
            "value": self.value,
            "optimal_value": self.optimal_value,
            "regret": self.regret,
            "moves": self.moves,
            "reach": {str(tile): chance for tile, chance in self.reach.items()},
            "boards": self.boards,
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return the main figures in one row."""
        names = ("player", "value", "optimal_value", "regret", "moves", "boards")
        return [{name: getattr(self, name) for name in names}]

    @property
    def reach(self) -> dict[int, float]:
        """How likely each tile is to be made."""
        tiles = sorted(self.ends)
        return {tile: sum(self.ends[t] for t in tiles if t >= tile) for tile in tiles}


Visit = Callable[[Layer], object]


def check_exact(player: Player) -> None:
    """A `ValueError` if the exact value of a player cannot be told."""
    if player.rules.cells > MAX_CELLS:
        raise ValueError(f"exact values are for boards that can be solved, not {player.rules.name}")
    player.probabilities(np.array([Game(player.rules, 0).board.packed], np.uint64))


def evaluate_policy(
    player: Player, *, threads: int | None = None, visit: Visit = lambda layer: None
) -> ExactValue:
    """The exact mean score of a player on its board.

    A player that draws, or looks at the clock, is refused with a `PlayerError`. `visit` is called
    with every layer, youngest first.
    """
    workers = checked_threads(threads)
    check_exact(player)
    exact = ExactValue(player.spec)
    with ThreadPoolExecutor(workers) as pool:
        walk = Walk(player, pool)
        while walk.ages:
            layer = walk.youngest()
            visit(layer)
            exact.boards += len(layer.states)
            walk.go_on(layer)
    exact.value, exact.moves = float(walk.sums[REWARD]), float(walk.sums[MOVES])
    ends = walk.sums[ENDS:].tolist()
    exact.ends = {1 << rank: chance for rank, chance in enumerate(ends) if chance > 0}
    return exact


def exact_value(
    player: PlayerLike,
    board: str | Rules | None = None,
    *,
    p4: float | None = None,
    table: TableLike = True,
    threads: int | None = None,
    visit: Visit = lambda layer: None,
) -> ExactValue:
    """Return the exact mean score of a player and its distance from perfect play, without games.

    The player is a spec, a `Player` or a function (`lab2048.player`); its moves, or their chances,
    must depend on the board alone. `table` is what to compare with: a `Table`, the name of one,
    True for that of the board if it is solved or small, False for none. `visit` is called with
    every `Layer` of boards that its games come to, youngest first.

    >>> found = exact_value("greedy", "2x2")
    >>> round(found.value, 3), round(found.regret, 3)
    (26.793, 40.171)
    """
    usual = player.rules if isinstance(player, Player) else "4x4"
    entrant = make_player(player, board or usual, p4=p4)
    check_exact(entrant)
    with table_answering(entrant.rules, table) as known:
        found = evaluate_policy(entrant, threads=threads, visit=visit)
        if known is not None:
            found.optimal_value = known.start_value["start"]
    return found


class Walk:
    """The boards that games of a player come to, age by age."""

    def __init__(self, player: Player, pool: ThreadPoolExecutor) -> None:
        self.player, self.rules, self._pool = player, player.rules, pool
        kernels = walk_kernels(self.rules.rows, self.rules.cols, player.symmetric)
        self._move_on, self._spawn_on = kernels
        self._slides = table(self.rules.cols), table(self.rules.rows)
        self._tiles = [(1, 1 - self.rules.p4), (2, self.rules.p4)]
        self.sums = np.zeros(ENDS + 16)
        self.ages: dict[int, list[Crowd]] = {}
        self._spare: list[Edges] = []  # memory that is new costs as much as what is done in it
        cells = self.rules.cells
        for rank, weight in self._tiles:  # the first tile of the start; the second spawns on it
            keys = np.array([rank << 4 * cell for cell in range(cells)], np.uint64)
            self._spawn([(keys, np.full(cells, weight / cells))], 2 * rank)

    def youngest(self) -> Layer:
        """The boards of the least age that is left, with the player's chances on each."""
        age = min(self.ages)
        shards = list(self._pool.map(Crowd.boards, self.ages.pop(age)))
        states, masses = (np.concatenate(part) for part in zip(*shards, strict=True))
        chances = np.empty((len(states), 4))

        def ask(part: slice) -> None:
            chances[part] = self.player.probabilities(states[part])

        ask_all = self._pool.map if self.player.parallel else map
        list(ask_all(ask, _parts(len(states))))
        return Layer(age, states, masses, chances)

    def go_on(self, layer: Layer) -> None:
        """Carry the probabilities of a layer to those that follow."""

        def move(part: slice) -> tuple[Edges, Floats]:
            states, masses, chances = (array[part] for array in layer[1:])
            edges, sums = self._edges(), np.zeros_like(self.sums)
            self._move_on(states, masses, chances, *self._slides, edges, sums)
            return edges, sums

        moved = list(self._pool.map(move, _parts(len(layer.states))))
        for _, sums in moved:
            self.sums += sums
        crowds = self._gathered([edges for edges, _ in moved], self._none())
        self._spawn(list(self._pool.map(Crowd.boards, crowds)), layer.age)

    def _spawn(self, afters: Sequence[tuple[Words, Floats]], age: int) -> None:
        """Carry all afterstates of an age to the states 2 and 4 older."""
        jobs = [(keys[part], masses[part]) for keys, masses in afters for part in _parts(len(keys))]
        for rank, weight in self._tiles:
            if weight == 0 or not jobs:
                continue

            def spawn(job: tuple[Words, Floats], rank: int = rank, weight: float = weight) -> Edges:
                edges = self._edges()
                self._spawn_on(*job, U(rank), weight, edges)
                return edges

            older = age + 2 * rank
            before = self.ages.get(older, self._none())
            self.ages[older] = self._gathered(list(self._pool.map(spawn, jobs)), before)

    def _gathered(self, edges: Sequence[Edges], crowds: Sequence[Crowd]) -> list[Crowd]:
        """The crowds with all boards of the edges added, each shard in the order of the edges."""

        def fill(shard: int) -> Crowd:
            crowd = crowds[shard]
            for each in edges:
                size = int(each.sizes[shard])
                crowd = self._add(each.keys[shard, :size], each.masses[shard, :size], crowd)
            return crowd

        filled = list(self._pool.map(fill, range(SHARDS)))
        self._spare += edges
        return filled

    def _edges(self) -> Edges:
        """Room for all that can follow the boards of a part, used before or new."""
        try:
            edges = self._spare.pop()
        except IndexError:
            return new_edges(PART * max(4, self.rules.cells - 1) + 1)
        edges.sizes[:] = 0
        return edges

    def _add(self, keys: Words, masses: Floats, crowd: Crowd) -> Crowd:
        """The crowd with more boards, or if they do not fit a larger one."""
        done = gather(keys, masses, crowd)
        while done < len(keys):
            larger = new_crowd(4 * int(crowd.size[0]))
            gather(*crowd.boards(), larger)
            crowd = larger
            done += gather(keys[done:], masses[done:], crowd)
        return crowd

    def _none(self) -> list[Crowd]:
        """Crowds with nothing in them."""
        return [new_crowd(PART) for _ in range(SHARDS)]


def _parts(size: int) -> list[slice]:
    """So many boards in parts of the same size, whatever the number of threads."""
    return [slice(begin, min(begin + PART, size)) for begin in range(0, size, PART)]
