"""A client of a studio, and what watches its event loop."""

from __future__ import annotations

import asyncio

import httpx
import pytest


@pytest.fixture
def client(address):
    with httpx.Client(base_url=address, timeout=120) as found:
        yield found


def on_a_loop():
    """Whether it is an event loop that calls."""
    return asyncio._get_running_loop() is not None


@pytest.fixture
def on_loop(monkeypatch):
    """A function that has calls noted if an event loop makes them: the results, in a list."""

    def note(owner, name):
        found, function = [], getattr(owner, name)

        def noted(*args, **kwargs):
            result = function(*args, **kwargs)
            if on_a_loop():
                found.append(result)
            return result

        monkeypatch.setattr(owner, name, noted)
        return found

    return note
