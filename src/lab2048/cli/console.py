"""How far a long command has come: a bar on a terminal, elsewhere a line on stderr now and then.

Bars are shown as long as they are open. Without a terminal nobody would see them: a thread then
tells of the newest one in a line, whenever nothing has been written to stderr for some time.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TextIO

from lab2048.wording import duration

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

FIRST, AGAIN = 10.0, 30.0
"""Seconds of silence before the first line, and before later ones."""
SHARE = 0.05
"""Of the time that has passed: what takes days is told of less often."""

_open: list[Callable[[], str]] = []
"""What is being done, the newest last: each says how far it is."""


class Unheard:
    """A stream whose reader may go away; a failed write is ignored."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.last = time.monotonic()
        """When something was written to it."""

    def write(self, text: str) -> int:
        """Write, if it can be done."""
        self.last = time.monotonic()
        with suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Bring out what was written, if it can be done."""
        with suppress(OSError):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class Lines:
    """Tells on a stream what is being done, as long as it is not stopped."""

    def __init__(self, stream: Unheard) -> None:
        self._stream = stream
        self._began = stream.last = time.monotonic()
        self._told = 0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Tell no more."""
        self._stopped.set()

    def _run(self) -> None:
        while not self._stopped.wait(self._left()):
            if self._left() <= 0:
                passed = time.monotonic() - self._began
                self._stream.write(f"lab2048: after {duration(passed)}: {_what()}\n")
                self._stream.flush()
                self._told += 1

    def _left(self) -> float:
        """Seconds until a line is due."""
        now = time.monotonic()
        silence = max(AGAIN, SHARE * (now - self._began)) if self._told else FIRST
        return max(0.0, self._stream.last + silence - now)


def _what() -> str:
    """What is being done just now."""
    jit = sys.modules.get("lab2048.jit")  # which takes long to load, and not all need it
    if jit is not None and (compiling := jit.compiling()):
        return str(compiling)
    for describe in _open[-1:]:  # which others may take away at any time
        return describe()
    return "at work"


_lines: list[Lines] = []


@contextmanager
def told(stream: Unheard) -> Iterator[None]:
    """Tell on a stream what a command is at, unless it is a terminal, where bars are seen."""
    if not stream.isatty():
        _lines.append(Lines(stream))
    try:
        yield
    finally:
        be_silent()


def be_silent() -> None:
    """Stop progress lines, for commands that run until they are stopped."""
    while _lines:
        _lines.pop().stop()


@contextmanager
def doing(describe: Callable[[], str]) -> Iterator[None]:
    """Let lines tell of something, as long as it goes on."""
    _open.append(describe)
    try:
        yield
    finally:
        _open.remove(describe)


@contextmanager
def status(text: str) -> Iterator[Callable[[str], None]]:
    """Show what is being done where nobody knows how much of it is left; the text may change."""
    from rich.console import Console

    now = text

    def change(other: str) -> None:
        nonlocal now
        now = other
        shown.update(other)

    with doing(lambda: now), Console(stderr=True).status(text) as shown:
        yield change


@contextmanager
def progress_bar(parts: bool = False) -> Iterator[Progress]:
    """A bar on stderr for what is counted in whole things, or in parts of one."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    with bar_of(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn() if parts else MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    ) as bar:
        yield bar


@contextmanager
def bar_of(*columns: Any) -> Iterator[Progress]:
    """A bar on stderr with these columns; it is gone when its work is done."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    shown: dict[str, Any] = {"console": console, "transient": True}
    bar = Progress(*columns, **shown, disable=not console.is_terminal)
    with doing(lambda: line_of(bar)), bar:
        yield bar


def line_of(bar: Progress) -> str:
    """How far the newest task of a bar is."""
    tasks = bar.tasks
    if not tasks:
        return "at work"
    task = tasks[-1]
    found = f"{task.description}: " if task.description else ""
    if facts := task.fields.get("facts"):
        return f"{found}{facts}"
    if task.total is None:
        return f"{found}{task.completed:,.0f} so far"
    if task.total > 1:
        found += f"{task.completed:,.0f} of {task.total:,.0f}, "
    found += f"{task.percentage:.0f}% done"
    left = task.time_remaining
    return found if left is None else f"{found}, about {duration(left)} left"


def move_on(bar: Progress, task: TaskID, done: float) -> None:
    """Say how much of a task is done."""
    bar.update(task, completed=done)
