"""What the command line shows: results on stdout, the progress of long commands on stderr.

No other module makes a rich console, table or progress bar. Stdout is for results alone.

On a terminal, bars are shown while they are open. Without one, a thread prints the progress of the
newest bar as a line whenever nothing has been written to stderr for some time.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from lab2048 import home
from lab2048.formatting import as_options, duration

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, ProgressColumn, Task, TaskID
    from rich.table import Table

FIRST, AGAIN = 10.0, 30.0
"""Seconds of silence before the first line, and before later ones."""
SHARE = 0.05
"""Least silence as a share of the time elapsed, so that long commands print fewer lines."""

_open: list[Callable[[], str]] = []
"""Descriptions of the progress of open tasks, the newest last."""


# -- results -------------------------------------------------------------------------------------


def output() -> Console:
    """The console on stdout, for results; it colours no numbers."""
    from rich.console import Console

    return Console(highlight=False)


def new_table(*headings: str, tight: bool = False) -> Table:
    """An empty table in the common style; `tight` means less space around columns."""
    from rich import box
    from rich.table import Table

    if tight:
        return Table(*headings, box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    return Table(*headings, box=box.SIMPLE)


def number_table(first: str, *others: str) -> Table:
    """An empty table whose columns are all right-aligned."""
    grid = new_table()
    for heading in (first, *others):
        grid.add_column(heading, justify="right", no_wrap=True)
    return grid


def show_facts(title: str, facts: Sequence[tuple[str, str]]) -> None:
    """Print a title, and below it one line per name with its text."""
    print(title)
    width = max(len(name) for name, _ in facts)
    for name, text in facts:
        print(f"  {name:{width}}  {text}")


def say(text: str) -> None:
    """Print a message of the library on stderr, with Python keywords shown as options."""
    home.say(as_options(text))


def show_briefly(text: str) -> None:
    """Show a line on a terminal until the next one replaces it; an empty text clears it."""
    if sys.stderr is not None and sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


# -- files that exist ----------------------------------------------------------------------------


def check_target(path: Path, *, files: Sequence[str] = (), force: bool = False) -> bool:
    """Check that a file can be written, as `home.check_target` does; see `allowed`."""
    return allowed(partial(home.check_target, path, files=files), force)


def allowed(check: Callable[..., None], force: bool) -> bool:
    """Return whether existing files are to be replaced: `force`, or True if the user agrees.

    `check` finds them. A `ValueError` if the user declines or cannot be asked.
    """
    try:
        check(force=force)
    except home.ExistingFilesError as error:
        if not _may_replace(error.paths):
            raise ValueError(existing(error)) from None
        return True
    return force


def existing(error: home.ExistingFilesError) -> str:
    """The message about a file that exists already."""
    return f"{error.filename} exists already: --force replaces it"


def _may_replace(paths: Sequence[Path]) -> bool:
    """Ask whether files may be replaced; False without a terminal."""
    if not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr)):
        return False
    import typer

    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    with redirect_stdout(sys.stderr):  # all of the question: stdout is for results
        return typer.confirm(f"Replace {paths[0]}{more}?")


# -- lines on stderr, where there is no terminal -------------------------------------------------


class Unheard:
    """A stream whose reader may go away; a failed write is ignored."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.last = time.monotonic()
        """Time of the last write."""

    def write(self, text: str) -> int:
        """Write, ignoring errors."""
        self.last = time.monotonic()
        with suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush, ignoring errors."""
        with suppress(OSError):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class Lines:
    """Prints progress lines on a stream, from a thread, until it is stopped."""

    def __init__(self, stream: Unheard) -> None:
        self._stream = stream
        self._began = stream.last = time.monotonic()
        self._told = 0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Print no more lines."""
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
    """Describe what is being done now."""
    jit = sys.modules.get("lab2048.engine.jit")  # slow to import, and not always needed
    if jit is not None and (compiling := jit.compiling()):
        return str(compiling)
    for describe in _open[-1:]:  # a slice: other threads may remove it
        return describe()
    return "at work"


_lines: list[Lines] = []


@contextmanager
def told(stream: Unheard) -> Iterator[None]:
    """Print progress lines on a stream meanwhile, unless it is a terminal, which shows bars."""
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
    """Include a task in progress lines while it runs."""
    _open.append(describe)
    try:
        yield
    finally:
        _open.remove(describe)


# -- bars on stderr ------------------------------------------------------------------------------


@contextmanager
def status(text: str) -> Iterator[Callable[[str], None]]:
    """Show a text while work of unknown length runs; yield a function that changes the text."""
    now = text

    def change(other: str) -> None:
        nonlocal now
        now = other
        shown.update(other)

    with doing(lambda: now), _errors().status(text) as shown:
        yield change


@contextmanager
def progress_bar(parts: bool = False) -> Iterator[Progress]:
    """A progress bar on stderr with rate and time left; `parts` shows a percentage, not counts."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    with _bar_of(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn() if parts else MofNCompleteColumn(),
        _rate_column(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    ) as bar:
        yield bar


@contextmanager
def facts_bar() -> Iterator[Progress]:
    """A progress bar on stderr whose tasks have a field `facts`: a text shown beside the bar."""
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn

    with _bar_of(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[facts]}"),
        TimeElapsedColumn(),
    ) as bar:
        yield bar


@contextmanager
def _bar_of(*columns: ProgressColumn) -> Iterator[Progress]:
    """A progress bar on stderr with these columns; it disappears at the end."""
    from rich.progress import Progress

    console = _errors()
    shown: dict[str, Any] = {"console": console, "transient": True}
    bar = Progress(*columns, **shown, disable=not console.is_terminal)
    with doing(lambda: line_of(bar)), bar:
        yield bar


def _errors() -> Console:
    """The console on stderr, for everything but results."""
    from rich.console import Console

    return Console(stderr=True)


def _rate_column() -> ProgressColumn:
    """The column of a progress bar that shows items per second."""
    from rich.progress import ProgressColumn
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(_rate(task), style="progress.data.speed")

    return Rate()


def _rate(task: Task) -> str:
    """Items per second as text; empty if unknown, or if the total is at most 1."""
    speed = task.finished_speed or task.speed
    if not speed or task.total is None or task.total <= 1:
        return ""
    return f"{speed:,.0f}/s" if speed >= 10 else f"{speed:.2g}/s"


def line_of(bar: Progress) -> str:
    """Describe the progress of the newest task of a bar."""
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
    if rate := _rate(task):
        found += f", {rate}"
    left = task.time_remaining
    return found if left is None else f"{found}, about {duration(left)} left"


def move_on(bar: Progress, task: TaskID, done: float) -> None:
    """Set how much of a task is done."""
    bar.update(task, completed=done)


@contextmanager
def counting_bar(what: str, total: int) -> Iterator[Callable[[int, int], object]]:
    """A progress bar on stderr; yield a function that sets how much is done."""
    with progress_bar(parts=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done, _: move_on(bar, task, done)
