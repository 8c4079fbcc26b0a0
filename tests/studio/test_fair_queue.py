"""Work is shared fairly, bounded, and given up when nobody waits for it."""

from __future__ import annotations

import asyncio
import socket
import threading
import time

import httpx
import pytest

from lab2048.game import Rules
from lab2048.players.expectimax import Expectimax
from lab2048.players.heuristics import evaluator
from lab2048.players.mcts import tree_of_thread
from lab2048.studio import fair_queue as work
from lab2048.studio import limits
from lab2048.studio import resources as library
from lab2048.studio.fair_queue import BusyError, Desk
from tests.serving import serving

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]  # a server, and much to compile


def test_who_asks_for_much_does_not_keep_others_waiting():
    order = []

    def busy(name):
        time.sleep(0.01)
        order.append(name)

    async def all_of_it():
        desk = Desk(1)
        mine, yours = ("127.0.0.1", 1), ("127.0.0.1", 2)
        greedy = [asyncio.create_task(desk.run(mine, busy, "greedy")) for _ in range(30)]
        await asyncio.sleep(0.05)
        before = order.count("greedy")
        modest = [asyncio.create_task(desk.run(yours, busy, "modest")) for _ in range(3)]
        await asyncio.gather(*modest)
        meanwhile = order.count("greedy") - before
        await asyncio.gather(*greedy)
        desk.close()
        return meanwhile

    assert asyncio.run(all_of_it()) <= 6  # by turns
    assert order.count("modest") == 3 and len(order) == 33


