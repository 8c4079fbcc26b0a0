"""Make a table: enumerate the layers, value them, and commit both along the way.

An `Executor` does the work, here or on a cluster. Every few seconds, what has been written is
flushed to the disk and then marked as valid in the record of the work. An interrupted run resumes
from there, and ends with the same bytes.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from lab2048.engine.arrays import Words
from lab2048.game import Board
from lab2048.game.notation import checked_threads
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
    checked_keep,
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
"""Layers checked per batch; progress and Ctrl-C are handled between batches."""

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

    The name of a board stands for its usual problem. An existing table is used: a finished one is
    only described, an unfinished one is resumed. If another process is working on it, this one
    waits until that has finished. Threads of this machine do the work, unless `cluster` is the
    address of a Ray cluster whose machines all see the folder, or an open connection (see
    `connect`); `executor` provides another executor. A table that cannot be used, of another format
    or damaged, is a `TableError`; with `replace` it is removed. If the disk seems too small, it is
    a `ValueError`; with `force` the table is begun nevertheless.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     make_table("2x2", Path(folder) / "mine", keep="summary")["states"]
    110
    """
    if not isinstance(problem, Problem):
        problem = Problem.of(problem)
    checked_kind(values)
    checked_keep(keep)
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
            _tidy(path, manifest)  # not beside a summary: a table may have been begun there
    return Figures(description(path, manifest))


def _tidy(path: Path, manifest: dict[str, Any]) -> None:
    """Remove the files that a finished table no longer needs."""
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
    """Defer Ctrl-C until a layer is finished; a second one takes effect at once.

    Yields a function to call between layers. In threads other than the main one it does nothing.
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
    before = signal.getsignal(signal.SIGINT) or signal.SIG_DFL  # None: not set from Python
    signal.signal(signal.SIGINT, note)
    try:
        yield look
    finally:
        signal.signal(signal.SIGINT, before)
    look()  # it may have come after the last layer


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
        """Prepare to make the table of an executor's problem in its folder.

        `is_last` says after which layer enumeration ends early.
        """
        self.executor, self.keep, self._is_last = executor, keep, is_last
        self.problem, self.path, self.threads = executor.problem, executor.folder, executor.threads
        self.identity = {**self.problem.as_json(), "values": values}
        self.record = Record(self.path, self.identity)
        check_identity(self.path, self.record.data, self.identity)

    def run(self, progress: Progress) -> dict[str, Any]:
        """Do all remaining work; return the manifest of the table."""
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
        if self.record.is_new:  # files without a record look like remains of another table
            self.record.commit()
        self._check_taken_up(progress)

    def enumerate(self, progress: Progress) -> None:
        """Write the keys of all remaining layers, youngest first."""
        while not self.record.data["enumerated"]:
            self._write_keys(self.executor.layers(self.record.data["states"]), progress)

    def _write_keys(self, layers: Layers, progress: Progress) -> None:
        """Write the keys of layers, up to one after which the executor hands over."""
        data = self.record.data
        writer = KeyWriter(self.record)
        try:
            if data["states"]:
                layers.go_on_from(age_of(len(data["states"])), *self._last_two_afterstates())
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
                with suppress(OSError):  # only the first error is reported
                    writer.commit()
                raise
        finally:
            writer.close()

    def _last_two_afterstates(self) -> list[Words]:
        """The afterstates of the two layers that were written last, the very last one first."""
        number, mover = len(self.record.data["states"]), Mover(self.problem)
        with closing(LayerReader(self.record)) as reader:
            return [
                kept_or_found(reader.afters(n), reader.keys.layer(n), mover)
                for n in (number - 1, number - 2)
            ]

    @contextmanager
    def value_files(self) -> Iterator[tuple[LayerReader, ValueWriter]]:
        """The files of the second stage; on exit, what was written is committed."""
        self.record.enter("values")
        kind, whole = self.identity["values"], self.keep == "table"
        with (
            closing(LayerReader(self.record)) as reader,
            closing(ValueWriter(self.record, kind, whole)) as writer,
        ):
            try:
                yield reader, writer
                writer.finish()
            except BaseException:
                self.threads.stop()
                with suppress(OSError):
                    writer.commit()
                raise

    def value(self, reader: LayerReader, writer: ValueWriter, progress: Progress) -> None:
        """Write the values of all remaining layers, oldest first."""
        data = self.record.data
        while data["valued"] < len(data["states"]):
            self.executor.value(reader, writer, progress)

    # -- the end ---------------------------------------------------------------------------------

    def finish(self, progress: Progress) -> dict[str, Any]:
        """Check the files that are kept, then write the manifest, which completes the table."""
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
        """The manifest, made from the record of what was written, not from the files."""
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
        """Raise a `TableError` if the files have changed since they were written."""
        layers = manifest["layers"]
        check_files(self.path, manifest)
        kind, states = self.identity["values"], layers["states"]
        with (
            closing(KeyFile(self.path, states)) as keys,
            closing(ValueFile(self.path, kind, states, layers["value_crcs"])) as values,
        ):

            def check(number: int) -> None:
                keys.check(number)
                values.check(number)

            self._check_layers(check, progress)

    def _check_layers(self, check: Callable[[int], None], progress: Progress) -> None:
        """Check all layers, on all threads."""
        counts = self.record.data["states"]
        for first in range(0, len(counts), AT_ONCE):
            numbers = range(first, min(first + AT_ONCE, len(counts)))
            self.threads.run([partial(check, number) for number in numbers])
            done, last = sum(counts[: numbers.stop]), numbers[-1]
            progress(Step("check", age_of(last), counts[last], done, sum(counts)))


def peak_memory() -> int | None:
    """The peak memory of this process in bytes; None where the system does not report it."""
    try:
        import resource
    except ImportError:
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
