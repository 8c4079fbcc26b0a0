"""Games that are watched over a socket of the studio."""

from __future__ import annotations

import asyncio
import json
import time

import pytest
from starlette.websockets import WebSocketDisconnect
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from lab2048.game import Game, Rules
from lab2048.game.record import Record, moves_text
from lab2048.studio import connections
from lab2048.studio import watch as watching
from lab2048.studio.fair_queue import Desk
from lab2048.studio.limits import checked_player
from tests.serving import logged

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]  # a server, and much to compile


def watching_at(address):
    """A socket of a studio."""
    return connect(address.replace("http", "ws") + "/api/watch")


def watch(address, *orders, until=1):
    """Messages of a game that is watched, until there was so often an end or an error."""
    found = []
    with watching_at(address) as link:
        for order in orders:
            link.send(order if isinstance(order, str) else json.dumps(order))
        while sum(bool(each.get("over") or each.get("error")) for each in found) < until:
            found.append(json.loads(link.recv(timeout=60)))
    return found


def test_a_watched_game_is_the_player_s_own(address):
    start = {"do": "start", "rules": "3x3", "player": "greedy", "seed": "11", "speed": 0}
    frames = watch(address, start)
    assert frames[0]["started"] == {"rules": "3x3", "p4": 0.1, "player": "greedy", "seed": "11"}
    game = Game(Rules(3, 3), 11)
    player = checked_player("greedy", game.rules)
    while not game.over:
        game.play(player.choose(game.board, game.own_word))
    record = Record.of(game, "greedy")
    assert "".join(frame["moves"] for frame in frames) == record.moves
    assert "".join(frame["spawns"] for frame in frames) == record.spawns
    assert (frames[-1]["score"], frames[-1]["board"]) == (game.score, game.board.hex)


def test_a_watched_game_goes_on_where_it_was(address):
    start = {"do": "start", "rules": "3x2", "player": "random", "seed": 4, "speed": 0}
    whole = "".join(frame["moves"] for frame in watch(address, start))
    later = watch(address, {**start, "skip": 5, "paused": True}, {"do": "step"}, {"do": "play"})
    assert later[0]["count"] == 5 and later[0]["moves"] == whole[:5]
    assert "".join(frame["moves"] for frame in later) == whole


def test_frames_are_written_off_the_event_loop(address, monkeypatch):
    """The first one may have all the moves of a long game."""
    loops = []

    def noted(moves):
        loops.append(asyncio._get_running_loop())
        return moves_text(moves)

    monkeypatch.setattr(watching, "moves_text", noted)
    watch(address, {"do": "start", "rules": "3x2", "player": "random", "seed": 4, "skip": 5})
    assert len(loops) > 1 and {*loops} == {None}


def test_a_step_is_one_move_and_a_pause_is_none(address):
    with watching_at(address) as link:

        def order(what, **more):
            link.send(json.dumps({"do": what, **more}))

        def count():
            return json.loads(link.recv(timeout=60))["count"]

        order("start", rules="4x4", player="random", seed=1, speed=30, paused=True)
        assert count() == 0
        for steps in (1, 2, 3):
            order("step")
            assert count() == steps
        order("play")
        assert count() > 3
        order("pause")
        with pytest.raises(TimeoutError):
            all(not json.loads(link.recv(timeout=0.4))["over"] for _ in range(1000))


@pytest.mark.parametrize(
    ("order", "why"),
    [
        ("nonsense", "JSON object"),
        ("[1]", "JSON object"),
        ("{" * 5000, "at most 4096"),
        ({"do": "dance"}, "an order is"),
        ({"do": "start", "player": "nobody"}, "no player"),
        ({"do": "start", "player": "greedy", "rules": "1x1"}, "1x1"),
        ({"do": "start", "player": "greedy", "seed": -1}, "seed"),
        ({"do": "start", "player": "greedy", "speed": "fast"}, "speed"),
        ({"do": "start", "player": "greedy", "p4": "x"}, "p4"),
        ({"do": "start", "player": "mcts:simulations=1000000"}, "at most"),
    ],
)
def test_an_order_that_makes_no_sense_is_answered(address, order, why):
    assert why in watch(address, order)[-1]["error"]
    good = {"do": "start", "rules": "3x2", "player": "greedy", "seed": 1, "speed": 0}
    last = watch(address, good, order, until=2)  # and the game that is under way goes on
    assert any(why in each.get("error", "") for each in last) and any("over" in e for e in last)


