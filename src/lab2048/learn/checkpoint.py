"""The folder of a training run: its lock, its log and its checkpoints.

It holds `weights.safetensors`, the checkpoint, replaced every few minutes; `log.jsonl`, one record
per line; and event files for TensorBoard, if that is installed. Every record has the count that its
learner keeps, such as games, epochs or moves; it grows from record to record.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from lab2048.home import locked, naming, write_atomically

LOG, LOCK = "log.jsonl", "lock"
SAVE_SECONDS = 300.0
"""The time between two checkpoints, and so the training that a crash can lose; a step is finished
before a checkpoint is written."""
TRIES, PAUSE = 6, 10.0
"""The number of retries if the last checkpoint cannot be written, and seconds before each."""

MEASURED = ("exact", "judged", "bare")
"""The fields of a record that have a mean score measured against a table, the most precise first.
Judged games are `judged`, or `bare` if the player is a search without its search."""

Record = dict[str, Any]


class Logs:
    """The records of a run, in its log and for TensorBoard. A failed write never ends a run."""

    def __init__(
        self, folder: Path, done: int, say: Callable[[str], object], counted: str = "games"
    ) -> None:
        self._path = folder / LOG
        self._say = say
        self._failed: set[str] = set()
        """What the last write could not be added to."""
        self.records = read_log(folder, done, counted)
        self._guard("log", self._rewrite)
        self._board: Any = None
        self._guard("TensorBoard file", self._open_board, folder / "tensorboard", done, counted)

    def _open_board(self, folder: Path, done: int, counted: str) -> None:
        """Open an event file for TensorBoard, if that is installed."""
        try:
            from lab2048.learn.tensorboard import Writer

            self._board = Writer(folder, done, counted)
        except (ImportError, OSError) as error:
            if isinstance(error, OSError):
                raise
        except Exception as error:  # such as an incompatible protobuf
            self._say(f"TensorBoard does not work here, so it gets no curves: {error}")

    def add(self, record: Record) -> None:
        """Add a record."""
        self.records.append(record)
        if "log" in self._failed:  # the file may end in half a line
            self._guard("log", self._rewrite)
        else:
            self._guard("log", self._append, record)
        if self._board is not None:
            self._guard("TensorBoard file", self._board.add, flat(record, "/", deep=True))

    def complete(self, more: Callable[[], Record]) -> None:
        """Add missing fields to the last record."""
        self.records[-1].update(more())
        self._guard("log", self._rewrite)

    def close(self) -> None:
        """Close the event file."""
        if self._board is not None:
            self._guard("TensorBoard file", self._board.close)

    def _rewrite(self) -> None:
        """Write the whole log again; at the start, this drops records later than the checkpoint."""
        text = "".join(json.dumps(record) + "\n" for record in self.records)
        write_atomically(self._path, text)

    def _append(self, record: Record) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")

    def _guard(self, what: str, write: Callable[..., object], *args: Any) -> None:
        """Call `write`; the first of several times that it fails, say so."""
        try:
            with naming(self._path):
                write(*args)
        except OSError as error:
            if what not in self._failed:
                self._say(f"the {what} cannot be written: {error.filename}: {error.strerror}")
            self._failed.add(what)
        else:
            self._failed.discard(what)


def read_log(folder: Path, done: int, counted: str = "games") -> list[Record]:
    """Return the records of a run up to a count, without damaged ones."""
    found = []
    with suppress(OSError):
        for line in (folder / LOG).read_text("utf-8", "replace").splitlines():
            with suppress(ValueError, KeyError, TypeError):
                record = json.loads(line)
                if 0 < record[counted] <= done and is_whole(record):
                    found.append(record)
    return found


def is_whole(record: Record) -> bool:
    """Return whether a record has finite values of all that curves are drawn of."""
    drawn = [record["mean"] if "mean" in record else record["loss"]]
    drawn += [record[name]["mean"] for name in MEASURED if name in record]
    return all(isinstance(each, int | float) and math.isfinite(each) for each in drawn)


def flat(record: Record, separator: str = ".", deep: bool = False) -> dict[str, Any]:
    """Return the numbers and strings of a record, and the numbers of nested records.

    The latter get names such as `exact.mean`; `deep` includes all levels, not only the first.

    >>> flat({"phase": "tc", "exact": {"mean": 60.5, "reach": {"8": 0.9}}})
    {'phase': 'tc', 'exact.mean': 60.5}
    """
    found: dict[str, Any] = {}
    for name, value in record.items():
        if isinstance(value, dict):
            inside = flat(value, separator, deep) if deep else value
            numbers = {key: each for key, each in inside.items() if isinstance(each, int | float)}
            found |= {f"{name}{separator}{key}": each for key, each in numbers.items()}
        elif isinstance(value, int | float | str):
            found[name] = value
    return found


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Lock the folder of a run, so that no other process trains it."""
    with locked(folder / LOCK, f"the network {folder.name}"):
        for part in folder.glob("*.part"):  # left by a process that was killed
            part.unlink(missing_ok=True)
        yield


class Saver:
    """Writes a checkpoint every few minutes; after a failure it tries again the next time."""

    def __init__(self, write: Callable[[], object], say: Callable[[str], object]) -> None:
        self._write, self._say, self._last = write, say, time.monotonic()

    @contextmanager
    def to_the_end(self, logs: Logs, spoilt: type[Exception] | None = None) -> Iterator[None]:
        """Write the network at the end, after an error too, unless that is of type `spoilt`."""
        try:
            yield
        except BaseException as error:
            if spoilt is None or not isinstance(error, spoilt):
                with suppress(OSError, MemoryError, ValueError):
                    self._write()
            raise
        finally:
            logs.close()
        self._save_at_last()

    def save_now_and_then(self) -> None:
        """Write the network if the last checkpoint is old enough."""
        if time.monotonic() - self._last >= SAVE_SECONDS:
            self._try_to_save()

    def _save_at_last(self) -> None:
        """Write the network; after a failure, retry for a while."""
        for _ in range(TRIES):
            if self._try_to_save():
                return
            time.sleep(PAUSE)
        self._write()

    def _try_to_save(self) -> bool:
        """Write the network, or say why that failed. Return whether it was written."""
        try:
            self._write()
        except (OSError, MemoryError) as error:
            why = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else error
            self._say(f"the network cannot be saved now: {why}")
            return False
        finally:
            self._last = time.monotonic()
        return True
