"""Where a solve runs: the protocol of executors, and the executor that uses local threads.

A `Job` (lab2048.solver.job) makes one table: it opens the files, resumes, checks and finishes. It
leaves the work in between, enumerating and valuing layers, to an executor. There are two:
`ThreadExecutor` for this machine and `lab2048.cluster.executor.RayExecutor` for a cluster. They
write the same bytes, and each can resume what the other has begun.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np

from lab2048.engine.arrays import Floats, Words
from lab2048.solver.enumeration import Enumeration, Mover, afterstates
from lab2048.solver.induction import Induction
from lab2048.solver.key_file import joined
from lab2048.solver.problem import Problem
from lab2048.solver.table_files import age_of
from lab2048.solver.table_writer import AHEAD, LayerReader, Packed, PackedLayer
from lab2048.solver.threads import WorkerThreads
from lab2048.solver.value_writer import ValueWriter

LAST_START = 2
"""The last layer that holds starts: two 4s."""


class Step(NamedTuple):
    """The progress of a solve after each layer."""

    stage: str
    """`enumerate`, `values`, or `check`: comparing the files with their checksums."""
    age: int
    layer: int
    """The number of states of this age."""
    done: int
    """States that this stage has done, of all ages."""
    total: int | None
    """The number of states of all ages, once it is known."""


Progress = Callable[[Step], object]


class Layers(NamedTuple):
    """Layers that an executor enumerates, youngest first."""

    go_on_from: Callable[[int, Words, Words], None]
    """Resume at an age, given the afterstates 2 and 4 younger."""
    packed: Iterator[Packed]
    """The layers from there on."""
    hands_over: Callable[[Packed], bool] = lambda layer: False
    """Whether to ask the executor for new `Layers` after this layer."""


class Executor(Protocol):
    """Does the work of one table. It is made for a problem, a folder and worker threads.

    `Job` calls `prepare` once, then `layers` until all are enumerated, then `value` until all have
    values. An executor may split either stage into as many calls as it likes, say to do small
    layers here and large ones elsewhere.
    """

    problem: Problem
    folder: Path
    threads: WorkerThreads
    """Threads of this machine, which also compress, read and write."""

    def prepare(self) -> None:
        """Compile kernels and get ready, before the clock starts."""

    def layers(self, states: Sequence[int]) -> Layers:
        """The next layers, given the number of states of each layer that is already written."""

    def value(self, reader: LayerReader, writer: ValueWriter, progress: Progress) -> None:
        """Value the oldest layer without values, and as many more as it likes.

        On return all values have been passed to the writer; `writer.record` says which layers have
        values.
        """


class ThreadExecutor:
    """Does the work with the threads of this machine."""

    def __init__(self, problem: Problem, folder: Path, threads: WorkerThreads) -> None:
        self.problem, self.folder, self.threads = problem, folder, threads
        self._mover = Mover(problem)

    def prepare(self) -> None:
        """Compile all kernels."""
        Enumeration(self.problem, self.threads)
        Induction(self.problem, self.threads)

    def layers(self, states: Sequence[int]) -> Layers:
        """All remaining layers."""
        found = Enumeration(self.problem, self.threads)
        return Layers(found.go_on_from, (PackedLayer(layer, self.threads) for layer in found))

    def value(self, reader: LayerReader, writer: ValueWriter, progress: Progress) -> None:
        """Value all remaining layers."""
        self.value_down_to(0, reader, writer, progress)

    def value_down_to(
        self, last: int, reader: LayerReader, writer: ValueWriter, progress: Progress
    ) -> None:
        """Value the remaining layers, oldest first, down to layer `last`."""
        data, induction = writer.record.data, Induction(self.problem, self.threads)
        starts = {board.packed for _, _, board in self.problem.starts()}
        left = len(data["states"]) - data["valued"]
        done, total = sum(data["states"][left:]), sum(data["states"])
        induction.terminals = data["terminals"]
        if data["valued"]:
            older = [n for n in (left + 1, left) if n < len(data["states"])]
            found = [(reader.keys.layer(n), writer.carried(n)) for n in older]
            nothing = (np.empty(0, np.uint64), np.empty(0))
            induction.go_on_from(found[-1], found[0] if len(found) > 1 else nothing)
        writing: deque[Future[None]] = deque()
        for number, states, afters in self._ahead(reader, left, last):
            values = induction.step(states, afters)
            known = _starts_among(states, values, starts) if number <= LAST_START else {}
            while writing:  # one at a time, in order
                writing.popleft().result()
            writing.append(
                self.threads.aside(writer.write, number, values, induction.terminals, known)
            )
            done += len(values)
            progress(Step("values", age_of(number), len(values), done, total))
        while writing:
            writing.popleft().result()

    def _ahead(
        self, reader: LayerReader, left: int, last: int
    ) -> Iterator[tuple[int, Words, Words]]:
        """The remaining layers, from the oldest down to layer `last`, read in advance."""
        coming: deque[tuple[int, list[Future[Words]], Future[Words | None]]] = deque()
        for number in range(left - 1, last - AHEAD - 1, -1):
            if number >= last:
                count = reader.keys.blocks_in(number)
                blocks = [self.threads.aside(reader.keys.block, number, n) for n in range(count)]
                coming.append((number, blocks, self.threads.aside(reader.afters, number)))
            if coming and (len(coming) > AHEAD or number < last):
                first, keys, afters = coming.popleft()
                states = joined([block.result() for block in keys])
                yield first, states, kept_or_found(afters.result(), states, self._mover)


def kept_or_found(afters: Words | None, states: Words, mover: Mover) -> Words:
    """The afterstates of states: the stored ones, or if they are lost, computed again."""
    return afterstates(mover(states)[0]) if afters is None else afters


def _starts_among(states: Words, values: Floats, starts: set[int]) -> dict[str, float]:
    """The values of the starts that are in a layer, by their keys."""
    keys = states.tolist()
    return {str(key): float(values[place]) for place, key in enumerate(keys) if key in starts}
