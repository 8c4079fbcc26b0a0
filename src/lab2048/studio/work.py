"""Work off the event loop, shared fairly: who has had less of the machine comes first.

A client is another machine or, on this machine, a connection. Each has a queue; a thread that is
free takes from the client that has the fewest pieces under way and, of those, will have used the
least time with its next one. One that comes anew begins where the one is that was served last.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from lab2048.studio.limits import WAITING, WAITING_IN_ALL

T = TypeVar("T")
Piece = tuple[asyncio.AbstractEventLoop, "asyncio.Future[Any]", Callable[[], Any]]


class BusyError(Exception):
    """More work than may wait."""


@dataclass
class Client:
    """Who waits for work to be done."""

    used: float
    """Seconds of a thread, counted from where the others were when it came."""
    last: float = 0.0
    """Seconds of its last piece: the next one will be like it."""
    running: int = 0
    waiting: deque[Piece] = field(default_factory=deque)


class Desk:
    """Some threads, and what waits for them."""

    def __init__(self, threads: int) -> None:
        self._clients: dict[str, Client] = {}
        self._now = 0.0  # what the client that was served last had used
        self._count = 0
        self._changed = threading.Condition()
        self._closed = False
        self._running: dict[int, Piece] = {}  # what each thread is at
        for _ in range(threads):
            threading.Thread(target=self._serve, daemon=True).start()

    async def run(self, client: str, function: Callable[..., T], *args: Any) -> T:
        """Have a function called by a thread, when it is the client's turn."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        with self._changed:
            if self._closed:
                raise BusyError("the studio is ending")
            found = self._clients.setdefault(client, Client(self._now))
            if not found.running and not found.waiting:
                found.used = max(found.used, self._now)  # nobody saves up time by waiting
            if len(found.waiting) >= WAITING or self._count >= WAITING_IN_ALL:
                raise BusyError("too much is asked for at once; try again in a moment")
            found.waiting.append((loop, future, partial(function, *args)))
            self._count += 1
            self._changed.notify()
        try:
            return await future
        except asyncio.CancelledError:  # who asked has gone
            self._forget(found, future)
            raise

    async def run_patiently(self, client: str, function: Callable[..., T], *args: Any) -> T:
        """The same for what is under way; where too much waits, it waits as well."""
        while True:
            try:
                return await self.run(client, function, *args)
            except BusyError:
                if self._closed:
                    raise
                await asyncio.sleep(0.2)

    def _forget(self, client: Client, future: asyncio.Future[Any]) -> None:
        """Take away what waits and is no longer wanted."""
        with self._changed:
            kept = [piece for piece in client.waiting if piece[1] is not future]
            self._count -= len(client.waiting) - len(kept)
            client.waiting = deque(kept)

    def close(self) -> None:
        """Let the threads go when they have done what they are at; nobody waits for that."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            waiting = [piece for client in self._clients.values() for piece in client.waiting]
        for loop, future, _ in (*waiting, *self._running.values()):
            _tell(loop, future, partial(future.set_exception, BusyError("the studio is ending")))

    def _serve(self) -> None:
        """What a thread does."""
        while True:
            with self._changed:
                while not self._count and not self._closed:
                    self._changed.wait()
                if self._closed:
                    return
                name, piece = self._next()
                self._running[threading.get_ident()] = piece
            loop, future, function = piece
            began = time.perf_counter()
            if not future.cancelled():
                _answer(loop, future, function)
            self._done(name, time.perf_counter() - began)

    def _next(self) -> tuple[str, Piece]:
        """The piece whose turn it is."""
        some = [(name, each) for name, each in self._clients.items() if each.waiting]
        name, client = min(some, key=lambda pair: (pair[1].running, pair[1].used + pair[1].last))
        self._now = max(self._now, client.used)
        client.running += 1
        self._count -= 1
        return name, client.waiting.popleft()

    def _done(self, name: str, seconds: float) -> None:
        """Take note of what a client has used."""
        with self._changed:
            del self._running[threading.get_ident()]
            client = self._clients[name]
            client.used += seconds
            client.last = seconds
            client.running -= 1
            idle = [n for n, c in self._clients.items() if not c.running and not c.waiting]
            for other in idle:  # who has used more than others is remembered until they have, too
                if self._clients[other].used <= self._now:
                    del self._clients[other]


def _answer(
    loop: asyncio.AbstractEventLoop, future: asyncio.Future[T], function: Callable[[], T]
) -> None:
    """Call a function, and give what it returns or raises to whoever waits for it."""
    try:
        result = function()
    except Exception as error:
        _tell(loop, future, partial(future.set_exception, error))
    else:
        _tell(loop, future, partial(future.set_result, result))


def _tell(
    loop: asyncio.AbstractEventLoop, future: asyncio.Future[T], tell: Callable[[], None]
) -> None:
    """Tell the event loop, if it is still there and somebody waits."""

    def say() -> None:
        if not future.done():
            tell()

    try:
        loop.call_soon_threadsafe(say)
    except RuntimeError:  # the loop has ended
        return
