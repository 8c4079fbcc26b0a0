"""A cache of open tables, and lookups in them.

Files are opened, checked and decoded by worker threads, never by the event loop: a table that is
slow to open or to decode delays only the requests for it. What is decoded already is looked up at
once, which is quicker than handing it to a thread. A table is opened once, however many requests
ask for it at the same time.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

from lab2048.solver.problem import Problem
from lab2048.solver.table import NotDecodedError, Table
from lab2048.solver.table_files import MANIFEST
from lab2048.solver.tables import find_table, open_table

T = TypeVar("T")

TABLE_BYTES = 1 << 26
"""Memory for decoded layers of each open table; single blocks take a quarter as much."""
TABLES_KEPT = 12
"""Tables that are open at a time: 3x3 has nine, for the score and for the chance of each tile."""
RECHECK = 1.0
"""Seconds between checks whether the files of an open table are still the same."""
WORKERS = 4
"""Threads that read tables."""


@dataclass(eq=False)
class OpenTable:
    """An open table, and the version of its files."""

    table: Table
    decoded: Table
    """The same table, limited to what is decoded in memory (`Table.in_memory`)."""
    changed: int
    """The modification time of its manifest, in nanoseconds."""
    looked: float = field(default_factory=time.monotonic)
    """When its files were last checked, by `time.monotonic`."""

    def is_current(self) -> bool:
        """Whether the files are still those that were opened; not for the event loop."""
        try:
            return (self.table.path / MANIFEST).stat().st_mtime_ns == self.changed
        except OSError:
            return False


class OpenTables:
    """The open tables. Only the event loop's thread may call the methods."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Problem, OpenTable] = OrderedDict()
        self._opening: dict[Problem, asyncio.Task[OpenTable | None]] = {}
        self._workers = ThreadPoolExecutor(WORKERS, "tables")

    async def get(self, problem: Problem) -> Table | None:
        """Return the table of a problem, for use by other threads; None if it is not solved."""
        found = await self._current(problem)
        return None if found is None else found.table

    async def ask(self, problem: Problem, question: Callable[[Table], T]) -> T | None:
        """Call a function with the table of a problem; None if it is not solved.

        The function must not keep the table. It may be called twice: at once and, if that needs
        more than is in memory, again by a worker thread.
        """
        found = await self._current(problem)
        if found is None:
            return None
        try:
            return question(found.decoded)
        except NotDecodedError:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._workers, question, found.table)

    def close(self) -> None:
        """Release all tables and threads, without waiting for reads in progress."""
        self._kept.clear()
        self._workers.shutdown(wait=False, cancel_futures=True)

    async def _current(self, problem: Problem) -> OpenTable | None:
        """Return the open table of a problem, opening it if need be; None if it is not solved.

        Its files are checked once a second (`RECHECK`). Requests do not wait for the check unless
        the last one is two seconds old, so a table whose files were replaced is used no longer.
        """
        kept = self._kept.get(problem)
        age = math.inf if kept is None else time.monotonic() - kept.looked
        if age >= RECHECK and problem not in self._opening:
            task = self._opening[problem] = asyncio.create_task(self._open(problem))
            task.add_done_callback(_look_at)
        if kept is not None and age < 2 * RECHECK:
            self._kept.move_to_end(problem)
            return kept
        # the request that started this may be cancelled while others wait for it
        return await asyncio.shield(self._opening[problem])

    async def _open(self, problem: Problem) -> OpenTable | None:
        """Open a table, or check the open one, and keep it; drop the least recently used."""
        loop = asyncio.get_running_loop()
        kept = self._kept.get(problem)
        try:
            opened = await loop.run_in_executor(self._workers, current_table, problem, kept)
        finally:
            del self._opening[problem]
            self._kept.pop(problem, None)
        if opened is not None:
            opened.looked = time.monotonic()
            self._kept[problem] = opened
            while len(self._kept) > TABLES_KEPT:
                self._kept.popitem(last=False)  # its files are closed when nobody uses it
        return opened


def _look_at(task: asyncio.Task[Any]) -> None:
    """Retrieve a task's exception; asyncio would log it as never retrieved if all waiters left."""
    if not task.cancelled():
        task.exception()


def current_table(problem: Problem, kept: OpenTable | None = None) -> OpenTable | None:
    """Return the kept table of a problem if its files are the same, else open it.

    None if the problem is not solved. For worker threads: it reads files.
    """
    if kept is not None and kept.is_current():
        return kept
    folder = find_table(problem)
    if folder is None:
        return None
    changed = (folder / MANIFEST).stat().st_mtime_ns  # before reading: it may change meanwhile
    table = open_table(folder, cache_bytes=TABLE_BYTES)
    return OpenTable(table, table.in_memory(), changed)
