"""Make a table: enumerate the layers, value them, and keep both safe on the way.

The work is done by an `Executor`, here or on a cluster. Every few seconds what has been written is
brought to the disk and then counted in the record of the work. A run that was cut off is resumed
there, and ends with the same bytes.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from lab2048.engine.arrays import Words
from lab2048.game import Board
from lab2048.game.notation import checked_threads, short
from lab2048.home import locked
from lab2048.remote import cluster_at
from lab2048.solver.enumeration import Mover
from lab2048.solver.executor import (
    Executor,
    Layers,
    Progress,
    Step,
    ThreadExecutor,
    kept_or_found,
)
from lab2048.solver.existing_table import existing_table, remove_unusable
from lab2048.solver.key_file import KeyFile
from lab2048.solver.manifest import check_files, check_identity, description
from lab2048.solver.problem import Problem, start_values
from lab2048.solver.table_files import (
    BLOCK_HEAD,
    BLOCKS,
    FORMAT,
    KEYS,
    KINDS,
    LOCK,
    MANIFEST,
    RUN,
    VALUES,
    TableError,
    age_of,
    blocks_of,
    check_folder,
    checked_kind,
    clear_away,
    default_folder,
    expanded,
    sync,
    write_json,
)
from lab2048.solver.table_size import check_room
from lab2048.solver.table_writer import (
    AHEAD,
    HARDLY_BEGUN,
    KeyWriter,
    LayerReader,
    Packed,
    Record,
)
from lab2048.solver.threads import WorkerThreads
from lab2048.solver.value_file import ValueFile
from lab2048.solver.value_writer import ValueWriter
from lab2048.tabular import Figures

AT_ONCE = 64
"""Layers that are checked between two looks at whether to stop."""

MakeExecutor = Callable[[Problem, Path, WorkerThreads], Executor]
"""An executor's class, or a function that makes one."""


def make_table(  # noqa: PLR0913 -- all but the first two are keywords
    problem: Problem | str,
    folder: Path | str | None = None,
    *,
    values: str = "float64",
    keep: str = "table",
    threads: int | None = None,
    progress: Progress = lambda step: None,
    executor: MakeExecutor = ThreadExecutor,
    replace: bool = False,
    force: bool = False,
    cluster: Any = None,
) -> Figures:
    """Solve a problem into a folder and describe the result, as `lab2048 solve --json` does.

    The name of a board stands for its usual problem. What is already there is used: a finished
    table is only described, a started one is finished. If another process is at work on it, this
    one waits for its end. The work is done by threads of this machine, unless `cluster` is the
    address of a Ray cluster whose machines all see the folder, or an open connection (see
    `connect`); `executor` is another way to do it. A table that cannot be used, of another format
    or damaged, is a `TableError`, unless `replace` says to remove it. One for which the disk seems
    too small is begun only with `force`; otherwise it is a `ValueError`.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     make_table("2x2", Path(folder) / "mine", keep="summary")["states"]
    110
    """
    if not isinstance(problem, Problem):
        problem = Problem.of(problem)
    checked_kind(values)
    if keep not in ("table", "summary"):
        raise ValueError(f"keep is table or summary, not {short(keep)}")
    count = checked_threads(threads)
    path = default_folder(problem, values) if folder is None else expanded(folder)
    identity = {**problem.as_json(), "values": values}
    check_folder(path)
    if replace:
        remove_unusable(path, identity)
    if not force:
        check_room(problem, path, values, keep)
    with locked(path / LOCK, f"the table in {path}", TableError, wait=True):
        manifest = existing_table(path, identity)
        if manifest is None or (manifest["keep"] == "summary" and keep == "table"):
            with (
                cluster_at(cluster, threads, path.parent) as there,
                _told_when_full(path),
                _stopped_between_layers() as look,
                WorkerThreads(count) as workers,
            ):

                def tell(step: Step) -> None:
                    progress(step)
                    look()

                making = there.executor if there else executor
                manifest = Job(making(problem, path, workers), values, keep).run(tell)
                _tidy(path, manifest)
        elif manifest["keep"] == "table":
            _tidy(path, manifest)  # beside a summary there may be a table that was begun
    return Figures(description(path, manifest))


def _tidy(path: Path, manifest: dict[str, Any]) -> None:
    """Remove what is of no use any more when a table is finished."""
    clear_away(path)
    if manifest["keep"] == "summary":
        for name in (KEYS, BLOCKS, VALUES):
            (path / name).unlink(missing_ok=True)


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


