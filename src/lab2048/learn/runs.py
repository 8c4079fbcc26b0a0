"""A training of an n-tuple network: blocks of games until the goal is reached."""

from __future__ import annotations

import errno
import math
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lab2048.lanes import Counts
from lab2048.learn.files import FILE
from lab2048.learn.folder import Logs, Record, Saver
from lab2048.learn.training import SHARE, DivergedError, Training, reach_of
from lab2048.learn.weights import write_weights
from lab2048.notation import counted
from lab2048.wording import size

SLICE = 1000
"""So many games are played before anything else is looked at, such as the time."""
VISITED = 0.4
"""The share of the weights that a long training of a large network visits, at most."""


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
        try:
            return counted(text, high=10**9)
        except ValueError:
            raise ValueError(f"a block is a number of games, or log, not {text[:40]!r}") from None
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

    def write() -> None:
        write_weights(folder / FILE, training.stored())

    logs, saver = Logs(folder, training.games, say), Saver(write, say)
    with saver.to_the_end(logs, spoilt=DivergedError):
        if measure is not None and is_unmeasured(logs.records, training):
            logs.complete(lambda: measure(training))
        for record in blocks(training, goal, block, saver, progress):
            if measure is not None and not training.stopped:
                record.update(measure(training))
            logs.add(record)
            tell(record)
            if not training.stopped:
                saver.save_now_and_then()
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
            if training.games < end and not training.stopped:  # a whole block is logged first
                saver.save_now_and_then()
        if sum(map(len, parts)):
            results = np.concatenate(parts)
            yield summary(results, training, training.seconds - began)
