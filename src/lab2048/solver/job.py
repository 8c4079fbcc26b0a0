"""Make a table: enumerate the layers, value them, and keep both safe on the way.

The work is done by a `Crew`, which compresses, reads and writes along with it. Every few seconds
what has been written is brought to the disk and then counted in the record of the work. A run that
was cut off is taken up there, and ends with the same bytes.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lab2048.board import Words
from lab2048.game import Board
from lab2048.home import locked
from lab2048.notation import checked_threads, short
from lab2048.solve.crew import Crew
from lab2048.solve.keys import Floats
from lab2048.solve.layers import Enumeration, Mover, afterstates
from lab2048.solve.making import (
    AHEAD,
    HARDLY_BEGUN,
    KeyWriter,
    LayerReader,
    Packed,
    PackedLayer,
    Record,
    ValueWriter,
)
from lab2048.solve.manifest import (
    check_files,
    check_identity,
    description,
    is_whole,
    load_manifest,
)
from lab2048.solve.problem import Problem, start_values
from lab2048.solve.store import (
    BLOCK_HEAD,
    BLOCKS,
    FORMAT,
    KEYS,
    KINDS,
    LOCK,
    MANIFEST,
    RUN,
    VALUES,
    KeyFile,
    TableError,
    ValueFile,
    age_of,
    blocks_of,
    check_folder,
    checked_kind,
    clear_away,
    default_folder,
    discard_older,
    expanded,
    joined,
    sync,
    write_json,
)
from lab2048.solve.values import Induction


class Step(NamedTuple):
    """What `make_table` tells about its progress after each layer."""

    stage: str
    """`enumerate`, `values`, or `check`: what is in the files is compared with what was written."""
    age: int
    layer: int
    """How many states have this age."""
    done: int
    """States of all ages that this stage has done."""
    total: int | None
    """Of how many, if that is known by now."""


Progress = Callable[[Step], object]

AT_ONCE = 64
"""Layers that are checked between two looks at whether to stop."""
LAST_START = 2
"""The last layer that holds starts: two 4s."""


def make_table(
    problem: Problem | str,
    folder: Path | str | None = None,
    *,
    values: str = "float64",
    keep: str = "table",
    threads: int | None = None,
    progress: Progress = lambda step: None,
    job: Callable[..., Job] | None = None,
) -> dict[str, Any]:
    """Solve a problem into a folder and describe the result, as `lab2048 solve --json` does.

    The name of a board stands for its usual problem. What is already there is used: a finished
    table is only described, a started one is finished. If another process is at work on it, this
    one waits for its end. It is a `Job` for this machine unless another is given.
    """
    if not isinstance(problem, Problem):
        problem = Problem.of(problem)
    checked_kind(values)
    if keep not in ("table", "summary"):
        raise ValueError(f"keep is table or summary, not {short(keep)}")
    workers = checked_threads(threads)
    path = default_folder(problem, values) if folder is None else expanded(folder)
    identity = {**problem.as_json(), "values": values}
    check_folder(path)
    with locked(path / LOCK, f"the table in {path}", TableError, wait=True):
        discard_older(path, identity)
        manifest = load_manifest(path)
        if manifest is not None:
            check_identity(path, manifest, identity)
            if not is_whole(path, manifest):
                manifest = None
        if manifest is None or (manifest["keep"] == "summary" and keep == "table"):
            with _told_when_full(path), _stopped_between_layers() as look, Crew(workers) as crew:
                (path / MANIFEST).unlink(missing_ok=True)

                def tell(step: Step) -> None:
                    progress(step)
                    look()

                manifest = (job or Job)(problem, path, identity, keep, crew).run(tell)
        clear_away(path)
        if manifest["keep"] == "summary":
            for name in (KEYS, BLOCKS, VALUES):
                (path / name).unlink(missing_ok=True)
    return description(path, manifest)


@contextmanager
def _told_when_full(path: Path) -> Iterator[None]:
    """Say what to do when the disk is full."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            text = f"{os.strerror(error.errno)}; make room and run the command again: it goes on"
            raise OSError(error.errno, text, str(path)) from None
        raise


@contextmanager
def _stopped_between_layers() -> Iterator[Callable[[], None]]:
    """Let Ctrl-C wait until a layer is finished; a second one does not wait.

    What is given is to be called between layers. Only the main thread can do this.
    """
    stop = False

    def note(number: int, frame: object) -> None:
        nonlocal stop
        stop = True
        signal.signal(signal.SIGINT, before)

    def look() -> None:
        if stop:
            raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    before = signal.signal(signal.SIGINT, note)
    try:
        yield look
    finally:
        signal.signal(signal.SIGINT, before)


