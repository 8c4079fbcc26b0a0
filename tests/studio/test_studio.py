"""The studio without a browser: its interface, its limits, its manners under load."""

from __future__ import annotations

import asyncio
import gc
import json
import socket
import threading
import time
from importlib import metadata
from types import SimpleNamespace

import httpx
import pytest

from lab2048.game import Board, Direction, Game, Rules
from lab2048.game.record import Record
from lab2048.measure import positions as analysis
from lab2048.measure.archive import keep_results, read_results
from lab2048.players import registry
from lab2048.players.expectimax import Expectimax
from lab2048.players.heuristics import evaluator
from lab2048.players.mcts import tree_of_thread
from lab2048.players.registry import PLAYERS, player_class
from lab2048.players.simple import Greedy
from lab2048.solver.problem import Problem
from lab2048.solver.table import Table
from lab2048.studio import connections, limits, results, table_jobs
from lab2048.studio import fair_queue as work
from lab2048.studio import resources as library
from lab2048.studio import review as studio_review
from lab2048.studio.fair_queue import BusyError, Desk
from lab2048.studio.limits import checked_player
from lab2048.studio.pages import STATIC, VIEWS, page_files
from tests.conftest import run_command
from tests.serving import logged, serving

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]  # a server, and much to compile


@pytest.fixture
def client(address):
    with httpx.Client(base_url=address, timeout=120) as found:
        yield found


def a_game(rules, seed, moves=10**6):
    """A game in which the first legal move is made."""
    game = Game(rules, seed)
    while not game.over and len(game.moves) < moves:
        game.play(game.board.legal_moves[0])
    return game


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


# -- positions -----------------------------------------------------------------------------------


def test_an_analysis_is_the_object_of_probe(client, made):
    board, rules = Board.parse("16 4 / 2 8 / . 2"), Rules(3, 2)
    asked = {"board": str(board), "player": ["greedy", "random"], "after": "down"}
    found = client.get("/api/analyse", params=asked).json()
    with Table(made) as table:
        thoughts = analysis.opinions(board, rules, ["greedy", "random"])
        wanted = analysis.probed(board, rules, table, "down", thoughts).as_json()
        exact = table.moves(board)
    assert found.pop("note") is None and found.pop("solvable") is False
    assert found == json.loads(json.dumps(wanted))
    for direction in Direction:
        legal = direction in exact
        assert found["moves"][str(direction)]["q"] == (exact[direction].q if legal else None)


def test_an_objective_is_parsed_off_the_event_loop(client, monkeypatch):
    """One that nobody knows is looked for in all distributions that are installed."""
    looked = []
    monkeypatch.setattr(metadata, "entry_points", lambda **_: looked.append(on_a_loop()) or [])
    asked = {"board": "110000", "rules": "3x2", "player": "optimal:objective=luck"}
    found = client.get("/api/analyse", params=asked)
    assert found.status_code == 400 and "luck" in found.json()["detail"]
    assert looked and not any(looked)


def test_a_position_that_no_game_reaches_is_still_analysed(client):
    found = client.get("/api/analyse", params={"board": "64 64 / 64 64 / 64 .", "player": "greedy"})
    facts = found.json()
    assert facts["value"] is None and "no game reaches" in facts["note"]
    assert facts["players"]["greedy"]["choice"] == "up"


def test_small_boards_are_solved_when_they_are_asked_for(client):
    found = {"value": None, "note": "ask again"}
    while found["value"] is None:  # on a busy machine a table takes its time
        assert "ask again" in found["note"]
        found = client.get("/api/analyse", params={"board": "2 2 / 4 ."}).json()
    assert round(found["value"], 4) == 64.9077
    chances = client.get("/api/reach", params={"board": "2 2 / 4 ."}).json()["chances"]
    assert set(chances) == {"8", "16", "32"} and chances["8"] == 1 and 0 < chances["32"] < 0.2
    names = [each["name"] for each in client.get("/api/tables").json()["tables"]]
    assert {"2x2-score", "2x2-reach-32", "3x2-score"} <= set(names)
    surveyed = client.post("/api/surveys/2x2-score")
    assert surveyed.status_code == 202
    end = time.monotonic() + 120
    while client.get("/api/tables").json()["making"]:
        assert time.monotonic() < end
        time.sleep(0.2)
    assert round(client.get("/api/surveys/2x2-score").json()["score"]["mean"], 2) == 66.96


