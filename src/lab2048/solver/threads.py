"""Worker threads for the parts of a step, with background tasks to fill the gaps.

A step of a small layer takes a millisecond, and waking a sleeping thread a tenth of that. So idle
worker threads poll for work for a while before they go to sleep, which those of
`concurrent.futures` never do. Background tasks (`aside`) fill the gaps: no step waits for them, and
no thread is idle while there are any.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import numpy as np

from lab2048.engine.arrays import Counts
from lab2048.engine.intrinsics import load_fresh
from lab2048.engine.jit import kernel

T = TypeVar("T")

ENOUGH = 8192
"""The fewest keys per part: sharing out fewer is not worth the cost."""
PATIENCE = 500_000
"""How often a thread polls for work before it goes to sleep: for some tenths of a millisecond."""


@kernel("int64(int64[::1], int64, int64, int64)")
def look_out(box: Counts, place: int, seen: int, patience: int) -> int:
    """Poll until `box[place]` is no longer `seen`, at most `patience` times; return it."""
    found = seen
    while found == seen and patience > 0:
        found = load_fresh(box, place)
        patience -= 1
    return found


class WorkerThreads:
    """A pool of worker threads, the caller's included.

    No more than `threads` ever run: an extra one would take a core from another for longer than
    most steps last. Only the thread that made the pool may give it work.
    """

    def __init__(self, threads: int) -> None:
        self.count = threads
        self._tasks: deque[Callable[[], None]] = deque()
        self._aside: deque[Later[Any]] = deque()
        # place 0: how often work was added; place n: whether helper n is working
        self._box = np.zeros(threads, np.int64)
        self._leaving = False
        self._asleep = 0
        self._wake = threading.Condition()
        self._helpers = [
            threading.Thread(target=self._help, args=(number,), daemon=True)
            for number in range(1, threads)
        ]
        for helper in self._helpers:
            helper.start()

    def __enter__(self) -> WorkerThreads:
        return self

    def __exit__(self, *error: object) -> None:
        self._leaving = True
        self.stop()
        self._call()
        for helper in self._helpers:
            helper.join()

    def parts(self, keys: int) -> int:
        """Return the number of parts that keys are divided into."""
        return max(1, min(self.count, keys // ENOUGH))

    def aside(self, task: Callable[..., T], *args: object) -> Future[T]:
        """Queue a background task for idle threads; asking for its result runs it too."""
        later = Later(self, partial(task, *args))
        self._aside.append(later)
        self._call()
        return later

    def run(self, tasks: Sequence[Callable[[], T]]) -> list[T]:
        """Run all tasks and return their results in order."""
        done = np.zeros(len(tasks), np.int64)
        results: list[Any] = [None] * len(tasks)
        errors: list[BaseException] = []

        def do(number: int) -> None:
            try:
                results[number] = tasks[number]()
            except BaseException as error:
                errors.append(error)
            done[number] = 1

        self._tasks.extend(partial(do, number) for number in range(len(tasks)))
        if len(tasks) > 1:
            self._call()
        try:
            while _work_on(self._tasks):
                pass
            for number in range(len(tasks)):
                while not done[number]:
                    if not _work_on(self._aside):
                        look_out(done, number, 0, PATIENCE)
        except BaseException:
            self.stop()
            raise
        if errors:
            raise errors[0]
        return results

    def stop(self) -> None:
        """Cancel tasks that have not begun, and wait for those that have."""
        self._tasks.clear()
        while self._aside:
            with suppress(IndexError):  # a helper may be faster
                self._aside.popleft().cancel()
        for helper in range(1, self.count):
            while self._box[helper]:
                look_out(self._box, helper, 1, PATIENCE)

    def catch_up(self, wanted: Future[T]) -> None:
        """Run queued tasks until `wanted` is done, or is being done by another thread."""
        while not wanted.done() and _work_on(self._aside):
            pass

    def _call(self) -> None:
        """Tell the helpers that there is work."""
        self._box[0] += 1
        if self._asleep:
            with self._wake:
                self._wake.notify_all()

    def _help(self, place: int) -> None:
        """Run tasks, the parts of a step before background tasks."""
        while not self._leaving:
            seen = int(self._box[0])
            self._box[place] = 1
            while _work_on(self._tasks) or _work_on(self._aside):
                pass
            self._box[place] = 0
            if look_out(self._box, 0, seen, PATIENCE) == seen:
                with self._wake:
                    self._asleep += 1
                    while self._box[0] == seen:
                        self._wake.wait()
                    self._asleep -= 1


class Later(Future[T]):
    """A background task, and its result."""

    def __init__(self, threads: WorkerThreads, task: Callable[[], T]) -> None:
        super().__init__()
        self._threads, self._task = threads, task

    def __call__(self) -> None:
        """Run the task and keep its result or its error."""
        try:
            result = self._task()
        except BaseException as error:
            self.set_exception(error)
        else:
            self.set_result(result)

    def result(self, timeout: float | None = None) -> T:
        """Return the result; the caller runs tasks queued before it if no thread has."""
        self._threads.catch_up(self)
        return super().result(timeout)


def _work_on(jobs: deque[Any]) -> bool:
    """Run the next job; return False if there is none."""
    try:
        job = jobs.popleft()
    except IndexError:
        return False
    job()
    return True
