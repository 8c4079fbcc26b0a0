"""Backward induction on a cluster: `solver.induction` with indexes in files that machines map.

A layer's index is one file. A shard that has all keys of its regions writes their lines itself. On
boards where a few regions have most of the keys such shards are too few or too uneven for a large
team; then layers are divided evenly, and the index is filled, region by region, in a separate
step.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from heapq import heapreplace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from lab2048.cluster import shard_steps
from lab2048.cluster.checksum import joined_crc
from lab2048.cluster.enumeration import parts_for
from lab2048.cluster.exchange_files import Files
from lab2048.cluster.shard_steps import Afters, Kept, Out, Place, States, Valued
from lab2048.cluster.workers import Task, Team, results
from lab2048.engine.arrays import ranks_of
from lab2048.solver.enumeration import Mover, afterstates
from lab2048.solver.executor import Progress, Step
from lab2048.solver.key_file import PackedAfters, pack_afters
from lab2048.solver.keys import FIRST, LINE, REGIONS, lines_for, region_shift
from lab2048.solver.problem import Problem
from lab2048.solver.table_files import BLOCK_KEYS, KEYS, SCRATCH, age_of
from lab2048.solver.table_writer import LayerReader
from lab2048.solver.threads import WorkerThreads
from lab2048.solver.value_writer import ValueWriter

INDEX = "index"
MOST = 1_000_000
"""The largest number of keys in a shard."""
SAMPLES = 256
"""Number of afterstates of a layer that are sampled to estimate its work."""
UNEVEN = 1.25
"""How many times as long the last worker may take for shards to have whole regions."""


# -- keys of a layer -----------------------------------------------------------------------------


class Source(Protocol):
    """The keys of a layer, in a file."""

    count: int

    def key(self, place: int) -> int:
        """The key at a place."""

    def below(self, key: int) -> int:
        """The number of keys below this one."""

    def cuts(self, parts: int) -> list[int]:
        """The places that divide the keys into parts of equal work."""

    def range(self, begin: int, end: int) -> States | Afters:
        """A range of the keys, for a task to load."""


class StateSource:
    """The states of a layer."""

    def __init__(self, folder: Path, reader: LayerReader, number: int) -> None:
        self._path, self._keys, self._number = folder / KEYS, reader.keys, number
        self.count = reader.keys.counts[number]

    def key(self, place: int) -> int:
        """The key at a place."""
        block, rest = divmod(place, BLOCK_KEYS)
        return int(self._keys.block(self._number, block)[rest])

    def below(self, key: int) -> int:
        """The number of keys below this one."""
        return self._keys.below(self._number, key)

    def cuts(self, parts: int) -> list[int]:
        """The places that divide the keys into parts of equal work: all keys are alike."""
        return [self.count * part // parts for part in range(1, parts)]

    def range(self, begin: int, end: int) -> States:
        """A range of the keys, for a task to load."""
        first, last = begin // BLOCK_KEYS, -(-end // BLOCK_KEYS)
        start = self._keys.starts[self._number]
        heads = self._keys.blocks[start + first : start + last].tobytes()
        sizes = [min(BLOCK_KEYS, self.count - BLOCK_KEYS * block) for block in range(first, last)]
        return States(str(self._path), heads, sizes, begin - BLOCK_KEYS * first, begin, end)


class AfterSource:
    """The afterstates of a layer."""

    def __init__(self, folder: Path, reader: LayerReader, number: int, cells: int) -> None:
        self._path = str(folder / SCRATCH)
        self._cells = cells
        self._place = reader.scratch_place(number)
        offset, size = self._place
        self._packed = PackedAfters(np.memmap(self._path, np.uint8, "r", offset, (size,)))
        self.count = len(self._packed)

    def key(self, place: int) -> int:
        """The key at a place."""
        return int(self._packed.some(np.array([place]))[0])

    def below(self, key: int) -> int:
        """The number of keys below this one."""
        return self._packed.below(key)

    def cuts(self, parts: int) -> list[int]:
        """The places that divide the keys into parts of equal work: it grows with empty cells."""
        if parts == 1:
            return []
        places = np.linspace(0, self.count - 1, SAMPLES).astype(np.int64)
        cells = ranks_of(self._packed.some(places), self._cells)
        work = np.cumsum(1 + np.count_nonzero(cells == 0, axis=1))
        wanted = work[-1] * np.arange(1, parts) / parts
        found: list[int] = np.interp(wanted, work, places).astype(np.int64).tolist()
        return found

    def range(self, begin: int, end: int) -> Afters:
        """A range of the keys, for a task to load."""
        return Afters(self._path, *self._place, begin, end)


# -- indexes -------------------------------------------------------------------------------------


class Lot(NamedTuple):
    """A range of the keys of a layer, and where they go in its index."""

    begin: int
    end: int
    place: Place | None
    """None if other shards fill the index."""

    @property
    def size(self) -> int:
        """The number of keys."""
        return self.end - self.begin

    def of(self, source: Source) -> States | Afters:
        """The keys, for a task to load."""
        return source.range(self.begin, self.end)


class Plan(NamedTuple):
    """How a layer is divided, and its index filled."""

    path: str
    shards: list[Lot]
    fillers: list[Lot]
    """Shards that fill the index in a separate step; none if `shards` fill it."""


def planned(source: Source, file: Out, parts: int, workers: int, shift: int) -> Plan:
    """Plan up to `parts` shards, and make an index without keys."""
    path = file.path
    targets = source.cuts(parts)
    first_regions = sorted({source.key(place) >> shift for place in targets})
    starts = [(source.below(region << shift), region) for region in first_regions]
    inner = [start for start in starts if start[0] > 0]
    words, lots = FIRST, []
    for (begin, first), (end, last) in pairwise([(0, 0), *inner, (source.count, REGIONS)]):
        lots.append(Lot(begin, end, Place(path, words, (first, last))))
        words += LINE * lines_for(end - begin)
    _make_index(file, words, shift)
    even = [Lot(*bound, None) for bound in pairwise([0, *targets, source.count])]
    if longest(lots, workers) <= UNEVEN * longest(even, workers):
        return Plan(path, lots, [])
    return Plan(path, even, lots)


def longest(lots: Sequence[Lot], workers: int) -> int:
    """The number of keys of the busiest worker, if the largest lots are assigned first."""
    load = [0] * workers
    for size in sorted((lot.size for lot in lots), reverse=True):
        heapreplace(load, load[0] + size)
    return max(load)


def _make_index(out: Out, words: int, shift: int) -> None:
    """Make the file of an index; lines and heads from an earlier use will be overwritten."""
    if out.spare is not None:
        os.rename(out.spare, out.path)
    head = np.zeros(LINE, np.uint64)
    head[4] = shift
    file = os.open(out.path, os.O_WRONLY | os.O_CREAT, 0o644)
    try:
        os.ftruncate(file, max(8 * words, os.fstat(file).st_size))
        os.pwrite(file, head.tobytes(), 0)
    finally:
        os.close(file)


# -- layers --------------------------------------------------------------------------------------


class Half(NamedTuple):
    """The states or the afterstates of a layer, and how they are to be valued."""

    source: Source
    plan: Plan
    kept: list[Kept]
    """Files for their values; the last has them as float64."""


class FarInduction:
    """The values of large layers, oldest first, by a team."""

    def __init__(
        self,
        problem: Problem,
        team: Team,
        work: Path,
        threads: WorkerThreads,
        reader: LayerReader,
        writer: ValueWriter,
    ) -> None:
        self.problem, self.team, self.threads = problem, team, threads
        self._files = Files(work, team, together=True)
        self.reader, self.writer, self.record = reader, writer, writer.record
        self._shift = int(region_shift(problem.rules.cells))
        self._sound: dict[int, Task] = {}

    def value(self, last: int, progress: Progress) -> None:
        """Value layers, oldest first, down to one of them.

        Plans are made, and finished layers recorded, while the team is at work.
        """
        data = self.record.data
        left = len(data["states"]) - data["valued"]
        done, total = sum(data["states"][left:]), sum(data["states"])
        four, two = (self._index_again(number) for number in (left + 1, left))
        noting: Future[None] | None = None
        afters = self._afters(left - 1)
        tasks = self._begin(shard_steps.value_afters, afters, two, four)
        for number in range(left - 1, last - 1, -1):
            states = self._states(number)
            self._end(afters, tasks)
            self._files.done_with(INDEX, four)
            tasks = self._begin(shard_steps.value_states, states, afters.plan.path)
            coming = self._afters(number - 1) if number > last else afters
            valued = _together(self._end(states, tasks), states)
            two, four = states.plan.path, two
            if coming is not afters:
                tasks = self._begin(shard_steps.value_afters, coming, two, four)
            self._clear(afters)
            afters = coming
            if noting is not None:  # one at a time, in order
                noting.result()
            noting = self.threads.aside(self._note, number, valued)
            done += data["states"][number]
            progress(Step("values", age_of(number), data["states"][number], done, total))
        if noting is not None:
            noting.result()
        self.writer.commit()
        for path in (two, four):
            os.unlink(path)
        self._files.clear()

    def _note(self, number: int, valued: Valued) -> None:
        """Record that a layer has its values."""
        terminals = self.record.data["terminals"] + valued.terminals
        self.writer.note_written(number, valued.crcs, terminals)
        if self.record.is_due:
            self.writer.commit()

    def _afters(self, number: int) -> Half:
        """The afterstates of a layer, and how they are to be valued."""
        self._see_to_afters(number)
        source = AfterSource(self.record.folder, self.reader, number, self.problem.rules.cells)
        plan = self._plan(f"{number}-afters", source)
        return Half(source, plan, [Kept(f"{plan.path}-values", "<f8", 0)] if plan.fillers else [])

    def _states(self, number: int) -> Half:
        """The states of a layer, and how they are to be valued."""
        source = StateSource(self.record.folder, self.reader, number)
        plan = self._plan(f"{number}-states", source)
        return Half(source, plan, [Kept(*place) for place in self.writer.places(number)])

    def _plan(self, name: str, source: Source) -> Plan:
        """How a layer is divided among the team."""
        parts = parts_for(source.count, self.team.workers, MOST)
        return planned(source, self._files.new(INDEX, name), parts, self.team.workers, self._shift)

    def _begin(self, step: Callable[..., Any], half: Half, *indexes: str) -> list[Task]:
        """Begin to value keys by the indexes of their successors, the largest shards first."""
        lots = half.plan.shards
        tasks = {
            lot: self.team.begin(
                step, self.problem, lot.of(half.source), *indexes, lot.place, half.kept
            )
            for lot in sorted(lots, key=lambda lot: -lot.size)
        }
        return [tasks[lot] for lot in lots]

    def _end(self, half: Half, tasks: Sequence[Task]) -> list[Any]:
        """Wait for the results of the shards, and for their index."""
        found = results(tasks)
        self._fill(half.plan, half.source, half.kept[-1:])
        return found

    def _clear(self, afters: Half) -> None:
        """Release the files of afterstates once the states of their age have values."""
        self._files.done_with(INDEX, afters.plan.path)
        for file in afters.kept:
            os.unlink(file.path)

    def _fill(self, plan: Plan, source: Source, kept: Sequence[Kept]) -> None:
        """Fill an index that the shards have not filled, from their values in a file."""
        for file in kept:
            jobs = [(self.problem, lot.of(source), file, lot.place) for lot in plan.fillers]
            self.team.run(shard_steps.fill_index, jobs)

    def _index_again(self, number: int) -> str:
        """Rebuild the index of a layer from its values on disk; return its path."""
        source = StateSource(self.record.folder, self.reader, number)
        plan = self._plan(f"{number}-states", source)
        again = plan._replace(fillers=plan.fillers or plan.shards)
        self._fill(again, source, [Kept(*self.writer.places(number)[-1])])
        return plan.path

    def _see_to_afters(self, number: int) -> None:
        """Recompute the afterstates of a layer if they are lost, and begin to check the next."""
        sound = self._sound.pop(number, None) or self._look_at(number)
        if number > 0:
            self._sound[number - 1] = self._look_at(number - 1)
        if not sound.result():
            edges, _ = Mover(self.problem)(self.reader.keys.layer(number))
            offset, _ = self.reader.scratch_place(number)
            path = str(self.record.folder / SCRATCH)
            shard_steps.put_at(path, pack_afters(afterstates(edges)), offset)

    def _look_at(self, number: int) -> Task:
        """Begin to compare the afterstates of a layer with their checksum."""
        place, crc = self.reader.scratch_place(number), self.record.data["scratch"][number][1]
        path = str(self.record.folder / SCRATCH)
        return self.team.begin(shard_steps.is_sound, path, *place, crc)


def _together(found: Sequence[Valued], states: Half) -> Valued:
    """The result of a layer, from those of its shards."""
    crcs = []
    for number, file in enumerate(states.kept):
        item = np.dtype(file.kind).itemsize
        sizes = [item * lot.size for lot in states.plan.shards]
        crcs.append(
            joined_crc(list(zip((each.crcs[number] for each in found), sizes, strict=True)))
        )
    return Valued(sum(each.terminals for each in found), crcs)