BAD = {
    "/api/analyse?board=2+3+/+4+5": "3",
    "/api/analyse?board=2+4+/+8+16&rules=3x3": "2x2",
    "/api/analyse?board=": "board",
    "/api/analyse": "board",
    "/api/analyse?board=1100&p4=2": "p4",
    "/api/analyse?board=1100&after=north": "after",
    "/api/analyse?board=1112&after=left&rules=4x1": "4x1",
    "/api/analyse?board=2+4+/+.+.+/+.+.&after=left": "not legal",
    "/api/analyse?board=110000&rules=3x2&player=expectimx": "did you mean expectimax",
    "/api/analyse?board=110000&rules=3x2&player=expectimax:depth=9": "at most 5",
    "/api/analyse?board=110000&rules=3x2&player=expectimax:time=9s": "at most 1s",
    "/api/analyse?board=110000&rules=3x2&player=python:os.system": "your own",
    "/api/analyse?board=110000&rules=3x2&player=ntuple:../../x": "name",
    "/api/analyse?board=110000&rules=3x2&player=ntuple:/etc/x.safetensors": "name",
    "/api/analyse?board=110000&rules=3x2&player=zero:device=cpu": "cannot be chosen",
    "/api/analyse?board=110000&rules=3x2" + "&player=greedy" * 5: "player",
    "/api/reach?board=1200000000000000": "12 cells",
    "/api/players?rules=9x9": "9x9",
    "/api/results/20260101-000000-abcdef": "no results",
    "/api/results/..%2F..%2Fbest": "Not Found",
    "/api/surveys/%2e%2e": "no survey",
    "/api/surveys/3x2-score": "no survey",
}


@pytest.mark.parametrize("path", BAD)
def test_a_bad_request_gets_one_clear_line(client, path):
    found = client.get(path)
    detail = found.json()["detail"]
    assert 400 <= found.status_code < 500 and "\n" not in detail
    assert BAD[path] in detail


def test_a_large_board_is_not_solved_on_request(client):
    for board in ("4x3", "5x2"):
        found = client.post("/api/tables", json={"board": board})
        assert found.status_code == 400 and f"lab2048 solve {board}" in found.json()["detail"]
    found = client.post("/api/tables", json={"board": "3x3", "p4": 0.2})  # half a GB for any p4
    assert found.status_code == 400 and "not made on request" in found.json()["detail"]
    assert client.post("/api/tables", json={"board": "4x4"}).status_code == 400


@pytest.mark.parametrize(("limit", "most"), [("SOLVES", 2), ("SOLVED_BYTES", 3_000)])
def test_only_so_many_tables_are_made_on_request(client, monkeypatch, limit, most):
    """Tables are counted, not requests: the chances of the tiles of 2x2 are three."""
    monkeypatch.setattr(table_jobs, limit, most)
    found = client.get("/api/reach", params={"board": "2 2 / 4 .", "p4": 0.3})
    assert found.status_code == 400 and "no room left" in found.json()["detail"]
    assert client.get("/api/tables").json()["making"] == []


def test_tables_that_were_not_made_are_not_counted(solved_home, monkeypatch):
    problems = [Problem.of(Rules(2, 2, 0.3), objective=f"reach:{tile}") for tile in (8, 16)]

    async def one_that_fails():
        jobs = table_jobs.TableJobs()
        monkeypatch.setattr("sys.executable", "false")
        job = jobs.solve(problems)
        assert jobs._made == set(problems)
        await job.task
        return job.trouble, jobs._made

    assert asyncio.run(one_that_fails()) == ("the process was ended", set())


HARMLESS = {"c1", "c2", "cells", "cutoff", "gamma"}
"""Options with a number that does not make a move take longer."""


def test_all_that_a_request_may_ask_for_is_bounded():
    for name in PLAYERS:
        for each in player_class(name).options():
            number = each.default is None or isinstance(each.default, int | float)
            number = number and not each.metadata["choices"]
            mcts_depth = (name, each.name) == ("mcts", "depth")  # simulations are what counts
            if number and each.name not in HARMLESS and not mcts_depth:
                assert (name, each.name) in limits.MOST
    for name, option in limits.MOST:
        value = limits.MOST[name, option]
        text = f"{2 * value}s" if option == "time" else str(int(2 * value))
        with pytest.raises(ValueError, match="at most"):
            checked_player(f"{name}:{option}={text}", Rules(3, 3))


