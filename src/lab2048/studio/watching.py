"""A game that is watched: a WebSocket, over which a player's moves come and orders go.

Orders are JSON objects with `do`:

    {"do": "start", "rules": "4x4", "p4": 0.1, "player": "expectimax", "seed": "7",
     "speed": 8, "skip": 0, "paused": false}      a new game; `skip` moves are made at once
    {"do": "pause"}   {"do": "play"}   {"do": "step"}   {"do": "speed", "speed": 30}

A speed is in moves a second, and 0 is as fast as it goes. What comes back is a *frame*, at most
thirty a second: the moves and spawns since the last one, and what the player thinks of the board
that is shown. Each socket has a game of its own.
"""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import suppress
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect

from lab2048 import chance
from lab2048.analysis import Opinion, opinion_json
from lab2048.game import P4, Game, Rules
from lab2048.studio.library import Library
from lab2048.studio.limits import IDLE, MESSAGE, WATCHED
from lab2048.studio.work import BusyError, Desk

FRAME = 1 / 30
"""Seconds from one frame to the next, at least."""
SLICE = 0.004
"""Seconds that a game takes of a thread at a time."""
FASTEST = 1000.0
"""Moves a second; beyond that the speed is 0, as fast as it goes."""
SKIPPED = 100_000
"""Moves that may be made at once at the start; no game has so many."""
PATIENCE = 20.0
"""Seconds after which someone who does not take a frame has gone."""


class Watch:
    """One game that is watched."""

    def __init__(self, socket: WebSocket, client: str, library: Library, desk: Desk) -> None:
        self.socket, self.client, self.library, self.desk = socket, client, library, desk
        self.game: Game | None = None
        self.spec = ""
        self.speed = 8.0
        self.paused = True
        self.steps = 0  # single moves that were asked for
        self.told = 0, 0  # moves and spawns that have been sent
        self.thought: Opinion | None = None
        self.due = 0.0
        self.word = asyncio.Event()

    async def run(self) -> None:
        """Play and listen until either side has gone."""
        listening = asyncio.create_task(self._listen())
        playing = asyncio.create_task(self._play())
        try:
            done, _ = await asyncio.wait((listening, playing), return_when="FIRST_COMPLETED")
            for task in done:
                task.result()
        except WebSocketDisconnect:
            pass
        finally:
            for task in (listening, playing):
                task.cancel()
            await asyncio.gather(listening, playing, return_exceptions=True)

    # -- orders --------------------------------------------------------------------------------

    async def _listen(self) -> None:
        """Take orders; one that makes no sense is answered, and changes nothing."""
        while True:
            try:
                text = await asyncio.wait_for(self.socket.receive_text(), IDLE)
            except TimeoutError:
                if not self._waits():
                    continue
                await self.tell({"error": "nothing was asked for long; start again to go on"})
                return
            except KeyError:  # bytes
                text = ""
            try:
                await self._obey(_order(text))
            except (ValueError, ImportError) as error:
                await self.tell({"error": " ".join(str(error).split())})
            self.word.set()

    def _waits(self) -> bool:
        """Whether nothing happens until somebody says so."""
        return self.paused or self.game is None or self.game.over

    async def _obey(self, order: dict[str, Any]) -> None:
        """Do what an order says, or raise a `ValueError`."""
        what = order.get("do")
        if what == "start":
            await self._start(order)
        elif what == "speed":
            self.speed = _number(order, "speed", 0, FASTEST, 8)
            self.due = 0.0
        elif what in ("pause", "play"):
            self.paused = what == "pause"
            self.due = 0.0
        elif what == "step":
            self.paused = True
            self.steps = min(self.steps + 1, 1000)
        else:
            raise ValueError("an order is start, play, pause, step or speed")

    async def _start(self, order: dict[str, Any]) -> None:
        """A new game."""
        rules = Rules.parse(str(order.get("rules", "4x4")), order.get("p4", P4))
        spec = str(order.get("player", ""))
        speed = _number(order, "speed", 0, FASTEST, 8)
        skip = int(_number(order, "skip", 0, SKIPPED, 0))
        game = Game(rules, _seed(order.get("seed")))
        self.game, self.paused = None, True
        await self.library.ready_for(spec, rules)
        await self._ask(self.library.player, spec, rules)
        self.spec, self.speed, self.steps, self.told = spec, speed, 0, (0, 0)
        while len(game.moves) < skip and not game.over:
            await self._ask(self._advance, game, skip - len(game.moves))
        self.thought = await self._ask(self._think, game)
        self.game, self.paused, self.due = game, bool(order.get("paused", False)), 0.0
        await self.tell({"started": self._facts(game), **self._frame(game, None)})

    async def _ask(self, function: Any, *args: Any) -> Any:
        """Have work done for this game; where there is too much of it, wait for a moment."""
        while True:
            try:
                return await self.desk.run(self.client, function, *args)
            except BusyError:
                await asyncio.sleep(0.2)

    # -- the game ------------------------------------------------------------------------------

    async def _play(self) -> None:
        """Make moves when they are due, and tell."""
        while True:
            game = self.game
            if game is None or game.over or (self.paused and not self.steps):
                self.word.clear()
                await self.word.wait()
                continue
            wait = self.due - time.monotonic()
            if wait > 0 and not self.steps:
                with suppress(TimeoutError):
                    self.word.clear()
                    await asyncio.wait_for(self.word.wait(), wait)
                continue
            try:
                await self._turn(game)
            except (ValueError, ImportError) as error:  # the player gave up
                self.paused = True
                await self.tell({"error": " ".join(str(error).split())})

    async def _turn(self, game: Game) -> None:
        """Make as many moves as are due for a frame, and send it."""
        began, before = time.monotonic(), len(game.moves)
        single = self.steps > 0
        if single:
            self.steps -= 1
        count = 1 if single else max(1, round(self.speed * FRAME)) if self.speed else 1 << 30
        thought = None
        while thought is None:
            left = count - (len(game.moves) - before)
            thought = await self._ask(self._part, game, left, began + FRAME)
            if self.game is not game:  # another was started meanwhile
                return
        self.thought = thought
        made, now = len(game.moves) - before, time.monotonic()
        pace = made / self.speed if self.speed else FRAME
        self.due = max(self.due, began - 0.1) + max(pace, 0.0)
        await self.tell(self._frame(game, made / max(now - began, 1e-6)))

    def _part(self, game: Game, count: int, end: float) -> Opinion | None:
        """A slice of the moves of a frame; with the last one what the player thinks then."""
        before = len(game.moves)
        self._advance(game, count)
        more = len(game.moves) - before < count and not game.over and time.monotonic() < end
        return None if more else self._think(game)

    def _think(self, game: Game) -> Opinion:
        """What the player thinks of the board."""
        return self.library.opinion(self.spec, game.rules, game.board, game.own_word)

    def _advance(self, game: Game, count: int) -> None:
        """Make up to so many moves, for as long as a slice; the first is known already."""
        player, lock = self.library.player(self.spec, game.rules)
        end = time.perf_counter() + SLICE
        first = self.thought if self.game is game else None
        self.thought = None
        for _ in range(count):
            if first is not None and first.choice is not None:
                move, first = first.choice, None
            elif lock is None:
                move = player.choose(game.board, game.own_word)
            else:
                with lock:
                    move = player.choose(game.board, game.own_word)
            game.play(move)
            if game.over or time.perf_counter() > end:
                break

    # -- what is told --------------------------------------------------------------------------

    def _facts(self, game: Game) -> dict[str, Any]:
        rules = game.rules
        return {
            "rules": rules.name,
            "p4": rules.p4,
            "player": self.library.player(self.spec, rules)[0].spec,
            "seed": str(game.seed),  # JavaScript's numbers have 53 bits
        }

    def _frame(self, game: Game, rate: float | None) -> dict[str, Any]:
        """What has happened since the last frame."""
        moves, spawns = self.told
        frame = {
            "board": game.board.hex,
            "score": game.score,
            "count": len(game.moves),
            "moves": "".join(str(int(move)) for move in game.moves[moves:]),
            "spawns": "".join(f"{cell:x}{rank}" for cell, rank in game.spawns[spawns:]),
            "over": game.over,
            "thinks": None if self.thought is None else opinion_json(self.thought),
            "rate": rate,
        }
        self.told = len(game.moves), len(game.spawns)
        return frame

    async def tell(self, message: dict[str, Any]) -> None:
        """Send a message; one who does not take it has gone."""
        try:
            await asyncio.wait_for(self.socket.send_text(json.dumps(message)), PATIENCE)
        except (TimeoutError, RuntimeError):
            raise WebSocketDisconnect(1001) from None


