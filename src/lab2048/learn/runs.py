"""A training and its folder: blocks of games until the goal is reached, logs and checkpoints.

The folder of a training has `weights.safetensors`, the network with all that it takes to go on,
written anew every few minutes; `log.jsonl`, a line for each block of games; and what TensorBoard
reads, if that is installed.
"""

from __future__ import annotations

import errno
import json
import math
import re
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lab2048.home import locked, naming, write_atomically
from lab2048.lanes import Counts
from lab2048.learn.training import SHARE, DivergedError, Training, reach_of
from lab2048.learn.weights import FILE, write_weights
from lab2048.wording import size

LOG, LOCK = "log.jsonl", "lock"
SAVE_SECONDS = 300.0
"""How often the network is written to disk, at least; and how much can be lost."""
TRIES, PAUSE = 6, 10.0
"""How often it is tried again at the end if that fails, and after how many seconds."""
SLICE = 1000
"""So many games are played before anything else is looked at, such as the time."""
VISITED = 0.4
"""The share of the weights that a long training of a large network visits, at most."""

Record = dict[str, Any]


@dataclass(frozen=True)
class Goal:
    """How long a training lasts: so many games, or so many seconds."""

    games: int | None = None
    seconds: float | None = None

    def share(self, training: Training) -> float:
        """How much of it is done."""
        if self.games is not None:
            return training.games / self.games
        assert self.seconds is not None
        return training.seconds / self.seconds

    def share_at(self, training: Training, games: int) -> float:
        """How much of it is done after some games of the block that is being played."""
        return games / self.games if self.games is not None else self.share(training)

    def next_block(self, training: Training, block: int) -> int:
        """How many games come next: up to the next full block, or the end.

        Blocks of 0 games end at 1, 2 and 5 times the powers of ten, from 1000 on.
        """
        if block == 0:
            ends = (n * 10**power for power in range(3, 13) for n in (1, 2, 5))
            games = int(next(end for end in ends if end > training.games)) - training.games
        else:
            games = block - training.games % block
        return games if self.games is None else min(games, self.games - training.games)

    def pause(self, training: Training) -> int:
        """After how many games it is time to look up: some time later, or where a phase ends."""
        later = training.games + SLICE
        if self.games is None:
            return later
        turn = math.ceil(SHARE * self.games)
        return min(later, turn) if training.games < turn else later


