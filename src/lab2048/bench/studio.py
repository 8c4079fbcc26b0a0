"""How fast the studio answers one client, and many at once; the server is a separate process."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote, urljoin

from lab2048.bench.engine import Note, machine
from lab2048.game import Game, Rules, random_move
from lab2048.solver.problem import Problem
from lab2048.solver.tables import find_table

ASKED = 600
"""Number of requests of the single client."""
CROWD = 50, 20
"""Number of clients that send one request after the other, and of those that watch games."""
TABLE_CROWD = 200, 0
"""The same, for requests that are answered from a table alone."""
SECONDS = 10.0
WATCHED = ("expectimax", "greedy", "mcts", "montecarlo", "random")
"""The players that are watched, on 4x4 at full speed."""
LOADS = 15


def bench_studio(note: Note = lambda text: None) -> dict[str, Any]:
    """Every figure of `lab2048 bench studio`."""
    board = "3x3" if find_table(Problem.of("3x3")) is not None else "3x2"
    note("start of the server")
    with studio() as (port, started):
        return asyncio.run(_measure(port, board, started, note))


@contextlib.contextmanager
def studio() -> Iterator[tuple[int, float]]:
    """Run a studio. Yield its port, and the seconds until it printed its address."""
    began = time.perf_counter()
    run = [sys.executable, "-m", "lab2048", "studio", "--port", "0"]
    with subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        found = re.search(rb":([0-9]+) ", process.stdout.readline())
        if found is None:
            raise ValueError("the studio did not start; `lab2048 studio` tells why")
        started = time.perf_counter() - began
        try:
            yield int(found[1]), started
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


async def _measure(port: int, board: str, started: float, note: Note) -> dict[str, Any]:
    """All figures of the studio at a port, `started` seconds after its launch."""
    paths = [_question(board, seed) for seed in range(200)]
    async with Connection(port) as client:
        note("compiling")
        await client.get("/api/players")
        for path in paths:  # the first requests decode the table
            await client.get(path)
        note("the page")
        page = await _page(client)
        note("one client")
        alone = [await client.timed(paths[i % len(paths)]) for i in range(ASKED)]
    note("many clients")
    await _watched(port, 1, len(WATCHED), lambda frames: None)  # compiles what is missing
    crowd = await _crowd(port, paths, *CROWD)
    note("more clients, on the table alone")
    table_crowd = await _crowd(port, paths, *TABLE_CROWD)
    return {
        "board": board,
        "start_seconds": round(started, 3),
        "page": page,
        "analyse_ms": _spread(alone),
        "crowd": crowd,
        "table_crowd": table_crowd,
        "machine": machine(),
    }


def _question(board: str, seed: int) -> str:
    """A request to analyse a position of a random game."""
    rules = Rules.parse(board)
    game = Game(rules, seed)
    for _ in range(5 + seed % 40):
        before = game.board
        game.play(random_move(before, game.own_word))
        if game.over:
            break
    position = before if game.over else game.board
    return f"/api/analyse?board={position.hex}&rules={board}"


def _spread(seconds: list[float]) -> dict[str, float]:
    """Median and 99th percentile of times, in milliseconds."""
    ordered = sorted(seconds)
    tail = ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]
    return {"median": round(1e3 * statistics.median(ordered), 2), "p99": round(1e3 * tail, 2)}


# -- the page --------------------------------------------------------------------------------------


async def _page(client: Connection) -> dict[str, Any]:
    """The files of the first view, and the time to fetch all of them."""
    names = {"/play": b""}
    missing = ["/play", "/static/views/play.js"]
    while missing:
        path = missing.pop()
        names[path] = body = await client.get(path)
        found = re.findall(rb'(?:src|href)="(/static/[^"]+)"', body)
        found += re.findall(rb'from "(\.[^"]+\.js)"', body)
        files = [urljoin(path, each.decode()) for each in found]
        missing += [each for each in files if each not in {*names, *missing}]
    times = []
    for _ in range(LOADS):
        began = time.perf_counter()
        for path in names:
            await client.get(path)
        times.append(time.perf_counter() - began)
    size = sum(map(len, names.values()))
    seconds = round(1e3 * statistics.median(times), 1)
    return {"files": len(names), "bytes": size, "transfer_ms": seconds}


# -- many at once ----------------------------------------------------------------------------------


async def _crowd(port: int, paths: list[str], clients: int, watchers: int) -> dict[str, Any]:
    """The figures of clients that send one request after the other, while others watch games."""
    end = time.perf_counter() + SECONDS
    seconds: list[float] = []
    errors = frames = 0

    def seen(count: int) -> None:
        nonlocal frames
        frames += count

    async def ask(number: int) -> None:
        nonlocal errors
        async with Connection(port) as client:
            for i in range(10**9):
                if time.perf_counter() > end:
                    return
                try:
                    seconds.append(await client.timed(paths[(number * 7 + i) % len(paths)]))
                except (OSError, ValueError):
                    errors += 1
                    return

    watching = asyncio.create_task(_watched(port, SECONDS, watchers, seen))
    await asyncio.gather(*(ask(number) for number in range(clients)))
    errors += await watching
    return {
        "clients": clients,
        "watchers": watchers,
        "seconds": SECONDS,
        **_spread(seconds),
        "answers_per_second": round(len(seconds) / SECONDS),
        "frames_per_second_a_watcher": round(frames / SECONDS / max(watchers, 1), 1),
        "errors": errors,
    }


async def _watched(port: int, seconds: float, count: int, seen: Callable[[int], None]) -> int:
    """Watch `count` games for a while. Return the number of watchers that met an error."""
    from websockets.asyncio.client import connect

    async def watch(number: int) -> int:
        order = {"do": "start", "rules": "4x4", "speed": 0, "seed": number}
        order["player"] = WATCHED[number % len(WATCHED)]
        end = None
        async with connect(f"ws://127.0.0.1:{port}/api/watch") as link:
            await link.send(json.dumps(order))
            while end is None or time.perf_counter() < end:
                frame = json.loads(await link.recv())
                end = end or time.perf_counter() + seconds
                if "error" in frame:
                    return 1
                seen(1)
                if frame["over"]:
                    order["seed"] = int(str(order["seed"])) + count
                    await link.send(json.dumps(order))
        return 0

    return sum(await asyncio.gather(*(watch(number) for number in range(count))))


class Connection:
    """A cheap HTTP client: one connection, one request at a time.

    A library such as httpx takes more of the processor, which the server needs itself.
    """

    def __init__(self, port: int) -> None:
        self.port = port

    async def __aenter__(self) -> Connection:
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        return self

    async def __aexit__(self, *error: object) -> None:
        self.writer.close()

    async def timed(self, path: str) -> float:
        """The seconds until an answer has arrived."""
        began = time.perf_counter()
        await self.get(path)
        return time.perf_counter() - began

    async def get(self, path: str) -> bytes:
        """The body of an answer; a `ValueError` if its status is not 200."""
        host = f"Host: 127.0.0.1:{self.port}"
        self.writer.write(f"GET {quote(path, safe='/?=&+')} HTTP/1.1\r\n{host}\r\n\r\n".encode())
        head = await self.reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise ValueError(f"{path} was answered with {head[:40]!r}")
        length = re.search(rb"content-length: ([0-9]+)", head.lower())
        assert length is not None
        return await self.reader.readexactly(int(length[1]))
