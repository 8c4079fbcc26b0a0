"""A table made by a cluster: who does what, and in which order.

Large layers are divided into shards, whose steps are tasks (`shards`) on files in a shared folder.
Small ones are done here, by threads: they would take less time than to hand them out. Both write
the same files, and one takes up where the other has stopped, as any solve that was cut off is taken
up. So all that has to survive is what is in the folder of the table.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable
from typing import Any

from lab2048.cluster import shards
from lab2048.cluster.layers import FarEnumeration
from lab2048.cluster.team import Team
from lab2048.cluster.values import FarInduction
from lab2048.solve.making import LayerReader, Packed, ValueWriter
from lab2048.solve.solver import LAST_START, Job, Layers, Progress
from lab2048.solve.store import SHARDS, age_of

LARGE = 1_000_000
"""Layers of more states than this are handed out."""


class FarJob(Job):
    """A table that a cluster makes, in a folder that all of it sees."""

    def __init__(self, *args: Any, team: Team, large: int | None = None) -> None:
        super().__init__(*args)
        self.team, self.large = team, LARGE if large is None else large
        shutil.rmtree(self.path / SHARDS, ignore_errors=True)
        # what a lost task of an earlier run may still write must not get in the way
        self.work = self.path / SHARDS / secrets.token_hex(4)
        self.work.mkdir(parents=True)

    def run(self, progress: Progress) -> dict[str, Any]:
        """Do all that is left to do, and clear away."""
        workers = range(self.team.workers)
        self.team.run(shards.prepare, [(self.problem,) for _ in workers])
        manifest = super().run(progress)
        shutil.rmtree(self.path / SHARDS, ignore_errors=True)
        return manifest

    def enumerate_all(self, progress: Progress) -> None:
        """Write the keys of all layers, here or by the team."""
        data = self.record.data
        while not data["enumerated"]:
            known = data["states"]
            if len(known) > LAST_START + 2 and max(known[-2:]) > self.large:
                far = FarEnumeration(self.problem, self.team, self.work)
                layers = Layers(far.go_on_from, iter(far))
                self.enumerate(layers, progress, self._until_small())
            else:
                self.enumerate(self.by_threads(), progress, self._is_large)

    def _is_large(self, layer: Packed) -> bool:
        """Whether the team goes on after a layer."""
        return layer.age > age_of(LAST_START + 2) and layer.states > self.large

    def _until_small(self) -> Callable[[Packed], bool]:
        """Whether the team has had enough: two layers that are small, one after the other."""
        before = self.large + 1

        def is_small(layer: Packed) -> bool:
            nonlocal before
            small = max(before, layer.states) <= self.large
            before = layer.states
            return small

        return is_small

    def value_all(self, reader: LayerReader, writer: ValueWriter, progress: Progress) -> None:
        """Write the values of all layers, here or by the team."""
        data = self.record.data
        while left := len(data["states"]) - data["valued"]:
            here = self._stretch(left, lambda number: not self._is_far(number))
            if here < left:
                self.value(reader, writer, here, progress)
                writer.commit()
            else:
                team = self.team, self.work, self.crew
                far = FarInduction(self.problem, *team, reader, writer)
                far.value(self._stretch(left, self._is_far), progress)

    def _is_far(self, number: int) -> bool:
        """Whether the team values a layer."""
        data = self.record.data
        done_here = number <= LAST_START or number + 2 >= len(data["states"])
        return not done_here and max(data["states"][number : number + 2]) > self.large

    def _stretch(self, left: int, wanted: Callable[[int], bool]) -> int:
        """The last of the layers, going down from the oldest of those left, that are wanted."""
        last = left
        while last > 0 and wanted(last - 1):
            last -= 1
        return last
