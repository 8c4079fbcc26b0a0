"""Clients that leave, or never quite come, and what the log says about them."""

from __future__ import annotations

import asyncio
import gc
import socket
import time

import pytest

from lab2048.studio import connections
from lab2048.studio import resources as library
from tests.serving import logged

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]  # a server, and much to compile


def sent(address, text):
    """A connection over which a text was sent."""
    host, port = address.removeprefix("http://").split(":")
    link = socket.create_connection((host, int(port)), timeout=5)
    link.sendall(text.replace("\n", "\r\n").format(host=f"{host}:{port}").encode())
    return link


def test_who_leaves_during_an_analysis_leaves_nothing_in_the_log(address, monkeypatch):
    begun = []
    monkeypatch.setattr(library.Library, "opinion", lambda *_: (begun.append(1), time.sleep(0.1)))
    path = "/api/analyse?rules=3x2&board=110000&player=greedy&player=random&player=montecarlo"
    with logged() as lines:
        for number in range(1, 4):
            with sent(address, f"GET {path} HTTP/1.1\nHost: {{host}}\n\n"):
                while len(begun) < number:
                    time.sleep(0.01)
            time.sleep(0.3)
        gc.collect()  # when a future that nobody has looked at says so
    assert lines == []


def test_the_log_has_one_line_for_a_client(address, monkeypatch):
    monkeypatch.setattr(connections.ClientLog, "told", connections.Told())
    with logged() as lines:
        for text in ("nonsense\n\n", "GET / HTTP/1.1\nHost: a\nHost b\n\n", "\0\n\n"):
            with sent(address, text) as link:
                assert b"400 Bad Request" in link.recv(1000)
    assert lines == ["127.0.0.1: Invalid HTTP request received."]


def test_lines_about_clients_are_bounded(monkeypatch):
    monkeypatch.setattr(connections, "LINES", 2)
    told = connections.Told()
    assert [told.is_new(name) for name in "aabbccd"] == [True, False, True, *[False] * 4]
    told._since -= connections.HOUR + 1
    assert told.is_new("a")


def test_what_goes_wrong_in_the_studio_is_logged_with_its_place():
    log = connections.ClientLog(("10.0.0.1", 1))
    log.told = connections.Told()
    with logged() as lines:
        for _ in range(3):
            try:
                int("x")
            except ValueError:
                log.exception("Exception in ASGI application\n")
    assert len(lines) == 1 and "Traceback" in lines[0]


@pytest.mark.parametrize(
    "text",
    ["GET / HT", "GET / HTTP/1.1\nHost: {host}\n", "POST /api/review HTTP/1.1\nHost: {host}\n"
     "Content-Type: application/json\nContent-Length: 99\n\n"],
)  # fmt: skip
def test_a_request_that_does_not_arrive_is_given_up(address, monkeypatch, text):
    """Also if a byte comes now and then."""
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 0.3)
    began = time.monotonic()
    with sent(address, text) as link:
        link.settimeout(0.05)
        while time.monotonic() - began < 3:
            try:
                if link.recv(1000) == b"":
                    break
            except TimeoutError:
                link.sendall(b"x")
            except OSError:
                break
    assert 0.2 < time.monotonic() - began < 3


def test_a_socket_waits_for_a_client_that_is_slow_to_read():
    """Which the oldest server that the package allows has to do, or memory would grow."""
    assert connections.SocketConnection.pause_writing is not asyncio.BaseProtocol.pause_writing


def test_connections_that_did_send_a_request_stay(address, monkeypatch):
    from websockets.sync.client import connect

    monkeypatch.setattr(connections, "REQUEST_SECONDS", 0.2)
    whole = "GET /api HTTP/1.1\nHost: {host}\n\n"
    with sent(address, whole) as link, connect(address.replace("http", "ws") + "/api/watch") as ws:
        assert link.recv(10_000).startswith(b"HTTP/1.1 200")
        time.sleep(0.5)
        link.sendall(whole.format(host=address[7:]).replace("\n", "\r\n").encode())
        assert link.recv(10_000).startswith(b"HTTP/1.1 200")
        ws.send("nonsense")
        assert "JSON object" in ws.recv(timeout=5)


def test_a_crowd_is_answered_without_errors(solved_home, monkeypatch):
    """Fifty clients and twenty that watch; how fast that is, is in docs/results.md."""
    from lab2048.bench import studio as bench_studio

    monkeypatch.setattr(bench_studio, "SECONDS", 1.0)
    found = bench_studio.bench_studio()
    assert found["page"]["bytes"] < 300_000 and found["board"] == "3x2"
    assert found["crowd"]["errors"] == 0 and found["crowd"]["answers_per_second"] > 50
    assert found["table_crowd"]["errors"] == 0 and found["table_crowd"]["clients"] == 200