def test_bad_utf8_ends_a_socket_with_one_line(address, monkeypatch):
    monkeypatch.setattr(connections.ClientLog, "told", connections.Told())
    with logged() as lines:
        for _ in range(3):
            with watching_at(address) as link:
                link.protocol.send_text(b"\xff")
                link.socket.sendall(b"".join(link.protocol.data_to_send()))
                with pytest.raises(ConnectionClosed):
                    link.recv(timeout=5)
    assert lines == ["127.0.0.1: Invalid UTF-8 sequence received from client."]


class Gone:
    """A socket whose client left while a message was sent, as Starlette tells it."""

    async def accept(self):
        pass

    async def send_text(self, text):
        raise WebSocketDisconnect(1006)

    async def receive_text(self):
        raise RuntimeError("WebSocket is not connected")

    async def close(self, code=1000):
        raise RuntimeError("a close message has been sent")


@pytest.mark.parametrize("most", [0, 1])
def test_a_socket_that_has_gone_is_no_error(monkeypatch, most):
    monkeypatch.setattr(watching, "WATCHED", most)
    watches = watching.Watches(None, None)
    asyncio.run(watches.serve(Gone(), ("127.0.0.1", 1)))
    assert watches.open == []


def test_games_wait_while_answers_are_late():
    made = []

    async def all_of_it():
        desk = Desk(1)
        desk.lag = 0.2
        task = asyncio.create_task(desk.run_patiently(("a", 1), made.append, 1))
        await asyncio.sleep(0.1)
        early = list(made)
        await task
        desk.close()
        return early

    assert asyncio.run(all_of_it()) == [] and made == [1]


def test_a_player_that_takes_too_long_ends_the_game_not_the_studio(address, monkeypatch):
    monkeypatch.setattr(watching, "MOVE_SECONDS", 0.05)
    slow = {"do": "start", "rules": "4x4", "player": "sparse:depth=4,samples=0", "seed": 1}
    (last,) = watch(address, slow)
    assert "takes more than 0.05 s" in last["error"]


def test_who_leaves_ends_the_game(address, monkeypatch):
    """Also one that is still far from where it is to be shown from."""
    made = []
    choose = watching.Run._advance
    monkeypatch.setattr(watching.Run, "_advance", lambda *a: (made.append(1), choose(*a)))
    order = {"do": "start", "rules": "4x4", "player": "expectimax:time=100ms", "skip": 100000}
    with watching_at(address) as link:
        link.send(json.dumps(order))
        while len(made) < 3:
            time.sleep(0.05)
    end, before = time.monotonic() + 10, 0
    while len(made) > before:  # it makes a move every 100 ms
        assert time.monotonic() < end
        before = len(made)
        time.sleep(0.4)


@pytest.mark.parametrize("limit", ["WATCHED", "WATCHED_BY_ONE"])
def test_watched_games_are_limited_and_idle_ones_dropped(address, monkeypatch, limit):
    monkeypatch.setattr(watching, limit, 1)
    with watching_at(address) as first:
        first.send(json.dumps({"do": "start", "rules": "3x2", "player": "random", "paused": True}))
        assert "started" in json.loads(first.recv(timeout=60))
        with watching_at(address) as second:
            assert "too many games" in json.loads(second.recv(timeout=60))["error"]
        monkeypatch.setattr(watching, "IDLE", 0.1)
        first.send(json.dumps({"do": "pause"}))  # and then nothing for that long
        assert "nothing was asked" in json.loads(first.recv(timeout=60))["error"]