def block_size(text: str | None, goal: Goal, exact: bool) -> int:
    """How many games a block has, 0 if it is to be `log`; what is measured exactly takes longer."""
    if text == "log":
        return 0
    if text is not None:
        if not re.fullmatch("[0-9]{1,9}", text) or int(text) == 0:
            raise ValueError(f"a block is a number of games, or log, not {text[:40]!r}")
        return int(text)
    if goal.games is None:
        return 10_000 if exact else 1000
    return max(100, goal.games // 10 if exact else min(10_000, goal.games // 100))


def summary(results: Counts, training: Training, seconds: float) -> Record:
    """What is told about a block of games."""
    scores, moves, ranks = results[:, 0], results[:, 1], results[:, 2]
    return {
        "games": training.games,
        "block": len(results),
        "phase": training.settings.method.split("+")[training.phase],
        "seconds": round(training.seconds, 3),
        "mean": float(scores.mean()),
        "max": int(scores.max()),
        "moves": int(moves.sum()),
        "moves_per_second": float(moves.sum() / seconds),
        "reach": reach_of(ranks),
    }


class Logs:
    """The lines of a training, and what TensorBoard reads. A failed write never ends a training."""

    def __init__(self, folder: Path, games: int, say: Callable[[str], object]) -> None:
        self._path = folder / LOG
        self._say = say
        self._failed = False
        self.records = read_log(folder, games)
        self._guard(self._rewrite)
        self._board: Any = None
        with suppress(Exception):  # it is not there, or does not fit what is
            from lab2048.learn.tensorboard import Writer

            self._guard(lambda: setattr(self, "_board", Writer(folder / "tensorboard", games)))

    def add(self, record: Record) -> None:
        """Write a record."""
        self.records.append(record)
        if self._failed:  # there may be half a line
            self._guard(self._rewrite)
        else:
            self._guard(self._append, record)
        if self._board is not None:
            self._guard(self._board.add, record)

    def complete(self, more: Callable[[], Record]) -> None:
        """Add to the last record what is missing."""
        self.records[-1].update(more())
        self._guard(self._rewrite)

    def close(self) -> None:
        """Nothing more will be written."""
        if self._board is not None:
            self._guard(self._board.close)

    def _rewrite(self) -> None:
        """Begin the file with what is known; what came after the checkpoint is forgotten."""
        text = "".join(json.dumps(record) + "\n" for record in self.records)
        write_atomically(self._path, text)

    def _append(self, record: Record) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")

    def _guard(self, write: Callable[..., object], *args: Any) -> None:
        """Write, or say once that it cannot be done."""
        try:
            with naming(self._path):
                write(*args)
        except OSError as error:
            if not self._failed:
                self._say(f"the log cannot be written: {error.filename}: {error.strerror}")
            self._failed = True


def read_log(folder: Path, games: int) -> list[Record]:
    """The records of a training up to a number of games; what is damaged is left out."""
    found = []
    with suppress(OSError):
        for line in (folder / LOG).read_text("utf-8", "replace").splitlines():
            with suppress(ValueError, KeyError, TypeError):
                record = json.loads(line)
                if 0 < record["games"] <= games and is_whole(record):
                    found.append(record)
    return found


def is_whole(record: Record) -> bool:
    """Whether a record has what curves are drawn of."""
    means = [record["mean"], record["exact"]["mean"] if "exact" in record else 0.0]
    return all(isinstance(each, int | float) and math.isfinite(each) for each in means)


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Be the only one who trains what is in a folder."""
    with locked(folder / LOCK, f"the network {folder.name}"):
        for part in folder.glob("*.part"):  # of one that was killed
            part.unlink(missing_ok=True)
        yield


def check_room(training: Training, folder: Path) -> None:
    """An `OSError` if there is no room for the network beside an older one."""
    there = next(each for each in (folder, *folder.parents) if each.exists())
    needed, free = int(VISITED * training.largest), shutil.disk_usage(there).free
    if needed > free:
        why = f"the network may need {size(needed)} of disk, and {size(free)} is free"
        raise OSError(errno.ENOSPC, why, str(there))


def run(
    training: Training,
    goal: Goal,
    folder: Path,
    *,
    block: int,
    tell: Callable[[Record], object],
    say: Callable[[str], object],
    progress: Callable[[int], object],
    measure: Callable[[Training], Record] | None = None,
) -> list[Record]:
    """Train until the goal is reached, or it was stopped; all records of the training.

    `tell` hears of every block, `progress` more often. `measure` adds to what is logged. Whatever
    goes wrong, what was learnt until then is kept.
    """
    logs, saver = Logs(folder, training.games, say), Saver(folder / FILE, say)
    try:
        if measure is not None and is_unmeasured(logs.records, training):
            logs.complete(lambda: measure(training))
        for record in blocks(training, goal, block, saver, progress):
            if measure is not None and not training.stopped:
                record.update(measure(training))
            logs.add(record)
            tell(record)
            saver.save_now_and_then(training)
    except DivergedError:
        raise
    except BaseException:
        with suppress(OSError, MemoryError, ValueError):
            write_weights(folder / FILE, training.stored())
        raise
    finally:
        logs.close()
    saver.save_at_last(training)
    return logs.records


def is_unmeasured(records: Sequence[Record], training: Training) -> bool:
    """Whether the last block was not measured, as if it was stopped just then."""
    return bool(records) and records[-1]["games"] == training.games and "exact" not in records[-1]


def blocks(
    training: Training,
    goal: Goal,
    block: int,
    saver: Saver,
    progress: Callable[[int], object],
) -> Iterator[Record]:
    """Train in blocks of games until the goal is reached, or it was stopped; what each was like."""
    while goal.share(training) < 1 and not training.stopped:
        end, began = training.games + goal.next_block(training, block), training.seconds
        parts = []
        while training.games < end and goal.share(training) < 1 and not training.stopped:
            training.enter(goal.share(training))
            parts.append(training.block(min(end, goal.pause(training)) - training.games, progress))
            if training.games < end:  # a whole block is logged first
                saver.save_now_and_then(training)
        if sum(map(len, parts)):
            results = np.concatenate(parts)
            yield summary(results, training, training.seconds - began)


class Saver:
    """Writes the network every few minutes; if that fails, it is tried again the next time."""

    def __init__(self, path: Path, say: Callable[[str], object]) -> None:
        self._path, self._say, self._last = path, say, time.monotonic()

    def save_now_and_then(self, training: Training) -> None:
        """Write the network if it is time to."""
        if time.monotonic() - self._last < SAVE_SECONDS or training.stopped:
            return
        self._try_to_save(training)

    def save_at_last(self, training: Training) -> None:
        """Write the network; if that fails, it is tried again for a while."""
        for _ in range(TRIES):
            if self._try_to_save(training):
                return
            time.sleep(PAUSE)
        write_weights(self._path, training.stored())

    def _try_to_save(self, training: Training) -> bool:
        """Write the network, or say why not."""
        try:
            write_weights(self._path, training.stored())
        except (OSError, MemoryError) as error:
            why = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else error
            self._say(f"the network cannot be saved now: {why}")
            return False
        finally:
            self._last = time.monotonic()
        return True
