"""A time limit per move, for servers.

A kernel cannot be interrupted from outside, so each search polls a flag of its thread every few
microseconds, and gives up once it is set. Without a limit it is never set. The time counts from
when a search takes its flag, after its kernels were compiled.

    with time_limit(1.0, player.spec):
        move = player.choose(board)         # a `TimeLimitError` if that takes longer
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from lab2048.engine.arrays import Counts

Flag = Counts

TICK = 0.02
"""Seconds between looks at the clock while something is limited."""


class TimeLimitError(ValueError):
    """A move takes longer than its time limit."""


class _Own(threading.local):
    """The flag of a thread, its current limit in seconds if any, and what is limited."""

    def __init__(self) -> None:
        self.stop: Flag = np.zeros(1, np.int64)
        self.seconds: float | None = None
        self.what = ""


class _Watchdog:
    """A thread that sets the flags of threads whose time is up."""

    def __init__(self) -> None:
        self._due: dict[int, tuple[float, Flag]] = {}  # by thread
        self._lock = threading.Lock()
        self._awake = threading.Event()
        self._begun = False

    def add(self, seconds: float, stop: Flag) -> None:
        """Set the flag of this thread after some seconds, unless a deadline is pending already."""
        with self._lock:
            self._due.setdefault(threading.get_ident(), (time.monotonic() + seconds, stop))
            if not self._begun:
                self._begun = True
                threading.Thread(target=self._watch, name="time limit", daemon=True).start()
        if not self._awake.is_set():
            self._awake.set()

    def remove(self, stop: Flag) -> None:
        """Clear the flag of this thread, and cancel its deadline."""
        with self._lock:
            self._due.pop(threading.get_ident(), None)
            stop[0] = 0

    def _watch(self) -> None:
        while True:
            self._awake.wait()
            time.sleep(TICK)
            with self._lock:
                now = time.monotonic()
                for thread in [each for each, (due, _) in self._due.items() if due <= now]:
                    _, stop = self._due.pop(thread)
                    stop[0] = 1
                if not self._due:
                    self._awake.clear()


_own = _Own()
_watchdog = _Watchdog()


def stop_flag() -> Flag:
    """Return the flag of this thread, 1 once its search is to end, and start the clock of a limit.

    What a kernel returns then is useless, so call `check_time` after it.
    """
    if _own.seconds is not None:
        _watchdog.add(_own.seconds, _own.stop)
    return _own.stop


def check_time() -> None:
    """Raise a `TimeLimitError` if the flag of this thread is set."""
    if _own.stop[0]:
        raise TimeLimitError(
            f"{_own.what} takes more than {_own.seconds:g} s for a move here; ask for less"
        )


@contextmanager
def time_limit(seconds: float, what: str) -> Iterator[None]:
    """Limit each search of this thread; `what` is named in the `TimeLimitError`."""
    _own.seconds, _own.what = seconds, what
    try:
        yield
    finally:
        _own.seconds = None
        _watchdog.remove(_own.stop)
