"""Threads that work on the parts of a step, and meanwhile on what can wait.

A step of a small layer takes a millisecond, and waking a sleeping thread a tenth of that. So
threads of a crew that have nothing to do look out for work for a while before they go to sleep.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from lab2048.intrinsics import load_fresh
from lab2048.jit import kernel

T = TypeVar("T")
Counts = NDArray[np.int64]

ENOUGH = 8192
"""Fewer keys than this are not worth the trouble of sharing them out."""
PATIENCE = 100_000
"""How often a thread looks out for work before it goes to sleep; a few tenths of a millisecond."""


@kernel("int64(int64[::1], int64, int64, int64)")
def look_out(box: Counts, place: int, seen: int, patience: int) -> int:
    """The number at a place of the box as soon as it is another, or the same after a while."""
    found = seen
    while found == seen and patience > 0:
        found = load_fresh(box, place)
        patience -= 1
    return found


class Crew:
    """So many threads, the caller's among them.

    There are never more at work: one too many would take a core from another for longer than most
    steps last. Only the thread that made the crew may give it work.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._aside: deque[Callable[[], object]] = deque()
        self._jobs: deque[Callable[[], object]] = deque()
        # place 0: the number of the present round; place n: the last round that helper n finished
        self._box = np.zeros(threads, np.int64)
        self._asleep = 0
        self._wake = threading.Condition()
        self._helpers = [
            threading.Thread(target=self._help, args=(number,), daemon=True)
            for number in range(1, threads)
        ]
        for helper in self._helpers:
            helper.start()

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *error: object) -> None:
        self._begin_round(-1)
        for helper in self._helpers:
            helper.join()

    def parts(self, keys: int) -> int:
        """Into how many parts so many keys are divided."""
        return max(1, min(self.threads, keys // ENOUGH))

    def aside(self, task: Callable[..., T], *args: object) -> Future[T]:
        """Have something done along with the next step, or when its result is asked for."""
        future: Future[T] = Later(self)
        self._aside.append(partial(_fulfil, future, task, *args))
        return future

    def run(self, tasks: Sequence[Callable[[], T]]) -> list[T]:
        """Do all tasks, and what was put aside; the results of the tasks in order."""
        futures: list[Future[T]] = [Future() for _ in tasks]
        jobs, self._aside = self._aside, deque()
        jobs.extend(partial(_fulfil, f, task) for f, task in zip(futures, tasks, strict=True))
        if len(jobs) == 1 or self.threads == 1:
            _work_off(jobs)
        else:
            self._jobs = jobs
            number = int(self._box[0]) + 1
            self._begin_round(number)
            try:
                _work_off(jobs)
            finally:  # nobody is at work when this is left, whatever happens
                for helper in range(1, self.threads):
                    while (last := int(self._box[helper])) != number:
                        look_out(self._box, helper, last, PATIENCE)
        return [future.result() for future in futures]

    def _begin_round(self, number: int) -> None:
        """Call the helpers; a negative number sends them home."""
        self._box[0] = number
        if self._asleep:
            with self._wake:
                self._wake.notify_all()

    def _help(self, place: int) -> None:
        """Take part in every round."""
        seen = 0
        while True:
            found = int(look_out(self._box, 0, seen, PATIENCE))
            if found == seen:
                with self._wake:
                    self._asleep += 1
                    while self._box[0] == seen:
                        self._wake.wait()
                    self._asleep -= 1
                found = int(self._box[0])
            if found < 0:
                return
            _work_off(self._jobs)
            seen = found
            self._box[place] = found


class Later(Future[T]):
    """The result of something put aside."""

    def __init__(self, crew: Crew) -> None:
        super().__init__()
        self._crew = crew

    def result(self, timeout: float | None = None) -> T:
        """The result; if it is not there yet, all that was put aside is done first."""
        if not self.done():
            self._crew.run([])
        return super().result(timeout)


def _work_off(jobs: deque[Callable[[], object]]) -> None:
    """Do one job after the other until none is left."""
    while True:
        try:
            job = jobs.popleft()
        except IndexError:
            return
        job()


def _fulfil(future: Future[T], task: Callable[..., T], *args: object) -> None:
    """Do a task and keep its result, or its error."""
    try:
        result = task(*args)
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(result)
