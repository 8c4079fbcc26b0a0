"""Every reachable state, by a team: `solve.layers` with files in place of memory.

The steps are the same, and so are the keys. But here a list is cut where the shards of the next
step begin before it is written, by samples of the layer before: layers change little from one age
to the next, and so nobody has to look into all lists to find out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lab2048.board import Words
from lab2048.cluster import shards
from lab2048.cluster.shards import SAMPLES, Made, Piece, put
from lab2048.cluster.team import Task, Team
from lab2048.solve.layers import NONE
from lab2048.solve.problem import Problem
from lab2048.solve.store import BLOCK_KEYS, blocks_of

LEAST = 100_000
"""Keys of a shard, at least."""
MOST = 4_000_000
"""And at most: a worker takes about 150 bytes a key."""


def parts_for(keys: int, workers: int) -> int:
    """Into how many shards so many keys are divided."""
    rounds = math.ceil(keys / (workers * MOST))
    return max(1, min(workers * rounds, keys // LEAST))


class File(NamedTuple):
    """A file of sorted keys."""

    path: str
    keys: int


class Listed(NamedTuple):
    """A sorted list of keys, and where the shards of the next step begin in it, and end."""

    path: str
    places: Sequence[int]


def pieces_of(files: Sequence[File], begin: int, end: int) -> list[Piece]:
    """The keys from one place up to another in all files together."""
    found, first = [], 0
    for path, keys in files:
        if first < end and first + keys > begin:
            found.append(Piece(path, max(0, begin - first), min(keys, end - first)))
        first += keys
    return found


def even_cuts(keys: Words, weights: Any, parts: int) -> Words:
    """The keys that cut a layer into parts of about the same size, by sorted samples of it."""
    if not len(keys):
        return NONE
    before = np.cumsum(weights) - weights
    targets = np.arange(1, parts) * (before[-1] + weights[-1]) / parts
    return np.asarray(keys[np.minimum(np.searchsorted(before, targets), len(keys) - 1)])


class FarEnumeration:
    """The layers of a problem, youngest first, as files that a team makes."""

    def __init__(self, problem: Problem, team: Team, work: Path) -> None:
        self.problem, self.team, self._work = problem, team, work
        self.age = 0
        self._states: list[Listed] = []
        self._younger: list[File] = []
        self._state_cuts, self._after_cuts = NONE, NONE

    def go_on_from(self, age: int, younger: Words, youngest: Words) -> None:
        """Take up the work at an age, with the afterstates of the two ages before it."""
        self.age = age - 2
        parts = parts_for(len(younger), self.team.workers)
        self._younger = [self._saved("youngest", youngest)]
        listed = self._saved("younger", younger)
        self._state_cuts = self._after_cuts = even_cuts(younger, np.ones(len(younger)), parts)
        places = np.searchsorted(younger, self._after_cuts).tolist()
        self._spawn([Listed(listed.path, [0, *places, len(younger)])])
        self.age = age

    def _saved(self, name: str, keys: Words) -> File:
        """Keys that are here, in a file."""
        path = self._path(name, 0)
        put(path, keys)
        return File(path, len(keys))

    def _path(self, name: str, part: int) -> str:
        return str(self._work / f"{self.age}-{name}-{part}")

    def __iter__(self) -> Iterator[FarLayer]:
        while any(listed.places[-1] for listed in self._states) or self._younger_keys():
            states, lists = self._move()
            blocks = [
                self.team.begin(shards.pack_blocks, pieces_of(states, begin, end), path)
                for begin, end, path in self._packs(states)
            ]
            afters = self._spawn(lists)
            packed = self._path("packed-afters", 0)
            count = sum(file.keys for file in afters)
            pieces = pieces_of(afters, 0, count)
            yield FarLayer(
                self.age,
                states,
                afters,
                blocks,
                self.team.begin(shards.pack_all_afters, pieces, packed),
            )
            self.age += 2

    def _younger_keys(self) -> int:
        return sum(file.keys for file in self._younger)

    def _packs(self, states: Sequence[File]) -> list[tuple[int, int, str]]:
        """The keys that are compressed by each task, and where it puts them."""
        keys = sum(file.keys for file in states)
        size = BLOCK_KEYS * max(1, math.ceil(blocks_of(keys) / self.team.workers))
        return [
            (begin, min(begin + size, keys), self._path("blocks", begin))
            for begin in range(0, keys, size)
        ]

    def _move(self) -> tuple[list[File], list[Listed]]:
        """The states of this age, and the lists of their afterstates."""
        lists = self._states
        made = self._step(shards.move, "states", lists, [() for _ in lists[0].places[1:]])
        self._state_cuts = self._cuts(made)
        return self._files("states", made), self._lists("states", made)

    def _spawn(self, lists: Sequence[Listed]) -> list[File]:
        """The afterstates of this age; keeps the lists of the states that come from them."""
        parts = len(lists[0].places) - 1
        bounds = np.linspace(0, self._younger_keys(), parts + 1).astype(int).tolist()
        younger = [(pieces_of(self._younger, *bound),) for bound in pairwise(bounds)]
        made = self._step(shards.spawn, "afters", lists, younger)
        self._after_cuts = self._cuts(made)
        self._states, self._younger = self._lists("afters", made), self._files("afters", made)
        return self._younger

    def _step(
        self,
        step: Callable[..., Made],
        name: str,
        lists: Sequence[Listed],
        more: Sequence[tuple[Any, ...]],
    ) -> list[Made]:
        """Merge lists shard by shard; they are removed when all is done."""
        cuts = self._after_cuts if name == "states" else self._state_cuts
        jobs = []
        for part, extra in enumerate(more):
            pieces = [Piece(each.path, each.places[part], each.places[part + 1]) for each in lists]
            files = self._path(name, part), self._path(f"{name}-list", part)
            jobs.append((self.problem, pieces, *extra, cuts, *files))
        made: list[Made] = self.team.run(step, jobs)
        for each in lists:
            Path(each.path).unlink(missing_ok=True)
        return made

    def _files(self, name: str, made: Sequence[Made]) -> list[File]:
        return [File(self._path(name, part), each.keys) for part, each in enumerate(made)]

    def _lists(self, name: str, made: Sequence[Made]) -> list[Listed]:
        return [
            Listed(self._path(f"{name}-list", part), each.places) for part, each in enumerate(made)
        ]

    def _cuts(self, made: Sequence[Made]) -> Words:
        """Where the next layer is cut, by what this one is like."""
        keys = np.concatenate([each.sample for each in made])
        weights = [np.full(len(each.sample), each.keys / SAMPLES) for each in made]
        parts = parts_for(sum(each.keys for each in made), self.team.workers)
        return even_cuts(keys, np.concatenate(weights), parts)


class FarLayer:
    """A layer in files, which a team compresses along with other work."""

    def __init__(
        self,
        age: int,
        states: Sequence[File],
        afters: Sequence[File],
        blocks: Sequence[Task],
        packed: Task,
    ) -> None:
        self.age = age
        self.states = sum(file.keys for file in states)
        self.afters = sum(file.keys for file in afters)
        self._files = [Path(file.path) for file in (*states, *afters)]
        self._blocks, self._packed = blocks, packed

    def blocks(self) -> list[tuple[int, bytes]]:
        """The first key of each block, and the block."""
        found = []
        for task in self._blocks:
            heads, path = task.result(), Path(task.args[-1])
            with path.open("rb") as file:
                found += [(first, file.read(size)) for first, size in heads]
            path.unlink()
        return found

    def packed_afters(self) -> bytes:
        """The afterstates. They are the last that is asked for: the files may go."""
        self._packed.result()
        path = Path(self._packed.args[-1])
        found = path.read_bytes()
        for each in (path, *self._files):
            each.unlink(missing_ok=True)
        return found
