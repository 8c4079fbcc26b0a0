"""A watched game: a WebSocket that takes orders and sends a player's moves.

Orders are JSON objects with `do`:

    {"do": "start", "rules": "4x4", "p4": 0.1, "player": "expectimax", "seed": "7",
     "speed": 8, "skip": 0, "paused": false}      a new game; `skip` moves are made at once
    {"do": "pause"}   {"do": "play"}   {"do": "step"}   {"do": "speed", "speed": 30}

A speed is in moves per second; 0 means no limit. The answers are *frames*, at most thirty per
second: the moves and spawns since the last frame, and what the player thinks of the board shown.
Each socket has its own game.
"""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import suppress
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect

from lab2048.formatting import one_line
from lab2048.game import P4, Game, Rules, randomness
from lab2048.game.record import moves_text, spawns_text
from lab2048.measure.positions import Opinion, opinion, opinion_json
from lab2048.players.player import Player
from lab2048.players.time_limit import time_limit
from lab2048.studio.fair_queue import Client, Desk
from lab2048.studio.limits import IDLE, MESSAGE, MOVE_SECONDS, WATCHED, WATCHED_BY_ONE
from lab2048.studio.resources import Library

FRAME = 1 / 30
"""The least time between frames, in seconds."""
SLICE = 0.004
"""Seconds that a game keeps a thread at a time, unless a single move takes longer."""
SPEED, SLOWEST, FASTEST = 8.0, 0.1, 1000.0
"""Moves per second: the default, the least and the most. 0 is no limit."""
SKIPPED = 100_000
"""The most moves that may be skipped at the start; no game is that long."""
PATIENCE = 20.0
"""Seconds after which a client that takes no frame counts as gone."""


class Run:
    """A game and its player. One thread at a time works on it, and also encodes the frames."""

    def __init__(self, player: Player, game: Game, skip: int) -> None:
        self.player, self.game, self.skip = player, game, skip
        self.thought: Opinion | None = None
        self.told = 0, 0  # moves and spawns that have been sent

    @property
    def skipping(self) -> bool:
        """Whether the game has not reached the first move to be shown."""
        return len(self.game.moves) < self.skip and not self.game.over

    def opening(self) -> str:
        """Return the first frame, which also says which game it is."""
        self.think()
        return json.dumps({"started": self.facts(), **self.frame(None)})

    def turn(self, count: int, began: float, before: int) -> str | None:
        """Make moves of a frame, up to `count` after the first `before`. Return it once it is due.

        Until then return None. `began` is the time at which the frame was begun.
        """
        if not self.part(count - (len(self.game.moves) - before), began + FRAME):
            return None
        made = len(self.game.moves) - before
        return json.dumps(self.frame(made / max(time.monotonic() - began, 1e-6)))

    def part(self, count: int, end: float) -> bool:
        """Make up to `count` moves within a slice of time. Return whether a frame is due.

        It is due once all moves are made, the game is over, or the time `end` is reached; then the
        player is asked for its opinion as well.
        """
        before = len(self.game.moves)
        self._advance(count)
        game = self.game
        if len(game.moves) - before < count and not game.over and time.monotonic() < end:
            return False
        self.think()
        return True

    def think(self) -> None:
        """Ask the player what it thinks of the board."""
        with time_limit(MOVE_SECONDS, self.player.spec):
            self.thought = opinion(self.player, self.game.board, self.game.own_word)

    def _advance(self, count: int) -> None:
        """Make moves; the first may be known from the last opinion."""
        game, end = self.game, time.perf_counter() + SLICE
        known, self.thought = self.thought and self.thought.choice, None
        for _ in range(count):
            if game.over:
                return
            if known is None:
                with time_limit(MOVE_SECONDS, self.player.spec):
                    known = self.player.choose(game.board, game.own_word)
            game.play(known)
            known = None
            if time.perf_counter() > end:
                return

    def facts(self) -> dict[str, Any]:
        """Return which game it is, for the first frame."""
        rules = self.game.rules
        seed = str(self.game.seed)  # JavaScript's numbers have 53 bits
        return {"rules": rules.name, "p4": rules.p4, "player": self.player.spec, "seed": seed}

    def frame(self, rate: float | None) -> dict[str, Any]:
        """Return what has happened since the last frame, and count it as sent."""
        game, (moves, spawns) = self.game, self.told
        self.told = len(game.moves), len(game.spawns)
        return {
            "board": game.board.hex,
            "score": game.score,
            "count": len(game.moves),
            "moves": moves_text(game.moves[moves:]),
            "spawns": spawns_text(game.spawns[spawns:]),
            "over": game.over,
            "thinks": None if self.thought is None else opinion_json(self.thought),
            "rate": rate,
        }


