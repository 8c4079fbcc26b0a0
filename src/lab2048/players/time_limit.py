"""A time limit per move, for servers.

A kernel cannot be interrupted from outside; so each search looks, every few microseconds, at a flag
of its thread, and gives up once it is set. Without a limit nobody sets it. The time counts from
where a search takes its flag, when its kernels are compiled already.

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
"""Seconds from one look at the clock to the next, while something is limited."""


class TimeLimitError(ValueError):
    """A move that takes longer than it may."""


class _Own(threading.local):
    """The flag of a thread; the limit under which it is at work, if any, and what is limited."""

    def __init__(self) -> None:
        self.stop: Flag = np.zeros(1, np.int64)
        self.seconds: float | None = None
        self.what = ""


class _Watchdog:
    """A thread that sets the flags of those whose time is up."""

    def __init__(self) -> None:
        self._due: dict[int, tuple[float, Flag]] = {}  # by thread
        self._lock = threading.Lock()
        self._awake = threading.Event()
        self._begun = False

    def add(self, seconds: float, stop: Flag) -> None:
        """Set the flag of this thread after some time, unless it is being waited for already."""
        with self._lock:
            self._due.setdefault(threading.get_ident(), (time.monotonic() + seconds, stop))
            if not self._begun:
                self._begun = True
                threading.Thread(target=self._watch, name="time limit", daemon=True).start()
        if not self._awake.is_set():
            self._awake.set()

    def remove(self, stop: Flag) -> None:
        """Take the flag of this thread down, and leave it alone from now on."""
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
    """The flag of this thread: 1 once its search is to end.

    What a kernel returns then is of no use; so `check_time` comes after it.
    """
    if _own.seconds is not None:
        _watchdog.add(_own.seconds, _own.stop)
    return _own.stop


def check_time() -> None:
    """A `TimeLimitError` if the flag of this thread is set."""
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