def test_players_that_others_added_are_listed(client, monkeypatch):
    """One that was registered, and one of another distribution that cannot be loaded."""

    class Mine(Greedy):
        name, about = "mine", "a player of mine"

    def load():
        raise RuntimeError("no such device")

    monkeypatch.setitem(registry._registered, "mine", Mine)
    monkeypatch.setattr(registry, "_elsewhere", lambda: {"theirs": SimpleNamespace(load=load)})
    assert client.get("/api").json()["players"] == [*PLAYERS, "theirs", "mine"]
    found = {each["name"]: each for each in client.get("/api/players").json()}
    assert found["mine"]["about"] == "a player of mine" and found["mine"]["trouble"] is None
    assert found["theirs"]["trouble"] == "the player theirs cannot be loaded: no such device"
    assert registry.CUSTOM not in found
    thoughts = client.get(
        "/api/analyse", params={"board": "110000", "rules": "3x2", "player": "mine"}
    )
    assert thoughts.json()["players"]["mine"]["choice"] is not None


# -- games ---------------------------------------------------------------------------------------


def reviewed(client, record, judge=None):
    asked = {"game": json.loads(record.to_json()), "judge": judge}
    found = client.post("/api/review", json=asked)
    assert found.status_code == 200, found.text
    return [json.loads(line) for line in found.text.splitlines()]


def test_a_review_is_that_of_the_command(client, tmp_path, solved_home):
    record = Record.of(a_game(Rules(3, 2), 5), "me")
    lines = reviewed(client, record)
    facts = {"judge": "perfect play", "exact": True, "caveat": None, "points": True}
    assert lines[0] == {**facts, "moves": len(record.moves)}
    path = tmp_path / "game.jsonl"
    path.write_text(record.to_json() + "\n")
    told = json.loads(run_command("review", str(path), "--json").stdout)
    assert lines[-1]["summary"] == {k: told[k] for k in lines[-1]["summary"]}
    steps = [step for line in lines for step in line.get("steps", [])]
    assert len(steps) == len(record.moves)
    assert steps[-1]["loss"] == pytest.approx(sum(step["regret"] for step in steps))


def test_a_review_is_written_off_the_event_loop(client, solved_home, on_loop):
    texts, summaries = on_loop(json, "dumps"), on_loop(studio_review, "summary")
    assert "summary" in reviewed(client, Record.of(a_game(Rules(3, 2), 5), "me"))[-1]
    assert summaries == [] and [len(text) for text in texts if len(text) > 200] == []


def test_a_review_by_a_player_of_a_game_that_began_elsewhere(client):
    start = Board.parse("16 8 . / 4 2 . / 2 . .")
    game = Game(Rules(3, 3), 3, start=start)
    for _ in range(5):
        game.play(game.board.legal_moves[-1])
    lines = reviewed(client, Record.of(game, "me"), "greedy")
    assert lines[0]["judge"] == "greedy" and lines[1]["steps"][0]["board"] == start.hex
    assert not lines[0]["exact"] and "not known" in lines[0]["caveat"]
    assert lines[-1]["summary"]["moves"] == 5 and lines[-1]["summary"]["loss"] is None
    assert set(lines[-1]["summary"]["marks"]) <= {"best", "other"}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"moves": "0"}, "1 moves need 3 spawns"),
        ({"score": 1}, "the moves give score"),
        ({"format": 2}, "format 2"),
        ({"rules": {"rows": 9, "cols": 9, "p4": 0.1}}, "9x9"),
        ({"moves": 7}, "wrong kind"),
        ({"start": "0"}, "not a game"),
    ],
)
def test_a_game_that_is_none_is_refused(client, change, why):
    record = json.loads(Record.of(a_game(Rules(3, 2), 5), "me").to_json())
    found = client.post("/api/review", json={"game": {**record, **change}})
    assert found.status_code == 400 and why in found.json()["detail"]


# -- who may ask ---------------------------------------------------------------------------------


