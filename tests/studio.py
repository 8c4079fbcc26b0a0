"""A studio for tests: one that runs in a thread of this process."""

from __future__ import annotations

import threading
from contextlib import contextmanager

import uvicorn

from lab2048.cli_studio import listen
from lab2048.studio.app import make_app
from lab2048.studio.guard import Guard


@contextmanager
def serving(names=(), any_address=False):
    """The address of a studio."""
    listening = listen("127.0.0.1", 0)
    guarded = Guard(make_app(), names, any_address)
    config = uvicorn.Config(guarded, log_level="error", ws="websockets-sansio", lifespan="on")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(20)
