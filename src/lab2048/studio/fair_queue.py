"""Work off the event loop, shared fairly: the client that has used less thread time comes first.

Addresses take turns, and so do the connections of an address: opening many gets a client no more
than opening one. A free thread serves the client with the fewest pieces of work running and, among
those, the one whose used time plus the expected time of its next piece is least. A new client
starts at the virtual time of the last one served.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar

from lab2048.studio.limits import WAITING, WAITING_IN_ALL

T = TypeVar("T")
Piece = tuple[asyncio.AbstractEventLoop, "asyncio.Future[Any]", Callable[[], Any]]
Client = tuple[str, int]
"""An address, and the port that tells its connections apart."""

REMEMBERED = 256
"""With more clients than this, idle ones are forgotten even if they have used more than others."""
BEAT = 0.05
"""Seconds between measurements of how late the event loop is."""
LATE, LONGEST_PAUSE = 0.03, 0.5
"""Lag of the event loop above which games and reviews pause, and the longest pause, in seconds."""
LONGEST_WAIT = 30
"""The longest time that a client is told to wait before it asks again, in seconds."""


class BusyError(Exception):
    """Too much work is waiting; `seconds` says when to try again."""

    def __init__(self, why: str, seconds: float = 1) -> None:
        super().__init__(why)
        self.seconds = min(max(1, math.ceil(seconds)), LONGEST_WAIT)


@dataclass
class Share:
    """The account of one client: the time it has used, and its pieces running and waiting."""

    used: float = 0.0
    """Thread time in seconds, on top of the virtual time at which the client came."""
    last: float = 0.0
    """Seconds that its last piece took: the estimate for the next."""
    running: int = 0
    waiting: int = 0

    @property
    def idle(self) -> bool:
        """Whether nothing is waiting or running."""
        return not self.running and not self.waiting


S = TypeVar("S", bound=Share)
K = TypeVar("K")


class Turns(Generic[K, S]):
    """A fair queue of clients: whose turn is next."""

    def __init__(self, make: Callable[[], S]) -> None:
        self._make = make
        self._shares: dict[K, S] = {}
        self._now = 0.0  # virtual time: the largest `used` of a client when served

    def __len__(self) -> int:
        return len(self._shares)

    def enter(self, name: K) -> S:
        """Record one more waiting piece of a client, and return its share."""
        found = self._shares.get(name)
        if found is None:
            found = self._shares[name] = self._make()
        if found.idle:
            found.used = max(found.used, self._now)  # idle time earns no credit
        found.waiting += 1
        return found

    def get(self, name: K) -> S:
        """Return the share of a client; a new one, not stored, if it is unknown."""
        return self._shares.get(name) or self._make()

    def take(self) -> tuple[K, S]:
        """Return the client whose turn it is; one of its pieces now counts as running."""
        some = [pair for pair in self._shares.items() if pair[1].waiting]
        name, share = min(some, key=lambda pair: (pair[1].running, pair[1].used + pair[1].last))
        self._now = max(self._now, share.used)
        share.waiting -= 1
        share.running += 1
        return name, share

    def done(self, name: K, seconds: float) -> None:
        """Record that a piece is done, and how long it took."""
        share = self._shares[name]
        share.used += seconds
        share.last = seconds
        share.running -= 1
        self._forget()

    def leave(self, name: K) -> None:
        """Record that a waiting piece is no longer wanted."""
        self._shares[name].waiting -= 1
        self._forget()

    def _forget(self) -> None:
        """Drop idle clients, except those ahead of the virtual time while others are busy."""
        idle = [name for name, share in self._shares.items() if share.idle]
        alone = len(idle) == len(self._shares)
        for name in idle:
            behind = self._shares[name].used <= self._now
            if alone or behind or len(self._shares) > REMEMBERED:
                del self._shares[name]


@dataclass
class Connection(Share):
    """A connection, and its waiting pieces."""

    pieces: deque[Piece] = field(default_factory=deque)


@dataclass
class Address(Share):
    """An address, and its connections."""

    connections: Turns[int, Connection] = field(default_factory=lambda: Turns(Connection))


class Desk:
    """Worker threads, and the queue of work for them."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self.lag = 0.0
        """How late the event loop is, in seconds; a request waits that long for it."""
        self._addresses: Turns[str, Address] = Turns(Address)
        self._count = 0
        self._changed = threading.Condition()
        self._closed = False
        self._running: dict[int, Piece] = {}  # by thread
        for _ in range(threads):
            threading.Thread(target=self._serve, daemon=True).start()

    async def run(self, client: Client, function: Callable[..., T], *args: Any) -> T:
        """Have a thread call a function when it is the client's turn."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        host, port = client
        with self._changed:
            self._check(self._addresses.get(host))
            connection = self._addresses.enter(host).connections.enter(port)
            connection.pieces.append((loop, future, partial(function, *args)))
            self._count += 1
            self._changed.notify()
        try:
            return await future
        except asyncio.CancelledError:  # the client has gone
            self._forget(client, connection, future)
            raise

    async def run_patiently(self, client: Client, function: Callable[..., T], *args: Any) -> T:
        """Like `run`, for a game in progress: if the queue is full or the event loop late, wait."""
        if self.lag > LATE:
            await asyncio.sleep(min(self.lag, LONGEST_PAUSE))
        while True:
            try:
                return await self.run(client, function, *args)
            except BusyError:
                if self._closed:
                    raise
                await asyncio.sleep(0.2)

    async def listen(self) -> None:
        """Measure `lag` until cancelled."""
        while True:
            began = time.perf_counter()
            await asyncio.sleep(BEAT)
            self.lag = time.perf_counter() - began - BEAT

    def _check(self, address: Address) -> None:
        """Raise a `BusyError` if the queue is full, for this address or for all together."""
        if self._closed:
            raise BusyError("the studio is ending")
        full = max(address.waiting / WAITING, self._count / WAITING_IN_ALL)
        if full >= 1:
            seconds = max(address.waiting, self._count) * address.last / self._threads
            raise BusyError("too much is asked for at once; try again in a moment", seconds)

    def _forget(self, client: Client, connection: Connection, future: asyncio.Future[Any]) -> None:
        """Remove a waiting piece that is no longer wanted."""
        host, port = client
        with self._changed:
            for piece in connection.pieces:
                if piece[1] is future:
                    connection.pieces.remove(piece)
                    self._addresses.get(host).connections.leave(port)
                    self._addresses.leave(host)
                    self._count -= 1
                    return

    def close(self) -> None:
        """Stop: unfinished work raises a `BusyError` now; threads end after their current piece."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            waiting = []
            while self._count:
                waiting.append(self._next()[1])
        for loop, future, _ in (*waiting, *self._running.values()):
            _tell(loop, future, partial(future.set_exception, BusyError("the studio is ending")))

    def _serve(self) -> None:
        """Do pieces of work until the desk is closed; runs in each thread."""
        while True:
            with self._changed:
                while not self._count and not self._closed:
                    self._changed.wait()
                if self._closed:
                    return
                client, piece = self._next()
                self._running[threading.get_ident()] = piece
            loop, future, function = piece
            began = time.perf_counter()
            if not future.cancelled():
                _answer(loop, future, function)
            self._done(client, time.perf_counter() - began)

    def _next(self) -> tuple[Client, Piece]:
        """Take the piece whose turn it is."""
        host, address = self._addresses.take()
        port, connection = address.connections.take()
        self._count -= 1
        return (host, port), connection.pieces.popleft()

    def _done(self, client: Client, seconds: float) -> None:
        """Record the time that a client has used."""
        host, port = client
        with self._changed:
            del self._running[threading.get_ident()]
            self._addresses.get(host).connections.done(port, seconds)
            self._addresses.done(host, seconds)


def _answer(
    loop: asyncio.AbstractEventLoop, future: asyncio.Future[T], function: Callable[[], T]
) -> None:
    """Call a function, and set the future to what it returns or raises."""
    try:
        result = function()
    except Exception as error:
        _tell(loop, future, partial(future.set_exception, error))
    else:
        _tell(loop, future, partial(future.set_result, result))


def _tell(
    loop: asyncio.AbstractEventLoop, future: asyncio.Future[T], tell: Callable[[], None]
) -> None:
    """Have the event loop call `tell`, unless it has ended or the future is done."""

    def say() -> None:
        if not future.done():
            tell()

    try:
        loop.call_soon_threadsafe(say)
    except RuntimeError:  # the loop has ended
        return
