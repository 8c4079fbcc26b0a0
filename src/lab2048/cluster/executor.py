"""The executor of a cluster: large layers are done by Ray workers, small ones by threads here.

Large layers are divided into shards, whose steps are tasks (`shard_steps`) on files in a shared
folder. Small layers take threads less time than distributing them would. Both write the same
files, and each resumes where the other has stopped, as any interrupted solve is resumed. So only
the folder of the table has to survive.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from lab2048.cluster import shard_steps
from lab2048.cluster.enumeration import FarEnumeration
from lab2048.cluster.induction import FarInduction
from lab2048.cluster.workers import Team
from lab2048.solver.executor import LAST_START, Layers, Progress, ThreadExecutor
from lab2048.solver.problem import Problem
from lab2048.solver.table_files import SHARDS, age_of
from lab2048.solver.table_writer import LayerReader, Packed
from lab2048.solver.threads import WorkerThreads
from lab2048.solver.value_writer import ValueWriter

LARGE = 1_000_000
"""Layers of more states than this are distributed."""


class RayExecutor:
    """The workers of a team, and threads here for small layers. All see the table's folder."""

    def __init__(
        self,
        problem: Problem,
        folder: Path,
        threads: WorkerThreads,
        *,
        team: Team,
        large: int | None = None,
    ) -> None:
        self.problem, self.folder, self.threads = problem, folder, threads
        self.team, self.large = team, LARGE if large is None else large
        self._here = ThreadExecutor(problem, folder, threads)
        # new in each run: lost tasks of an earlier run may still write to theirs
        self.work = folder / SHARDS / secrets.token_hex(4)

    def prepare(self) -> None:
        """Compile all kernels, here and on the workers, and make the folder for files of tasks."""
        shutil.rmtree(self.folder / SHARDS, ignore_errors=True)
        self.work.mkdir(parents=True)
        self.team.run(shard_steps.prepare, [(self.problem,) for _ in range(self.team.workers)])
        self._here.prepare()

    def layers(self, states: Sequence[int]) -> Layers:
        """The next layers that are large, by the team, or small, by threads."""
        if len(states) > LAST_START + 2 and max(states[-2:]) > self.large:
            far = FarEnumeration(self.problem, self.team, self.work)
            return Layers(far.go_on_from, iter(far), self._until_small())
        return self._here.layers(states)._replace(hands_over=self._is_large)

    def _is_large(self, layer: Packed) -> bool:
        """Whether the team takes over after a layer."""
        return layer.age > age_of(LAST_START + 2) and layer.states > self.large

    def _until_small(self) -> Callable[[Packed], bool]:
        """The test whether threads take over after a layer: it and the one before are small."""
        before = self.large + 1

        def is_small(layer: Packed) -> bool:
            nonlocal before
            small = max(before, layer.states) <= self.large
            before = layer.states
            return small

        return is_small

    def value(self, reader: LayerReader, writer: ValueWriter, progress: Progress) -> None:
        """Value the next layers that are small, by threads, or large, by the team."""
        counts = writer.record.data["states"]
        left = len(counts) - writer.record.data["valued"]
        here = _stretch(left, lambda number: not self._is_far(counts, number))
        if here < left:
            self._here.value_down_to(here, reader, writer, progress)
            writer.commit()
        else:
            last = _stretch(left, lambda number: self._is_far(counts, number))
            team = self.team, self.work, self.threads
            FarInduction(self.problem, *team, reader, writer).value(last, progress)

    def _is_far(self, counts: Sequence[int], number: int) -> bool:
        """Whether the team values a layer."""
        done_here = number <= LAST_START or number + 2 >= len(counts)
        return not done_here and max(counts[number : number + 2]) > self.large


def _stretch(left: int, wanted: Callable[[int], bool]) -> int:
    """The lowest layer of the unbroken run of wanted layers below `left`; `left` if it is empty."""
    last = left
    while last > 0 and wanted(last - 1):
        last -= 1
    return last
