"""Checks before the application: who may ask, how much, and what browsers may do with answers.

A page of another site must not be able to use a studio that runs on the visitor's own machine. So
the name in `Host` has to be one of this machine (against DNS rebinding), and an `Origin`, if there
is one, has to be that of the studio's own page: scheme, name and port.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Collection
from typing import Any

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lab2048.studio.limits import BODY

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
}
TOO_LARGE = f"a body has at most {BODY:,} bytes"
SCHEMES = {"http": "http", "https": "https", "ws": "http", "wss": "https"}
"""The scheme of the page that opens a connection, by the scheme of the connection."""
LOCAL = ("localhost", "127.0.0.1", "::1")


class Guard:
    """Middleware that refuses requests which must not reach the application."""

    def __init__(
        self, app: ASGIApp, names: Collection[str] = (), any_address: bool = False
    ) -> None:
        """`names` are those of this machine; `any_address` accepts every IP address as well."""
        self.app = app
        self.names = {name.lower() for name in (*LOCAL, *names)}
        self.any_address = any_address

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        pairs = [(k.decode("latin-1").lower(), v.decode("latin-1")) for k, v in scope["headers"]]
        names, scheme = [name for name, _ in pairs], SCHEMES.get(scope["scheme"], "")
        if trouble := self._refused(dict(pairs), scope["path"], names, scheme):
            await _refuse(scope, receive, send, *trouble)
        elif scope["type"] == "websocket":
            await self.app(scope, receive, send)
        else:
            await self._bounded(scope, receive, send)

    def _refused(
        self, headers: dict[str, str], path: str, names: list[str], scheme: str
    ) -> tuple[int, str] | None:
        """Return the status and the reason if a request is refused, else None."""
        if max(names.count("host"), names.count("origin")) > 1:
            return 400, "a request has one host and one origin"
        host = headers.get("host", "")
        name = _name(host)
        if name not in self.names and not (self.any_address and _is_address(name)):
            return 421, "the host name of this request is not one of this studio"
        origin = headers.get("origin")
        if origin is not None and origin.lower() != f"{scheme}://{host}".lower():
            return 403, "only the studio's own page may ask"
        # what browsers request for another site without an Origin: images, frames
        own = headers.get("sec-fetch-site", "none") in ("none", "same-origin")
        page = headers.get("sec-fetch-mode") == "navigate" and not path.startswith("/api/")
        if not own and not page and path != "/api/docs":
            return 403, "only the studio's own page may ask"
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit()) or int(length[:20]) > BODY:
            return 413, TOO_LARGE
        return None

    async def _bounded(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on; limit its body, and add headers to the answer."""
        seen = 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > BODY:
                raise HTTPException(413, TOO_LARGE)
            return message

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                added = [(k.encode(), v.encode()) for k, v in HEADERS.items()]
                message = {**message, "headers": [*message.get("headers", []), *added]}
            await send(message)

        await self.app(scope, counted, with_headers)


def _name(host: str) -> str:
    """Return the name in a Host header, in lower case and without its port."""
    if host.startswith("["):
        name, _, port = host[1:].partition("]")
        return name.lower() if not port or port.startswith(":") else ""
    return host.partition(":")[0].lower()


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


async def _refuse(scope: Scope, receive: Receive, send: Send, status: int, why: str) -> None:
    """Refuse with one line: an HTTP error, or the closing of a WebSocket."""
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 1008, "reason": why})
        return
    body = json.dumps({"detail": why}).encode()
    headers: list[Any] = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
