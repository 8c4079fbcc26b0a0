"""Connections: how long a request may take to arrive, and what the log says about clients.

A connection that has not sent a whole request after `REQUEST_SECONDS` is closed. Errors of clients
are logged with one line per address and hour, and for a limited number of addresses: otherwise
anyone on the network could fill the disk.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from lab2048.studio.limits import CONNECTIONS, LINES, MESSAGE, REQUEST_SECONDS

HOUR = 3600.0


def server_config(app: ASGIApp) -> uvicorn.Config:
    """Return the settings of the studio's server."""
    return uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,  # or a client could choose its address
        http=HttpConnection,
        ws=SocketConnection,
        ws_max_size=4 * MESSAGE,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=2,
        limit_concurrency=CONNECTIONS,
        lifespan="on",
    )


class Told:
    """The names logged in the current hour."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._since = time.monotonic()

    def is_new(self, name: str) -> bool:
        """Whether a line about this name may be logged now; if so, it counts as logged."""
        if time.monotonic() - self._since > HOUR:
            self._names.clear()
            self._since = time.monotonic()
        if name in self._names or len(self._names) >= LINES:
            return False
        self._names.add(name)
        return True


class ClientLog(logging.Logger):
    """The server's logger for one connection."""

    told = Told()

    def __init__(self, client: tuple[str, int] | None) -> None:
        super().__init__("uvicorn.error")
        self.parent = logging.getLogger("uvicorn.error")
        self.setLevel(self.parent.getEffectiveLevel())
        self.host = client[0] if client else "somebody"

    def handle(self, record: logging.LogRecord) -> None:
        """Log an application error once per place and hour, a client's as one line per address."""
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and record.getMessage().startswith("Exception in ASGI application"):
            if self.told.is_new(_place(error)):
                super().handle(record)
        elif self.told.is_new(self.host):
            record.msg, record.args = f"{self.host}: {record.getMessage().strip()}", ()
            record.exc_info = None
            super().handle(record)


def _place(error: BaseException) -> str:
    """Return the type of an error, and the file and line that raised it."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}" if trace else ""
    return f"{type(error).__name__} {where}"


class HttpConnection(H11Protocol):
    """A connection that is closed if a request takes too long to arrive. (h11 bounds its size.)"""

    deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.logger = ClientLog(self.client)
        self._wait()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        is_socket = self.transport.get_protocol() is not self  # a WebSocket from now on
        if not is_socket and self.conn.their_state in (h11.IDLE, h11.SEND_BODY):
            self._wait()
        else:
            self._stop_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait(self) -> None:
        """Close the connection after `REQUEST_SECONDS`, counted from the start of the request."""
        if self.deadline is None and not self.transport.is_closing():
            self.deadline = self.loop.call_later(REQUEST_SECONDS, self.transport.close)

    def _stop_waiting(self) -> None:
        if self.deadline is not None:
            self.deadline.cancel()
            self.deadline = None


class SocketConnection(WebSocketsSansIOProtocol):
    """A WebSocket connection that logs through `ClientLog`."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.logger = ClientLog(self.client)
