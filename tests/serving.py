"""A studio for tests: one that runs in a thread of this process."""

from __future__ import annotations

import logging
import threading
from contextlib import contextmanager
from logging.handlers import QueueHandler
from queue import SimpleQueue

import uvicorn

from lab2048.studio.app import make_app
from lab2048.studio.connections import server_config
from lab2048.studio.guard import Guard
from lab2048.studio.server import listen


@contextmanager
def serving(names=(), any_address=False, threads=None):
    """The address of a studio."""
    listening = listen("127.0.0.1", 0)
    guarded = Guard(make_app(threads), names, any_address)
    server = uvicorn.Server(server_config(guarded))
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(20)


@contextmanager
def logged():
    """A list that gets what servers and event loops write to the log meanwhile."""
    queue = SimpleQueue()
    handler = QueueHandler(queue)
    loggers = [logging.getLogger(name) for name in ("uvicorn", "asyncio")]
    found = []
    for each in loggers:
        each.addHandler(handler)
    try:
        yield found
    finally:
        for each in loggers:
            each.removeHandler(handler)
        while not queue.empty():
            found.append(queue.get().getMessage())
