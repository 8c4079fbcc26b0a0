"""The boards that a player's games reach, age by age, each with its probability."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from lab2048.engine.arrays import Floats, Words
from lab2048.engine.jit import U
from lab2048.engine.slides import table
from lab2048.players.player import Player
from lab2048.solver.policy_kernels import (
    ENDS,
    SHARDS,
    Crowd,
    Edges,
    gather,
    new_crowd,
    new_edges,
    walk_kernels,
)

PART = 1 << 13
"""The number of boards per call of a kernel, and of the player."""


class Layer(NamedTuple):
    """All states of one age that a player's games reach."""

    age: int
    states: Words
    masses: Floats
    """The probability that a game reaches the state."""
    chances: Floats
    """The probability of each of the player's four moves."""


class Walk:
    """A walk through all boards that a player's games reach, age by age."""

    def __init__(self, player: Player, pool: ThreadPoolExecutor) -> None:
        self.player, self.rules, self._pool = player, player.rules, pool
        kernels = walk_kernels(self.rules.rows, self.rules.cols, player.symmetric)
        self._move_on, self._spawn_on = kernels
        self._slides = table(self.rules.cols), table(self.rules.rows)
        self._tiles = [(1, 1 - self.rules.p4), (2, self.rules.p4)]
        self.sums = np.zeros(ENDS + 16)
        self.ages: dict[int, list[Crowd]] = {}
        self._spare: list[Edges] = []  # reused: touching new memory costs as much as the work in it
        cells = self.rules.cells
        for rank, weight in self._tiles:  # the first tile of the start; the second spawns on it
            keys = np.array([rank << 4 * cell for cell in range(cells)], np.uint64)
            self._spawn([(keys, np.full(cells, weight / cells))], 2 * rank)

    def youngest(self) -> Layer:
        """Remove and return the youngest layer left, with the player's chances on each state."""
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
        """Carry the probabilities of a layer on to the layers 2 and 4 older."""

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
        """Edges with room for all successors of a part, reused or new."""
        try:
            edges = self._spare.pop()
        except IndexError:
            return new_edges(PART * max(4, self.rules.cells - 1) + 1)
        edges.sizes[:] = 0
        return edges

    def _add(self, keys: Words, masses: Floats, crowd: Crowd) -> Crowd:
        """Add boards to a crowd; return it, or a larger copy if they do not fit."""
        done = gather(keys, masses, crowd)
        while done < len(keys):
            larger = new_crowd(4 * int(crowd.size[0]))
            gather(*crowd.boards(), larger)
            crowd = larger
            done += gather(keys[done:], masses[done:], crowd)
        return crowd

    def _none(self) -> list[Crowd]:
        """An empty crowd for each shard."""
        return [new_crowd(PART) for _ in range(SHARDS)]


def _parts(size: int) -> list[slice]:
    """`size` boards as slices of `PART` boards, whatever the number of threads."""
    return [slice(begin, min(begin + PART, size)) for begin in range(0, size, PART)]