class Layers(NamedTuple):
    """An enumeration: how to take it up at an age, and the layers from there on."""

    go_on_from: Callable[[int, Words, Words], None]
    """With an age, and the afterstates of the two ages before it."""
    packed: Iterator[Packed]


class Job:
    """One table in the making."""

    def __init__(
        self, problem: Problem, path: Path, identity: dict[str, Any], keep: str, crew: Crew
    ) -> None:
        self.problem, self.path, self.keep, self.crew = problem, path, keep, crew
        self.identity = identity
        self.record = Record(path, identity)
        check_identity(path, self.record.data, identity)
        self._mover = Mover(problem)

    def run(self, progress: Progress) -> dict[str, Any]:
        """Do all that is left to do; the manifest of the table."""
        # kernels are compiled before the clock starts
        Enumeration(self.problem, self.crew)
        Induction(self.problem, self.crew)
        self.record.enter("enumerate")
        self._check_taken_up(progress)
        if not self.record.data["enumerated"]:
            self.enumerate_all(progress)
        self.record.enter("values")
        self._value(progress)
        return self.finish(progress)

    # -- the stages ------------------------------------------------------------------------------

    def enumerate_all(self, progress: Progress) -> None:
        """Write the keys of all layers."""
        self.enumerate(self.by_threads(), progress)

    def is_last(self, layer: Packed) -> bool:
        """Whether to end with a layer, though more may follow."""
        return False

    def by_threads(self) -> Layers:
        """The enumeration by the crew."""
        layers = Enumeration(self.problem, self.crew)
        return Layers(layers.go_on_from, (PackedLayer(layer, self.crew) for layer in layers))

    def enumerate(
        self,
        layers: Layers,
        progress: Progress,
        until: Callable[[Packed], bool] = lambda layer: False,
    ) -> None:
        """Write the keys of layers, youngest first, up to one after which another goes on."""
        data = self.record.data
        writer = KeyWriter(self.record)
        try:
            if data["states"]:
                reader = LayerReader(self.record)
                number = len(data["states"])
                younger, youngest = (
                    self.or_again(reader.afters(n), reader.keys.layer(n))
                    for n in (number - 1, number - 2)
                )
                reader.close()
                layers.go_on_from(age_of(number), younger, youngest)
            done, finished = sum(data["states"]), True
            packing: deque[Packed] = deque()
            try:
                for layer in layers.packed:
                    packing.append(layer)
                    if len(packing) > AHEAD:
                        writer.write(packing.popleft())
                    done += layer.states
                    progress(Step("enumerate", layer.age, layer.states, done, None))
                    if self.is_last(layer):
                        break
                    if until(layer):
                        finished = False
                        break
                while packing:
                    writer.write(packing.popleft())
                data["enumerated"] = finished
                writer.commit()
            except BaseException:
                self.crew.stop()
                with suppress(OSError):  # the first error is the one to tell
                    writer.commit()
                raise
        finally:
            writer.close()

    def _value(self, progress: Progress) -> None:
        """Write the values of all layers."""
        reader = LayerReader(self.record)
        writer = ValueWriter(self.record, self.identity["values"], self.keep == "table")
        try:
            try:
                self.value_all(reader, writer, progress)
                writer.finish()
            except BaseException:
                self.crew.stop()
                with suppress(OSError):
                    writer.commit()
                raise
        finally:
            reader.close()
            writer.close()

    def value_all(self, reader: LayerReader, writer: ValueWriter, progress: Progress) -> None:
        """Write the values of all layers that are left, oldest first."""
        self.value(reader, writer, 0, progress)

    def value(
        self, reader: LayerReader, writer: ValueWriter, last: int, progress: Progress
    ) -> None:
        """Write the values of layers, oldest first, down to one of them."""
        data, induction = self.record.data, Induction(self.problem, self.crew)
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
                self.crew.aside(writer.write, number, values, induction.terminals, known)
            )
            done += len(values)
            progress(Step("values", age_of(number), len(values), done, total))
        while writing:
            writing.popleft().result()

    def _ahead(
        self, reader: LayerReader, left: int, last: int
    ) -> Iterator[tuple[int, Words, Words]]:
        """The layers from the oldest of those left down to the last, read in advance."""
        coming: deque[tuple[int, list[Future[Words]], Future[Words | None]]] = deque()
        for number in range(left - 1, last - AHEAD - 1, -1):
            if number >= last:
                count = reader.keys.blocks_in(number)
                blocks = [self.crew.aside(reader.keys.block, number, n) for n in range(count)]
                coming.append((number, blocks, self.crew.aside(reader.afters, number)))
            if coming and (len(coming) > AHEAD or number < last):
                first, keys, afters = coming.popleft()
                states = joined([block.result() for block in keys])
                yield first, states, self.or_again(afters.result(), states)

    def or_again(self, afters: Words | None, states: Words) -> Words:
        """Afterstates that were kept, or else those of the states."""
        return afterstates(self._mover(states)[0]) if afters is None else afters

    # -- the end ---------------------------------------------------------------------------------

    def finish(self, progress: Progress) -> dict[str, Any]:
        """Write what describes the table; from then on it is one."""
        data, manifest = self.record.data, self._manifest()
        if self.keep == "table":
            self._check_written(manifest, progress)
        self.record.enter("values")
        spent = {stage: round(seconds, 3) for stage, seconds in data["seconds"].items()}
        run = {
            "seconds": {**spent, "total": round(sum(data["seconds"].values()), 3)},
            "threads": self.crew.threads,
            "runs": data["runs"],
            "peak_memory_bytes": peak_memory(),
        }
        write_json(self.path / RUN, run)
        sync(self.path)
        write_json(self.path / MANIFEST, manifest)
        sync(self.path)
        return manifest

    def _manifest(self) -> dict[str, Any]:
        """The manifest of what was written, by the record of it and not by what is in the files."""
        data, kind = self.record.data, KINDS[self.identity["values"]]
        table = self.keep == "table"
        states, blocks = sum(data["states"]), sum(map(blocks_of, data["states"]))
        files = {
            KEYS: {"bytes": data["keys_bytes"]},
            BLOCKS: {"bytes": BLOCK_HEAD.itemsize * blocks, "crc": data["blocks_crc"]},
            VALUES: {"bytes": kind.itemsize * states},
        }
        return {
            "format": FORMAT,
            **self.identity,
            "keep": self.keep,
            "states": states,
            "afterstates": sum(data["afterstates"]),
            "terminals": data["terminals"],
            "max_age": age_of(max(n for n, count in enumerate(data["states"]) if count)),
            "value": start_values(self.problem, self._start),
            "layers": {
                "states": data["states"],
                "afterstates": data["afterstates"],
                "value_crcs": data["crcs"][::-1] if table else None,
            },
            "files": files if table else {},
        }

    def _start(self, board: Board) -> float:
        """The value of a start."""
        try:
            return float(self.record.data["starts"][str(board.packed)])
        except KeyError:
            raise TableError(
                f"{self.path} holds no value of {board}; remove it and solve it again"
            ) from None

    # -- checks ----------------------------------------------------------------------------------

    def _check_taken_up(self, progress: Progress) -> None:
        """Check the keys that an earlier run wrote; its values are checked by `ValueWriter`."""
        if len(self.record.data["states"]) <= HARDLY_BEGUN:
            return
        reader = LayerReader(self.record)
        try:
            self._check_layers(reader.keys.check, progress)
        except TableError as error:
            raise TableError(f"{error}; remove {self.path} and solve it again") from None
        finally:
            reader.close()

    def _check_written(self, manifest: dict[str, Any], progress: Progress) -> None:
        """Compare the files with what was written; a `TableError` if they have changed since."""
        layers = manifest["layers"]
        check_files(self.path, manifest)
        keys = KeyFile(self.path, layers["states"])
        values = ValueFile(
            self.path, self.identity["values"], layers["states"], layers["value_crcs"]
        )

        def check(number: int) -> None:
            keys.check(number)
            values.check(number)

        try:
            self._check_layers(check, progress)
        finally:
            keys.close()
            values.close()

    def _check_layers(self, check: Callable[[int], None], progress: Progress) -> None:
        """Check all layers, on all threads."""
        counts = self.record.data["states"]
        for first in range(0, len(counts), AT_ONCE):
            numbers = range(first, min(first + AT_ONCE, len(counts)))
            self.crew.run([partial(check, number) for number in numbers])
            done, last = sum(counts[: numbers.stop]), numbers[-1]
            progress(Step("check", age_of(last), counts[last], done, sum(counts)))


def _starts_among(states: Words, values: Floats, starts: set[int]) -> dict[str, float]:
    """The values of those starts that are in a layer, by their keys."""
    keys = states.tolist()
    return {str(key): float(values[place]) for place, key in enumerate(keys) if key in starts}


def peak_memory() -> int | None:
    """The most memory this process has had, in bytes; None where the system does not tell."""
    try:
        import resource
    except ImportError:
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
