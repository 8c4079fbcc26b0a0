"""The trainer: what all training runs have in common, whatever the algorithm.

It takes steps until the goal is reached, logs records, writes a checkpoint every few minutes and at
the end, measures the player against a table, and shuts down cleanly on a signal. The learner
(`learner`) defines a step.
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
from lab2048.learn.checkpoint import MEASURED, Logs, Record, Saver, alone
from lab2048.learn.learner import DivergedError, Goal, Learner
from lab2048.learn.network_files import FILE, network_folder
from lab2048.learn.result import TrainedRun
from lab2048.learn.resume import Callbacks, Make, Plan
from lab2048.learn.settings import Facts
from lab2048.solver.table import Table

STOPS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""Signals that ask a process to end; Windows does not have all of them."""


def train_planned(
    plan: Plan, goal: Goal, table: Table | None, make: Make | None, hear: Callbacks
) -> TrainedRun:
    """Train until the goal is reached or the run is stopped; by a signal, `KeyboardInterrupt`."""
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
    """Measures a learner against a table, and adds up the time that this takes.

    Every record is measured, exactly or by judged games, as the learner decides. If the last one
    was not measured exactly, the exact value is computed at the end, after the last checkpoint, for
    it may take minutes.
    """

    def __init__(self, table: Table) -> None:
        self.table, self.seconds = table, 0.0

    def record(self, learner: Learner[Any]) -> Record:
        """Return the measurement as fields of a record."""
        began = time.perf_counter()
        found = learner.measure(self.table)
        self.seconds += time.perf_counter() - began
        return found

    def at_end(self, learner: Learner[Any], records: list[Record]) -> Facts | None:
        """Return the exact distance from perfect play; None if it is too costly."""
        last = records[-1] if records else {}
        if "exact" in last and last[learner.settings.counted] == learner.done:
            return dict(last["exact"])
        learner.say("measuring exactly how far it is from perfect play")
        began = time.perf_counter()
        found = learner.measure_at_end(self.table)
        self.seconds += time.perf_counter() - began
        return found


def introduce(name: str, learner: Learner[Any], goal: Goal, say: Callable[[str], object]) -> None:
    """Tell the user what is about to be trained, and from where it resumes."""
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
    """Take steps until the goal is reached or the run is stopped. Return all records of the run.

    After an error the state is saved all the same, but diverged weights never overwrite the last
    good checkpoint.
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
    """Have the learner take a step, and count the time unless it has done so itself."""
    before, began = learner.seconds, time.perf_counter()
    learner.step(goal)
    if learner.seconds == before:
        learner.seconds += time.perf_counter() - began


def record_of(learner: Learner[Any], measure: Measurement | None) -> Record:
    """Return the record of the last steps, measured unless the run is being stopped."""
    told = learner.record()
    if "mean" not in told and "loss" not in told:
        raise TypeError(f"a record of {learner.kind} has neither `mean` nor `loss`: {told}")
    counted = learner.settings.counted
    found = {counted: learner.done, "seconds": round(learner.seconds, 3), **told}
    if measure is not None and not learner.stopped:
        found.update(measure.record(learner))
    return found


def is_unmeasured(records: list[Record], learner: Learner[Any]) -> bool:
    """Return whether the latest record lacks a measurement because the run was stopped."""
    if not records or records[-1][learner.settings.counted] != learner.done:
        return False
    return not any(name in records[-1] for name in MEASURED)


def check_room(needed: int, folder: Path) -> None:
    """Raise an `OSError` if the disk has no room for the network beside its old version."""
    if not needed:
        return
    there = next(each for each in (folder, *folder.parents) if each.exists())
    free = shutil.disk_usage(there).free
    if needed > free:
        why = f"the network may need {size(needed)} of disk, and {size(free)} is free"
        raise OSError(errno.ENOSPC, why, str(there))


@contextmanager
def stopping(learner: Learner[Any], say: Callable[[str], object]) -> Iterator[list[int]]:
    """Stop a run cleanly on Ctrl-C or another signal of `STOPS`; the second one ends it at once.

    Signals that are ignored, as by nohup, stay ignored. Outside the main thread this does nothing.
    It yields a list, to which a signal that arrives is added.
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