def test_only_its_own_page_may_ask(client, address):
    own = {"origin": address}
    assert client.get("/api/tables", headers=own).status_code == 200
    assert client.get("/api/tables", headers={"origin": "http://evil.example"}).status_code == 403
    assert client.get("/api/tables", headers={"origin": "null"}).status_code == 403
    other_scheme = {"origin": address.replace("http", "https")}
    assert client.get("/api/tables", headers=other_scheme).status_code == 403
    assert client.get("/", headers={"host": "evil.example"}).status_code == 421
    assert client.get("/", headers={"host": "127.0.0.1.evil.example:80"}).status_code == 421
    assert raw_status(client.base_url, "/api", "Host: evil.example\r\n") == 400
    assert client.get("/", headers={"host": "[::1].evil"}).status_code == 421
    near = {"sec-fetch-site": "same-site", "sec-fetch-mode": "no-cors"}  # another port's picture
    assert client.get("/api/tables", headers=near).status_code == 403
    cross = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}
    assert client.get("/api/tables", headers=cross).status_code == 403
    framed = {**cross, "sec-fetch-mode": "navigate"}
    assert client.get("/", headers=framed).status_code == 200
    assert client.get("/api/tables", headers=framed).status_code == 403


def test_a_socket_of_another_site_is_refused(address):
    from websockets.exceptions import InvalidStatus
    from websockets.sync.client import connect

    where = address.replace("http", "ws") + "/api/watch"
    for other in ("http://evil.example", address.replace("http", "https")):
        with pytest.raises(InvalidStatus), connect(where, origin=other):
            pass
    with connect(where, origin=address):
        pass


def test_on_other_addresses_names_are_still_checked(solved_home):
    with serving(["mybox"], any_address=True) as found, httpx.Client(base_url=found) as client:
        assert client.get("/api", headers={"host": "10.1.2.3:2048"}).status_code == 200
        assert client.get("/api", headers={"host": "mybox:2048"}).status_code == 200
        assert client.get("/api", headers={"host": "[::1]:2048"}).status_code == 200
        assert client.get("/api", headers={"host": "evil.example"}).status_code == 421


def test_a_body_has_a_limit(client):
    large = b"[" + b"1," * limits.BODY
    assert client.post("/api/review", content=large).status_code == 413

    def pieces():
        for _ in range(40):
            yield b"x" * 65536

    assert client.post("/api/review", content=pieces()).status_code == 413
    assert client.post("/api/review", content=b"{}").status_code == 422


def test_pages_have_a_policy_without_inline_script(client):
    for path in ("/", *VIEWS, "/api/docs"):
        found = client.get(path)
        policy = found.headers["content-security-policy"]
        assert found.status_code == 200
        assert "unsafe" not in policy and "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert not any(each in found.text for each in ("<script>", "style=", "://"))
    names = {path.relative_to(STATIC).as_posix() for path in STATIC.rglob("*") if path.is_file()}
    assert names | {"tiles.css"} == set(page_files())
    for name in names:
        found = client.get(f"/static/{name}")
        assert found.status_code == 200 and found.headers["x-content-type-options"] == "nosniff"
        again = {"if-none-match": found.headers["etag"]}
        assert client.get(f"/static/{name}", headers=again).status_code == 304
    for path in ("/static/../app.py", "/static/..%2fapp.py"):
        assert raw_status(client.base_url, path) == 404


def raw_status(address, path, more=""):
    """The status of an answer to a path, and headers, just as they are given."""
    with socket.create_connection((address.host, address.port)) as link:
        link.sendall(f"GET {path} HTTP/1.1\r\n{more}Host: {address.host}\r\n\r\n".encode())
        return int(link.recv(100).split()[1])


def test_tiles_have_the_colours_of_everything_else(client):
    found = client.get("/static/tiles.css").text
    assert ".r11 { background: rgb(169, 43, 115); color: rgb(255, 255, 255); }" in found


# -- the work ------------------------------------------------------------------------------------


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


# -- clients that leave, or never quite come -----------------------------------------------------


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


# -- results -------------------------------------------------------------------------------------


def test_collections_are_written_off_the_event_loop(client, command, solved_home, on_loop):
    assert command("evaluate", "greedy", "--board", "3x2", "--games", "20")[0] == 0
    texts = on_loop(json, "dumps")
    (name,) = {each["name"] for each in client.get("/api/results").json()}
    for path in (f"results/{name}", "tables", "players"):
        assert client.get(f"/api/{path}").status_code == 200
    (solved_home / "results" / f"{name}.json").unlink()
    assert texts == []


