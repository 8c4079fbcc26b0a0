"""The trainer: what all trainings have in common, whatever the algorithm.

It takes steps until the goal is reached, logs a record of them now and then, saves what was learnt
every few minutes and at the end, measures it against a table, and ends in good order when it is
asked to. What a step is, a learner knows (`learner`).
"""

from __future__ import annotations

import errno
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from lab2048.formatting import size
from lab2048.learn.checkpoint import Logs, Record, Saver, alone
from lab2048.learn.learner import DivergedError, Goal, Learner
from lab2048.learn.network_files import FILE, network_folder
from lab2048.learn.result import TrainedRun
from lab2048.learn.resume import Callbacks, Make, Plan
from lab2048.learn.settings import Facts
from lab2048.solver.table import Table

STOPS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""What asks a process to end; Windows does not have all of them."""
MEASURES = ("exact", "bare", "judged")
"""The fields of a record that say how far the player is from perfect play."""


def train_planned(
    plan: Plan, goal: Goal, table: Table | None, make: Make | None, hear: Callbacks
) -> TrainedRun:
    """Train to the end, or until it is stopped; a `KeyboardInterrupt` if a signal did that."""
    folder = network_folder(plan.name)
    measure = None if table is None else Measurement(table)
    with alone(folder):
        learner = plan.begin(make, hear)
        check_room(learner.room, folder)
        introduce(plan.name, learner, goal, hear.say)
        with stopping(learner, hear.say) as asked_to_end:
            records = run(learner, goal, folder, measure=measure, hear=hear)
    if asked_to_end:
        hear.say(f"stopped {learner.where}; `resume=True` goes on from there")
        raise KeyboardInterrupt
    exact = None if measure is None else measure.at_end(learner, records)
    return TrainedRun(
        learner.kind, plan.name, folder, learner.settings, {**learner.facts}, records,
        learner.summary(),
        perfect=None if table is None else table.start_value["start"],
        finished=goal.share(learner) >= 1,
        counts=learner.counts(),
        exact=exact,
        seconds_exact=0.0 if measure is None else measure.seconds,
    )  # fmt: skip


class Measurement:
    """Measures a learner against a table, and counts the time that this takes.

    Every record is measured, exactly or by judged games, as its learner says. What was not measured
    exactly then is so once, at the end: after all was saved, since that may take minutes.
    """

    def __init__(self, table: Table) -> None:
        self.table, self.seconds = table, 0.0

    def record(self, learner: Learner[Any]) -> Record:
        """Return what is to be added to a record."""
        began = time.perf_counter()
        found = learner.measure(self.table)
        self.seconds += time.perf_counter() - began
        return found

    def at_end(self, learner: Learner[Any], records: list[Record]) -> Facts | None:
        """Return the exact distance from perfect play, if it is known or can be."""
        last = records[-1] if records else {}
        if "exact" in last and last[learner.settings.counted] == learner.done:
            return dict(last["exact"])
        learner.say("measuring exactly how far it is from perfect play")
        began = time.perf_counter()
        found = learner.measure_at_end(self.table)
        self.seconds += time.perf_counter() - began
        return found


def introduce(name: str, learner: Learner[Any], goal: Goal, say: Callable[[str], object]) -> None:
    """Say what is about to happen."""
    say(f"{name}: {learner.introduction()}")
    counted = learner.settings.counted
    if goal.share(learner) >= 1:
        say(f"it has had {learner.done:,} {counted} already: there is nothing left to do")
    elif learner.done:
        say(f"going on after {learner.done:,} {counted}")


def run(
    learner: Learner[Any],
    goal: Goal,
    folder: Path,
    *,
    measure: Measurement | None = None,
    hear: Callbacks | None = None,
) -> list[Record]:
    """Take steps until the goal is reached, or it was stopped. Return all records of the training.

    Whatever goes wrong, what was learnt until then is kept; but what has diverged is never saved in
    the place of the last good checkpoint.
    """
    hear = hear or Callbacks()
    logs = Logs(folder, learner.done, hear.say, learner.settings.counted)
    saver = Saver(lambda: learner.save(folder / FILE), hear.say)
    with saver.to_the_end(logs, spoilt=DivergedError):
        if measure is not None and is_unmeasured(logs.records, learner):
            logs.complete(lambda: measure.record(learner))
        learner.start(goal)
        while goal.share(learner) < 1 and not learner.stopped:
            take_step(learner, goal)
            learner.report(goal.share(learner))
            if learner.due(goal):
                record = record_of(learner, measure)
                logs.add(record)
                if hear.on_record(record) is True:
                    learner.stopped = True
            if not learner.stopped:
                saver.save_now_and_then()
    return logs.records


def take_step(learner: Learner[Any], goal: Goal) -> None:
    """Let a learner take a step, and count its time unless it has done so itself."""
    before, began = learner.seconds, time.perf_counter()
    learner.step(goal)
    if learner.seconds == before and not learner.stopped:
        learner.seconds += time.perf_counter() - began


def record_of(learner: Learner[Any], measure: Measurement | None) -> Record:
    """Return the record of the last steps, measured unless it is being stopped."""
    told = learner.record()
    if "mean" not in told and "loss" not in told:
        raise TypeError(f"a record of {learner.kind} has neither `mean` nor `loss`: {told}")
    counted = learner.settings.counted
    found = {counted: learner.done, "seconds": round(learner.seconds, 3), **told}
    if measure is not None and not learner.stopped:
        found.update(measure.record(learner))
    return found


def is_unmeasured(records: list[Record], learner: Learner[Any]) -> bool:
    """Return whether the last record was not measured, as if it was stopped just then."""
    if not records or records[-1][learner.settings.counted] != learner.done:
        return False
    return not any(name in records[-1] for name in MEASURES)


def check_room(needed: int, folder: Path) -> None:
    """Raise an `OSError` if there is no room for the network beside an older one."""
    if not needed:
        return
    there = next(each for each in (folder, *folder.parents) if each.exists())
    free = shutil.disk_usage(there).free
    if needed > free:
        why = f"the network may need {size(needed)} of disk, and {size(free)} is free"
        raise OSError(errno.ENOSPC, why, str(there))


@contextmanager
def stopping(learner: Learner[Any], say: Callable[[str], object]) -> Iterator[list[int]]:
    """Let Ctrl-C end a training in good order, or what else asks it to; the second time at once.

    What is ignored, as by nohup, still is, and only the main thread is told of signals. The list
    that it yields holds the signal that came, if one did.
    """
    came: list[int] = []

    def stop(number: int, frame: object) -> None:
        learner.stopped = True
        came.append(number)
        signal.signal(number, before[number])
        with suppress(RuntimeError):  # Python refuses to write inside a write that was interrupted
            say("stopping")

    main = threading.current_thread() is threading.main_thread()
    heard = [each for each in STOPS if signal.getsignal(each) not in (signal.SIG_IGN, None)]
    before = {number: signal.signal(number, stop) for number in heard if main}
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