def test_who_asks_for_little_is_served_before_who_asks_for_much():
    """Each asks for one thing at a time, as browsers do."""

    async def all_of_it():
        desk = Desk(1)
        heavy_done = 0
        passed = []  # how many others were served while it waited
        going = True

        async def heavy(name):
            nonlocal heavy_done
            while going:
                await desk.run((name, 1), time.sleep, 0.02)
                heavy_done += 1

        async def light():
            nonlocal going
            for _ in range(30):
                before = heavy_done
                await desk.run(("light", 1), time.sleep, 0.001)
                passed.append(heavy_done - before)
                await asyncio.sleep(0.005)
            going = False

        await asyncio.gather(*(heavy(f"heavy {i}") for i in range(10)), light())
        desk.close()
        return sorted(passed)[len(passed) // 2]

    assert asyncio.run(all_of_it()) <= 3  # by turns it would be ten


def test_what_nobody_waits_for_is_not_done():
    done = []

    async def all_of_it():
        desk = Desk(1)
        hold = threading.Event()
        a, b = ("a", 1), ("b", 1)
        first = asyncio.create_task(desk.run(a, hold.wait))
        await asyncio.sleep(0.05)
        tasks = [asyncio.create_task(desk.run(b, done.append, i)) for i in range(5)]
        await asyncio.sleep(0.05)
        for task in tasks[:4]:
            task.cancel()
        await asyncio.sleep(0.05)
        hold.set()
        await first
        await tasks[4]
        desk.close()
        with pytest.raises(BusyError):
            await desk.run(a, int)

    asyncio.run(all_of_it())
    assert done == [4]


def test_an_answer_that_nobody_waits_for_is_given_up(address, client):
    slow = "/api/analyse?rules=4x4&board=1200000000000000&player=expectimax:time=1s"
    client.get("/api/analyse?rules=4x4&board=1200000000000000&player=expectimax")
    where = address.removeprefix("http://").split(":")
    for _ in range(30):
        with socket.create_connection((where[0], int(where[1]))) as link:
            link.sendall(f"GET {slow} HTTP/1.1\r\nHost: {':'.join(where)}\r\n\r\n".encode())
            time.sleep(0.01)
    began = time.monotonic()
    assert client.get("/api/tables").status_code == 200
    assert time.monotonic() - began < 10  # thirty seconds, by two threads, if all were done


def test_what_waits_is_bounded_and_errors_come_back():
    async def all_of_it():
        desk = Desk(1)
        hold = threading.Event()
        ports = range(limits.WAITING)  # an address counts, not a connection
        waiting = [asyncio.create_task(desk.run(("a", port), hold.wait)) for port in ports]
        await asyncio.sleep(0.05)
        waiting.append(asyncio.create_task(desk.run(("a", 0), hold.wait)))  # one is under way
        await asyncio.sleep(0.05)
        with pytest.raises(BusyError):
            await desk.run(("a", 9999), hold.wait)
        other = asyncio.create_task(desk.run(("b", 1), int, "x"))
        hold.set()
        with pytest.raises(ValueError, match="invalid literal"):
            await other
        await asyncio.gather(*waiting)
        desk.close()

    asyncio.run(all_of_it())


def test_many_connections_of_one_address_get_no_more_than_one(solved_home, monkeypatch):
    """Twenty connections of one address, each of which claims another; and one of another."""
    monkeypatch.setattr(library.Library, "opinion", lambda *_: time.sleep(0.05))
    path = "/api/analyse?rules=3x2&board=110000&player=greedy"
    ended = []

    async def ask(where, source, number):
        reader, writer = await asyncio.open_connection(*where, local_addr=(source, 0))
        claim = f"X-Forwarded-For: 10.0.0.{number}\r\n"
        host = f"Host: 127.0.0.1:{where[1]}\r\n{claim}Connection: close\r\n\r\n"
        writer.write(f"GET {path} HTTP/1.1\r\n{host}".encode())
        await reader.read()
        ended.append(source)
        writer.close()

    async def all_of_it(where):
        many = [asyncio.create_task(ask(where, "127.0.0.2", i)) for i in range(20)]
        while not ended:
            await asyncio.sleep(0.01)
        await ask(where, "127.0.0.1", 99)
        before = len(ended)
        await asyncio.gather(*many)
        return before

    with serving(threads=1) as found:
        host, port = found.removeprefix("http://").split(":")
        assert asyncio.run(all_of_it((host, int(port)))) <= 8  # of 21; by turns it would be all


def test_beyond_the_bound_on_waiting_work_there_is_503(solved_home, monkeypatch):
    hold = threading.Event()
    monkeypatch.setattr(work, "WAITING", 2)
    monkeypatch.setattr(library.Library, "opinion", lambda *_: hold.wait(20))
    asked = {"rules": "3x2", "board": "110000", "player": ["greedy", "random", "montecarlo"]}
    with serving(threads=1) as found, httpx.Client(base_url=found, timeout=20) as client:
        first = threading.Thread(target=client.get, args=["/api/analyse"], kwargs={"params": asked})
        first.start()
        time.sleep(0.3)
        with httpx.Client(base_url=found, timeout=20) as other:
            answer = other.get("/api/analyse", params=asked)
        hold.set()
        first.join()
    assert answer.status_code == 503 and 1 <= int(answer.headers["retry-after"]) <= 30
    assert "too much is asked for" in answer.json()["detail"]


def test_a_search_that_takes_too_long_is_ended(client, monkeypatch):
    monkeypatch.setattr(library, "MOVE_SECONDS", 0.05)
    asked = {"board": "1100" + 12 * "0", "rules": "4x4", "player": "sparse:depth=4,samples=0"}
    client.get("/api/analyse", params={**asked, "player": "sparse:depth=1"})  # to compile it
    began = time.monotonic()
    answer = client.get("/api/analyse", params=asked)
    assert answer.status_code == 400 and "takes more than 0.05 s" in answer.json()["detail"]
    assert time.monotonic() - began < 0.5


def test_what_clients_leave_behind_is_bounded():
    """Connections that came once, scratch memory of players, tables of heuristics."""
    turns = work.Turns(work.Share)
    turns.enter("always there")
    for number in range(1000):
        turns.enter(number)
        name, _ = turns.take()
        turns.done(name, 1.0)
        turns.enter("always there")
    assert len(turns) <= work.REMEMBERED + 1
    few, many = Expectimax(Rules(3, 2)), Expectimax(Rules(3, 2, 0.5), heuristic="snake")
    assert few.memory(3) is many.memory(3)
    assert tree_of_thread(100) is tree_of_thread(50)
    assert evaluator("rows", Rules(3, 2)) is evaluator("rows", Rules(3, 2, 0.5))