class Job:
    """One table in the making."""

    def __init__(
        self,
        executor: Executor,
        values: str = "float64",
        keep: str = "table",
        *,
        is_last: Callable[[Packed], bool] = lambda layer: False,
    ) -> None:
        """Make the table of an executor's problem in its folder, or the layers up to the last."""
        self.executor, self.keep, self._is_last = executor, keep, is_last
        self.problem, self.path, self.threads = executor.problem, executor.folder, executor.threads
        self.identity = {**self.problem.as_json(), "values": values}
        self.record = Record(self.path, self.identity)
        check_identity(self.path, self.record.data, self.identity)

    def run(self, progress: Progress) -> dict[str, Any]:
        """Do everything that is left; the manifest of the table."""
        self.start(progress)
        self.enumerate(progress)
        with self.value_files() as (reader, writer):
            self.value(reader, writer, progress)
        return self.finish(progress)

    # -- the stages ------------------------------------------------------------------------------

    def start(self, progress: Progress) -> None:
        """Get ready, start the clock, and check what an earlier run has written."""
        self.executor.prepare()
        self.record.enter("enumerate")
        if self.record.is_new:  # from now on nobody takes the files for remains of another table
            self.record.commit()
        self._check_taken_up(progress)

    def enumerate(self, progress: Progress) -> None:
        """Write the keys of all layers that are left, youngest first."""
        while not self.record.data["enumerated"]:
            self._write_keys(self.executor.layers(self.record.data["states"]), progress)

    def _write_keys(self, layers: Layers, progress: Progress) -> None:
        """Write the keys of layers, up to one after which the executor hands over."""
        data = self.record.data
        writer = KeyWriter(self.record)
        try:
            if data["states"]:
                layers.go_on_from(age_of(len(data["states"])), *self._two_youngest())
            done, finished = sum(data["states"]), True
            packing: deque[Packed] = deque()
            try:
                for layer in layers.packed:
                    packing.append(layer)
                    if len(packing) > AHEAD:
                        writer.write(packing.popleft())
                    done += layer.states
                    progress(Step("enumerate", layer.age, layer.states, done, None))
                    if self._is_last(layer):
                        break
                    if layers.hands_over(layer):
                        finished = False
                        break
                while packing:
                    writer.write(packing.popleft())
                data["enumerated"] = finished
                writer.commit()
            except BaseException:
                self.threads.stop()
                with suppress(OSError):  # the first error is the one to tell
                    writer.commit()
                raise
        finally:
            writer.close()

    def _two_youngest(self) -> list[Words]:
        """The afterstates of the two layers that were written last, the last one first."""
        reader, mover = LayerReader(self.record), Mover(self.problem)
        number = len(self.record.data["states"])
        found = [
            kept_or_found(reader.afters(n), reader.keys.layer(n), mover)
            for n in (number - 1, number - 2)
        ]
        reader.close()
        return found

    @contextmanager
    def value_files(self) -> Iterator[tuple[LayerReader, ValueWriter]]:
        """The files of the second stage; on leaving, what was written is committed."""
        self.record.enter("values")
        reader = LayerReader(self.record)
        writer = ValueWriter(self.record, self.identity["values"], self.keep == "table")
        try:
            try:
                yield reader, writer
                writer.finish()
            except BaseException:
                self.threads.stop()
                with suppress(OSError):
                    writer.commit()
                raise
        finally:
            reader.close()
            writer.close()

    def value(self, reader: LayerReader, writer: ValueWriter, progress: Progress) -> None:
        """Write the values of all layers that are left, oldest first."""
        data = self.record.data
        while data["valued"] < len(data["states"]):
            self.executor.value(reader, writer, progress)

    # -- the end ---------------------------------------------------------------------------------

    def finish(self, progress: Progress) -> dict[str, Any]:
        """Write what describes the table; from then on it is one, and no summary any more."""
        data, manifest = self.record.data, self._manifest()
        if self.keep == "table":
            self._check_written(manifest, progress)
        self.record.enter("values")
        spent = {stage: round(seconds, 3) for stage, seconds in data["seconds"].items()}
        run = {
            "seconds": {**spent, "total": round(sum(data["seconds"].values()), 3)},
            "threads": self.threads.count,
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
            self.threads.run([partial(check, number) for number in numbers])
            done, last = sum(counts[: numbers.stop]), numbers[-1]
            progress(Step("check", age_of(last), counts[last], done, sum(counts)))


def peak_memory() -> int | None:
    """The most memory this process has had, in bytes; None where the system does not tell."""
    try:
        import resource
    except ImportError:
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
