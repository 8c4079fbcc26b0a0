"""Start and stop the studio's server."""

from __future__ import annotations

import gc
import ipaddress
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec

PORT = 2048
SWITCH = 2e-4
"""The interpreter's switch interval in seconds, short so that answers come before games."""


def serve(
    port: int = PORT, host: str = "127.0.0.1", ready: Callable[[str], object] = print
) -> None:
    """Serve the studio until it is interrupted; `ready` is called with its address.

    A `port` of 0 takes any that is free.

    >>> from lab2048 import serve
    >>> serve(port=0)  # doctest: +SKIP
    http://127.0.0.1:49152
    """
    need_server()
    import uvicorn

    listening = listen(host, port)
    ready(address_of(host, listening.getsockname()[1]))
    from lab2048.studio.app import make_app
    from lab2048.studio.connections import server_config
    from lab2048.studio.guard import Guard

    names = [] if is_loopback(host) else [host, socket.gethostname(), socket.getfqdn()]
    app = make_app()
    guarded = Guard(app, names, any_address=not is_loopback(host))
    threading.Thread(target=warm_up, daemon=True).start()
    with _tuned(), suppress(KeyboardInterrupt):  # Ctrl-C is how it ends
        server = uvicorn.Server(server_config(guarded))
        end = server.shutdown

        async def shutdown(sockets: list[socket.socket] | None = None) -> None:
            app.state.desk.close()  # or it would wait for answers in progress
            await end(sockets)

        server.shutdown = shutdown  # type: ignore[method-assign]
        server.run(sockets=[listening])


@contextmanager
def _tuned() -> Iterator[None]:
    """Have Python switch threads often, and undo on exit what `warm_up` does to its collector."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
        gc.unfreeze()


def need_server() -> None:
    """Raise an `ImportError` that says what to install, if something is missing."""
    for name in ("fastapi", "uvicorn", "websockets"):
        if find_spec(name) is None:
            raise ImportError(f"the studio needs {name}: pip install 'lab2048[studio]'")


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket, or raise a `ValueError`."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, where = found[0]
        # asyncio sets TCP_NODELAY only on sockets whose protocol is given
        listening = socket.socket(family, kind, protocol)
        try:
            if os.name == "posix":
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(where)
            listening.listen(1024)
        except OSError:
            listening.close()
            raise
    except OSError as error:
        raise ValueError(
            f"cannot listen at {host}, port {port}: {error.strerror}; `port=0` takes a free one"
        ) from None
    return listening


def address_of(host: str, port: int) -> str:
    """Return the address to open in a browser on this machine."""
    everywhere = host in ("0.0.0.0", "::", "")
    name = "localhost" if everywhere else f"[{host}]" if ":" in host else host
    return f"http://{name}:{port}"


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def open_browser(address: str) -> None:
    """Open the page in the default browser."""
    import webbrowser

    webbrowser.open(address)


def warm_up() -> None:
    """Load, and compile if need be, what the first request will need."""
    from lab2048.game import Rules
    from lab2048.players.registry import make_player, player_class, player_names

    with suppress(Exception):  # the request that needs it reports the error
        make_player("expectimax", Rules(4, 4)).prepare()
        for name in player_names():
            player_class(name)
    gc.collect()
    gc.freeze()  # exempt what stays from collections, which take a tenth of a second