class Watches:
    """All games that are watched."""

    def __init__(self, library: Library, desk: Desk) -> None:
        self.library, self.desk = library, desk
        self.count = 0

    async def serve(self, socket: WebSocket, client: str) -> None:
        """Serve one that wants to watch, if there are not too many."""
        await socket.accept()
        if self.count >= WATCHED:
            await socket.send_text(
                json.dumps({"error": f"{WATCHED} games are being watched, as many as there may be"})
            )
            await socket.close(1013)
            return
        self.count += 1
        try:
            await Watch(socket, client, self.library, self.desk).run()
        finally:
            self.count -= 1
        with suppress(RuntimeError, WebSocketDisconnect):
            await socket.close()


def _order(text: str) -> dict[str, Any]:
    """An order out of a message, or a `ValueError`."""
    if not text or len(text) > MESSAGE:
        raise ValueError(f"an order is a JSON object of at most {MESSAGE} characters")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ValueError('an order is a JSON object such as {"do": "pause"}')
    return found


def _number(order: dict[str, Any], name: str, low: float, high: float, usual: float) -> float:
    """A number out of an order, or a `ValueError`."""
    found = order.get(name, usual)
    if isinstance(found, bool) or not isinstance(found, int | float) or not low <= found <= high:
        raise ValueError(f"{name} is a number from {low:g} to {high:g}")
    return float(found)


def _seed(found: Any) -> int | None:
    """A seed out of an order: a number, or its digits; None if one is to be drawn."""
    if found is None or found == "":
        return None
    digits = isinstance(found, str) and found.isascii() and found.isdigit() and len(found) <= 20
    return chance.checked_seed(int(found) if digits else found)
