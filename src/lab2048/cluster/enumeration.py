"""Enumerate the reachable states on a cluster: `solver.enumeration` with files in place of memory.

The steps and the keys are the same. But here each list is divided among the shards of the next step
when it is written, at keys found from samples of the layer before. Layers change little from one
age to the next, so nobody has to read all lists to find the cuts.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lab2048.cluster import shard_steps
from lab2048.cluster.exchange_files import Files
from lab2048.cluster.shard_steps import SAMPLES, Made, Piece, put
from lab2048.cluster.workers import Task, Team, results
from lab2048.engine.arrays import Words
from lab2048.solver.enumeration import NONE
from lab2048.solver.problem import Problem
from lab2048.solver.table_files import BLOCK_KEYS, blocks_of

SHARD, LIST, PACKED = "shard", "list", "packed"
"""Kinds of files."""
LEAST = 100_000
"""The least number of keys in a shard, unless there is only one."""
MOST = 3_000_000
"""The largest number of keys in a shard. With fewer shards, the next step merges fewer lists."""


def parts_for(keys: int, workers: int, most: int) -> int:
    """The number of shards that keys are divided into."""
    rounds = math.ceil(keys / (workers * most))
    return max(1, min(workers * rounds, keys // LEAST))


class File(NamedTuple):
    """A file of sorted keys."""

    path: str
    keys: int


def count_of(files: Sequence[File]) -> int:
    """The number of keys in all files."""
    return sum(file.keys for file in files)


class Listed(NamedTuple):
    """A sorted list of keys, and the places that divide it among the shards of the next step."""

    path: str
    places: Sequence[int]


def pieces_of(files: Sequence[File], begin: int, end: int) -> list[Piece]:
    """The pieces with the keys from `begin` up to `end`, counted over all files."""
    found, first = [], 0
    for path, keys in files:
        if first < end and first + keys > begin:
            found.append(Piece(path, max(0, begin - first), min(keys, end - first)))
        first += keys
    return found


def even_cuts(keys: Words, weights: Any, parts: int) -> Words:
    """The keys that cut a layer into parts of about equal weight, from sorted samples of it."""
    if not len(keys):
        return NONE
    before = np.cumsum(weights) - weights
    targets = np.arange(1, parts) * (before[-1] + weights[-1]) / parts
    return np.asarray(keys[np.minimum(np.searchsorted(before, targets), len(keys) - 1)])


class FarEnumeration:
    """The layers of a problem, youngest first, as files that the workers of a team write."""

    def __init__(self, problem: Problem, team: Team, work: Path) -> None:
        self.problem, self.team, self._work = problem, team, work
        self.age = 0
        self._files = Files(work, team)
        self._states: list[Listed] = []
        self._younger: list[File] = []
        self._state_cuts, self._after_cuts = NONE, NONE

    def go_on_from(self, age: int, younger: Words, youngest: Words) -> None:
        """Resume at an age, given the afterstates of the two ages before it."""
        self.age = age - 2
        parts = parts_for(len(younger), self.team.workers, MOST)
        self._younger = [self._saved("youngest", youngest)]
        listed = self._saved("younger", younger)
        self._state_cuts = self._after_cuts = even_cuts(younger, np.ones(len(younger)), parts)
        places = np.searchsorted(younger, self._after_cuts).tolist()
        self._spawned(self._spawn([Listed(listed.path, [0, *places, len(younger)])]))
        self.age = age

    def _saved(self, name: str, keys: Words) -> File:
        """Write keys to a file."""
        path = self._files.new(LIST, self._name(name, 0)).path
        put(path, keys)
        return File(path, len(keys))

    def _name(self, what: str, part: int) -> str:
        return f"{self.age}-{what}-{part}"

    def __iter__(self) -> Iterator[FarLayer]:
        moving = self._move()
        try:
            while self._is_more():
                states = moving.shards()
                self._state_cuts = self._cuts(moving)
                spawning = self._spawn(moving.lists())
                # packing keeps workers busy while the next step is planned here
                blocks = self._pack(states)
                afters = self._spawned(spawning)
                packed = self.team.begin(
                    shard_steps.pack_all_afters,
                    pieces_of(afters, 0, count_of(afters)),
                    self._files.new(PACKED, self._name("afters", 0)).path,
                )
                layer = FarLayer(self.age, states, afters, blocks, packed, self._files)
                self.age += 2
                moving = self._move()  # before this layer is written: workers need not wait
                yield layer
        finally:  # if the caller stops early, the step under way is abandoned
            self._files.clear()

    def _is_more(self) -> bool:
        """Whether there are states of this age, or may be of the next."""
        return count_of(self._younger) > 0 or any(listed.places[-1] for listed in self._states)

    def _pack(self, states: Sequence[File]) -> list[Task]:
        """Begin to compress the keys of a layer."""
        keys = count_of(states)
        size = BLOCK_KEYS * max(1, math.ceil(blocks_of(keys) / self.team.workers))
        return [
            self.team.begin(
                shard_steps.pack_blocks,
                pieces_of(states, begin, min(begin + size, keys)),
                self._files.new(PACKED, self._name("states", begin)).path,
            )
            for begin in range(0, keys, size)
        ]

    def _move(self) -> Merging:
        """Begin to merge the states of this age, and to list their afterstates."""
        more: list[tuple[Any, ...]] = [() for _ in self._states[0].places[1:]]
        return self._merge(shard_steps.move, "states", self._states, self._after_cuts, more)

    def _spawn(self, lists: Sequence[Listed]) -> Merging:
        """Begin to merge the afterstates of this age, and to list the states of the next."""
        parts = len(lists[0].places) - 1
        bounds = np.linspace(0, count_of(self._younger), parts + 1).astype(int).tolist()
        # to even out the work, shards of low keys (with more empty cells) get those of high keys
        younger = [(pieces_of(self._younger, *bound),) for bound in pairwise(bounds)][::-1]
        return self._merge(shard_steps.spawn, "afters", lists, self._state_cuts, younger)

    def _spawned(self, spawning: Merging) -> list[File]:
        """Wait for the afterstates of this age."""
        self._younger = spawning.shards()
        self._after_cuts = self._cuts(spawning)
        self._states = spawning.lists()
        return self._younger

    def _merge(
        self,
        step: Callable[..., Made],
        name: str,
        lists: Sequence[Listed],
        cuts: Words,
        more: Sequence[tuple[Any, ...]],
    ) -> Merging:
        """Begin to merge lists, shard by shard."""
        tasks = []
        for part, extra in enumerate(more):
            pieces = [Piece(each.path, each.places[part], each.places[part + 1]) for each in lists]
            outs = (self._files.new(kind, self._name(name, part)) for kind in (SHARD, LIST))
            tasks.append(self.team.begin(step, self.problem, pieces, *extra, cuts, *outs))
        return Merging(self._files, lists, tasks)

    def _cuts(self, merging: Merging) -> Words:
        """The cuts of the next layer into shards that take equally long, by samples of this one."""
        keys = np.concatenate([each.sample for each in merging.made])
        # the time grows with the keys merged and the keys listed
        weights = [
            np.full(len(each.sample), (each.keys + each.places[-1]) / SAMPLES)
            for each in merging.made
        ]
        parts = parts_for(sum(each.keys for each in merging.made), self.team.workers, MOST)
        return even_cuts(keys, np.concatenate(weights), parts)


class Merging:
    """A merge step that is under way."""

    def __init__(self, files: Files, merged: Sequence[Listed], tasks: Sequence[Task]) -> None:
        self._files, self._merged, self._tasks = files, merged, tasks
        self.made: list[Made] = []

    def shards(self) -> list[File]:
        """Wait for the shards, and release the lists that they were merged from."""
        self.made = results(self._tasks)
        for listed in self._merged:
            self._files.done_with(LIST, listed.path)
        return [File(self._out(part, -2), each.keys) for part, each in enumerate(self.made)]

    def lists(self) -> list[Listed]:
        """The lists that were written along with the shards."""
        return [Listed(self._out(part, -1), each.places) for part, each in enumerate(self.made)]

    def _out(self, part: int, which: int) -> str:
        return str(self._tasks[part].args[which].path)


class FarLayer:
    """A layer in files, which a team compresses along with other work."""

    def __init__(
        self,
        age: int,
        states: Sequence[File],
        afters: Sequence[File],
        blocks: Sequence[Task],
        packed: Task,
        files: Files,
    ) -> None:
        self.age, self.states, self.afters = age, count_of(states), count_of(afters)
        self._shards = [file.path for file in (*states, *afters)]
        self._blocks, self._packed, self._files = blocks, packed, files

    def blocks(self) -> list[tuple[int, bytes]]:
        """The first key and the compressed bytes of each block; their files are removed."""
        found = []
        for task in self._blocks:
            heads = task.result()
            with open(task.args[-1], "rb") as file:
                found += [(first, file.read(size)) for first, size in heads]
            os.unlink(task.args[-1])
        return found

    def packed_afters(self) -> bytes:
        """The packed afterstates; to be called last, for it releases the files of the shards."""
        self._packed.result()
        path = Path(self._packed.args[-1])
        found = path.read_bytes()
        path.unlink()
        for shard in self._shards:
            self._files.done_with(SHARD, shard)
        return found