def test_results_are_read_again_only_when_they_have_changed(own_home, monkeypatch):
    scores = {"player": "me", "board": "3x2", "scores": [1, 2], "score": {"mean": 1.5}}
    first = keep_results([scores], ["evaluate"])
    reads = []
    monkeypatch.setattr(
        results, "read_results", lambda name: reads.append(name) or read_results(name)
    )
    listing = results.ResultList()
    assert [each["name"] for each in json.loads(listing.encoded())] == [first.stem]
    second = keep_results([scores], ["evaluate"])
    (first.parent / "20200101-000000-abcdef.json").write_text("damaged")
    for _ in range(2):
        names = {each["name"] for each in json.loads(listing.encoded())}
        assert names == {first.stem, second.stem}
    assert sorted(reads) == sorted([first.stem, second.stem, "20200101-000000-abcdef"])
    second.write_text(second.read_text().replace('"me"', '"somebody else"'))
    players = {each["results"][0]["player"] for each in json.loads(listing.encoded())}
    assert players == {"me", "somebody else"}
    first.unlink()
    assert len(json.loads(listing.encoded())) == 1


def test_evaluations_are_kept_and_listed(client, command, solved_home):
    code, _, _ = command("evaluate", "greedy", "random", "--board", "3x2", "--games", "50")
    assert code == 0
    (found,) = client.get("/api/results").json()
    assert [each["player"] for each in found["results"]] == ["greedy", "random"]
    assert found["results"][0]["regret_per_game"]["mean"] > 0
    whole = client.get(f"/api/results/{found['name']}").json()
    (greedy, _) = whole["results"]
    assert len(greedy["quantiles"]) == 101 and greedy["quantiles"][50] == greedy["score"]["median"]
    assert "scores" not in greedy
    kept = solved_home / "results" / f"{found['name']}.json"
    text = kept.read_text()
    older = kept.with_name("20200101-000000-ffffff.json")
    older.write_text(text)
    listed = [each["name"] for each in client.get("/api/results").json()]
    assert listed == [found["name"], older.stem]  # the newest first
    older.unlink()
    odd = [
        '{"format": 1, "results": [1]}',
        text.replace('"format": 1', '"format": 2'),
        text[: len(text) // 2],
        text.replace('"games": 50', '"games": NaN'),
    ]
    for damaged in odd:
        kept.write_text(damaged)
        assert client.get("/api/results").json() == []
    kept.unlink()


# -- everything, garbled -------------------------------------------------------------------------


def test_nothing_that_fits_the_description_is_an_error_of_the_server(address):
    """Requests made up from the interface's own description."""
    import schemathesis
    from hypothesis import HealthCheck, given, settings
    from hypothesis import strategies as st
    from schemathesis.generation import GenerationMode

    schema = schemathesis.openapi.from_url(f"{address}/api/openapi.json")
    cases = [each.ok() for each in schema.get_all_operations()]
    assert {case.path for case in cases} >= {"/api/analyse", "/api/reach", "/api/review"}
    quiet = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))

    def ask(case):
        answer = case.call(base_url=address, timeout=60)
        assert answer.status_code < 500, answer.text
        if answer.status_code >= 400:
            assert "\n" not in answer.json()["detail"]
        else:
            case.validate_response(answer)

    def wrong(operation):
        return operation.as_strategy(generation_mode=GenerationMode.NEGATIVE)

    for operation in cases:
        quiet(given(st.one_of(operation.as_strategy(), wrong(operation)))(ask))()


# -- the command ---------------------------------------------------------------------------------


def test_the_command_says_where_it_is_and_what_is_wrong(command):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        code, out, err = command("studio", "--port", str(taken.getsockname()[1]))
    assert code == 2 and out == "" and "--port 0" in err and err.count("\n") == 1
    code, _, err = command("studio", "--host", "no.such.host.invalid")
    assert code == 2 and "cannot listen" in err


def test_a_problem_that_makes_no_sense_is_one_line(capsys):
    from lab2048.studio import solve_process as solving

    assert solving.main([json.dumps(Problem.of("2x2").as_json() | {"objective": "x"})]) == 1
    assert "an objective is" in capsys.readouterr().err