class Watch:
    """One socket: its orders, and the game that it shows."""

    def __init__(self, socket: WebSocket, client: Client, library: Library, desk: Desk) -> None:
        self.socket, self.client, self.library, self.desk = socket, client, library, desk
        self.run: Run | None = None
        self.speed = SPEED
        self.paused = True
        self.steps = 0  # single moves still to be made
        self.due = 0.0
        self.word = asyncio.Event()

    async def serve(self) -> None:
        """Play and listen until the client leaves or is dropped."""
        tasks = asyncio.create_task(self._listen()), asyncio.create_task(self._play())
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        except WebSocketDisconnect:
            pass
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def tell(self, message: dict[str, Any]) -> None:
        """Send a short message."""
        await self.send(json.dumps(message))

    async def send(self, text: str) -> None:
        """Send a message as JSON; a client that does not take it counts as gone."""
        try:
            await asyncio.wait_for(self.socket.send_text(text), PATIENCE)
        except (TimeoutError, RuntimeError):
            raise WebSocketDisconnect(1001) from None

    async def hear(self) -> str:
        """Return the text of the next message, empty if it has none."""
        try:
            return await self.socket.receive_text()
        except KeyError:  # bytes
            return ""
        except RuntimeError:  # the client left while a message was sent
            raise WebSocketDisconnect(1001) from None

    # -- orders --------------------------------------------------------------------------------

    async def _listen(self) -> None:
        """Take orders; an invalid one is answered with an error, and changes nothing."""
        while True:
            try:
                text = await asyncio.wait_for(self.hear(), IDLE)
            except TimeoutError:
                if self.run is not None and not self.paused and not self.run.game.over:
                    continue
                await self.tell({"error": "nothing was asked for too long; start again to go on"})
                return
            try:
                await self._obey(_order(text))
            except (ValueError, ImportError) as error:
                await self.tell({"error": one_line(error)})
            self.word.set()

    async def _obey(self, order: dict[str, Any]) -> None:
        """Do what an order says, or raise a `ValueError`."""
        what = order.get("do")
        if what == "start":
            await self._start(order)
        elif what == "speed":
            self.speed = _speed(order)
        elif what in ("pause", "play"):
            self.paused = what == "pause"
        elif what == "step":
            self.paused = True
            self.steps = min(self.steps + 1, 1000)
        else:
            raise ValueError("an order is start, play, pause, step or speed")
        self.due = 0.0

    async def _start(self, order: dict[str, Any]) -> None:
        """Start a new game."""
        rules = Rules.parse(str(order.get("rules", "4x4")), order.get("p4", P4))
        spec = str(order.get("player", ""))
        speed = _speed(order)
        skip = int(_number(order, "skip", 0, SKIPPED, 0))
        game = Game(rules, _seed(order.get("seed")))
        await self.library.ready_for(spec, rules, self._work)
        player = await self._work(self.library.player, spec, rules)
        self.run, self.speed, self.steps = Run(player, game, skip), speed, 0
        self.paused = bool(order.get("paused", False))

    # -- the game ------------------------------------------------------------------------------

    async def _play(self) -> None:
        """Make moves when they are due, and send them."""
        shown: Run | None = None
        while True:
            run = self.run
            try:
                if run is not None and run is not shown:
                    await self._open(run)
                    shown = run
                elif run is None or run.game.over or (self.paused and not self.steps):
                    await self._wait(None)
                elif not self.steps and self.due > time.monotonic():
                    await self._wait(self.due - time.monotonic())
                else:
                    await self._turn(run)
            except (ValueError, ImportError) as error:  # the player gave up
                shown = run
                if self.run is run:
                    self.paused = True
                    await self.tell({"error": one_line(error)})

    async def _wait(self, seconds: float | None) -> None:
        """Wait for an order, or for some time."""
        self.word.clear()
        with suppress(TimeoutError):
            await asyncio.wait_for(self.word.wait(), seconds)

    async def _open(self, run: Run) -> None:
        """Make the moves to be skipped, then send the first frame."""
        while run.skipping and self.run is run:
            left = run.skip - len(run.game.moves)
            await self._work(run.part, left, time.monotonic() + SLICE)
        if self.run is run:
            await self.send(await self._work(run.opening))

    async def _turn(self, run: Run) -> None:
        """Make as many moves as are due for a frame, and send it."""
        began, before = time.monotonic(), len(run.game.moves)
        count = max(1, round(self.speed * FRAME)) if self.speed else 1 << 30
        if self.steps:
            self.steps, count = self.steps - 1, 1
        frame = None
        while frame is None:
            frame = await self._work(run.turn, count, began, before)
            if self.run is not run:  # another was started meanwhile
                return
        made = len(run.game.moves) - before
        self.due = max(self.due, began - 0.1) + (made / self.speed if self.speed else FRAME)
        await self.send(frame)

    async def _work(self, function: Any, *args: Any) -> Any:
        return await self.desk.run_patiently(self.client, function, *args)


class Watches:
    """All watched games."""

    def __init__(self, library: Library, desk: Desk) -> None:
        self.library, self.desk = library, desk
        self.open: list[str] = []  # the address of each

    async def serve(self, socket: WebSocket, client: Client) -> None:
        """Serve a client that wants to watch, unless too many games are watched."""
        host, _ = client
        await socket.accept()
        if len(self.open) >= WATCHED or self.open.count(host) >= WATCHED_BY_ONE:
            many = "too many games are being watched; try again later"
            with suppress(RuntimeError, WebSocketDisconnect):
                await socket.send_text(json.dumps({"error": many}))
                await socket.close(1013)
            return
        self.open.append(host)
        try:
            await Watch(socket, client, self.library, self.desk).serve()
        finally:
            self.open.remove(host)
        with suppress(RuntimeError, WebSocketDisconnect):
            await socket.close()


def _order(text: str) -> dict[str, Any]:
    """Parse an order, or raise a `ValueError`."""
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
    """Return a number of an order, or raise a `ValueError`."""
    found = order.get(name, usual)
    if isinstance(found, bool) or not isinstance(found, int | float) or not low <= found <= high:
        raise ValueError(f"{name} is a number from {low:g} to {high:g}")
    return float(found)


def _speed(order: dict[str, Any]) -> float:
    """Return the speed of an order, at least `SLOWEST` unless it is 0."""
    found = _number(order, "speed", 0, FASTEST, SPEED)
    return max(found, SLOWEST) if found else 0.0


def _seed(found: Any) -> int | None:
    """Return the seed of an order, a number or its digits; None to draw one."""
    if found is None or found == "":
        return None
    digits = isinstance(found, str) and found.isascii() and found.isdigit() and len(found) <= 20
    return randomness.checked_seed(int(found) if digits else found)
