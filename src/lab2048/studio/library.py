"""What all requests share: tables that are open, players that are ready, tables being made."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab2048.analysis import Opinion, opinion
from lab2048.game import P4, Board, Rules
from lab2048.player import Player
from lab2048.players import parse_spec
from lab2048.results import survey_file
from lab2048.solve.estimate import estimate
from lab2048.solve.problem import MAX_CELLS, ON_THE_FLY, REACH, SCORE, Problem
from lab2048.solve.store import MANIFEST, TableError
from lab2048.solve.table import Table, command_for, find_table, list_tables
from lab2048.studio.limits import MOVE_SECONDS, SOLVED_BYTES, SOLVES, checked_player
from lab2048.time_limit import time_limit

TABLE_BYTES = 1 << 26
"""Memory for decoded layers of each table that is open; single blocks take a quarter as much."""
TABLES_KEPT = 8
"""Tables that are open at a time: those of a small board, with a chance for each tile."""
PLAYERS_KEPT = 8
"""Players that are ready at a time; one with a network may take 270 MB."""
PATIENCE = 120.0
"""Seconds that a request waits for a table; it goes on being made."""
ON_REQUEST = 9
"""Boards of up to so many cells are solved if somebody asks for it."""


class UnsolvedError(ValueError):
    """A table that is not there, and is not made because somebody asks a question."""


@dataclass
class Making:
    """A process that makes tables or a survey."""

    name: str
    began: float
    problems: Sequence[Problem] = ()
    """The tables that count against what a studio may make."""
    task: asyncio.Task[None] | None = None
    share: float = 0.0
    trouble: str = ""

    def as_json(self) -> dict[str, Any]:
        """What is told about it."""
        return {
            "name": self.name,
            "seconds": round(time.monotonic() - self.began, 1),
            "share": self.share,
        }


class Library:
    """Tables and players. `table`, `player` and `opinion` may be called from any thread."""

    def __init__(self) -> None:
        self._tables: OrderedDict[Problem, tuple[Table, Path, int]] = OrderedDict()
        self._players: OrderedDict[tuple[str, Rules], Player] = OrderedDict()
        self._lock = threading.Lock()
        # one process at a time, and beside it one for what everybody may want
        self._turns = {usual: asyncio.Semaphore(1) for usual in (False, True)}
        self._made: set[Problem] = set()  # of other than the usual rules
        self.making: dict[str, Making] = {}

    # -- tables --------------------------------------------------------------------------------

    def table(self, problem: Problem) -> Table | None:
        """The table of a problem, if it has been solved; kept open while its file stays."""
        with self._lock:
            found = self._tables.get(problem)
            if found is not None:
                self._tables.move_to_end(problem)
        if found is not None:
            table, manifest, changed = found
            with suppress(OSError):
                if manifest.stat().st_mtime_ns == changed:
                    return table
        folder = find_table(problem)
        if folder is None:
            return None
        manifest = folder / MANIFEST
        table = Table(folder, cache_bytes=TABLE_BYTES)
        with self._lock:
            self._tables[problem] = table, manifest, manifest.stat().st_mtime_ns
            while len(self._tables) > TABLES_KEPT:
                self._tables.popitem(last=False)  # its files are closed when nobody uses it
        return table

    async def solved(self, problem: Problem) -> Table | None:
        """The table of a problem, made now if the board is small; None if it is not there."""
        found = self.table(problem)
        if found is None and problem.rules.cells <= ON_THE_FLY:
            await self._wait(self.solve([problem]))
            found = self.table(problem)
        return found

    async def reach(self, board: Board, rules: Rules) -> tuple[dict[int, float], list[int]]:
        """The chance to make each tile from a position, and the tiles for which it is not known."""
        if rules.cells > MAX_CELLS:
            raise ValueError(f"boards of up to {MAX_CELLS} cells can be solved, not {rules.name}")
        tiles = [1 << rank for rank in range(3, rules.cells + 2)]
        problems = {tile: Problem.of(rules, objective=f"{REACH}:{tile}") for tile in tiles}
        missing = [tile for tile, each in problems.items() if self.table(each) is None]
        if missing and rules.cells <= ON_THE_FLY:
            await self._wait(self.solve([problems[tile] for tile in missing]))
            missing = []
        tables = {t: self.table(each) for t, each in problems.items() if t not in missing}
        chances = {t: table.get(board) for t, table in tables.items() if table is not None}
        return {t: chance for t, chance in chances.items() if chance is not None}, missing

    def solvable(self, rules: Rules) -> bool:
        """Whether a board is not solved, and will be if somebody asks for it."""
        allowed = ON_THE_FLY < rules.cells <= ON_REQUEST and rules.p4 == P4
        return allowed and self.table(Problem.of(rules)) is None

    def solve(self, problems: Sequence[Problem]) -> Making:
        """Begin to make tables in a process of its own, unless that is under way."""
        rules = problems[0].rules
        name = problems[0].name if len(problems) == 1 else f"{rules.name}-{REACH}-p4-{rules.p4!r}"
        if name in self.making:
            return self.making[name]
        usual = rules.p4 == P4 and problems[0].objective == SCORE and problems[0].gamma == 1
        if rules.cells > (ON_REQUEST if usual else ON_THE_FLY):
            raise UnsolvedError(
                f"{problems[0].name} is not made on request; make it with: "
                f"{command_for(problems[0])}"
            )
        wanted = [json.dumps(each.as_json()) for each in problems]
        counted = [] if rules.p4 == P4 else problems
        self._check_amount(counted)
        return self._begin(Making(name, time.monotonic(), counted), wanted, rules.p4 == P4)

    def survey(self, problem: Problem) -> Making:
        """Begin to survey a solved game, unless that is under way."""
        name = f"survey of {problem.name}"
        if name in self.making:
            return self.making[name]
        if problem.rules.cells > ON_REQUEST:
            raise UnsolvedError(
                f"make the survey with: lab2048 survey {problem.rules.name}, which takes long"
            )
        arguments = ["--survey", json.dumps(problem.as_json())]
        return self._begin(Making(name, time.monotonic()), arguments, problem.rules.p4 == P4)

    def _check_amount(self, problems: Sequence[Problem]) -> None:
        """An `UnsolvedError` if these would be more tables, or bytes, than are made on request."""
        found = self._made.union(problems)
        size = sum(estimate(each, "float64", 1).disk for each in found)
        if problems and (len(found) > SOLVES or size > SOLVED_BYTES):
            raise UnsolvedError(
                f"this studio makes at most {SOLVES} tables of unusual rules, of {SOLVED_BYTES:,} "
                "bytes together, and has no room left for this; lab2048 solve makes more"
            )

    def _begin(self, making: Making, arguments: list[str], usual: bool) -> Making:
        """Start a process."""
        self._made.update(making.problems)
        self.making[making.name] = making
        making.task = asyncio.create_task(self._make(making, arguments, usual))
        return making

    async def _make(self, making: Making, arguments: list[str], usual: bool) -> None:
        """Run a process to its end, and listen to what it says."""
        try:
            async with self._turns[usual]:
                process = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-m", "lab2048.studio.solving", *arguments),
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.PIPE,
                )
                assert process.stdout is not None and process.stderr is not None
                errors = asyncio.create_task(process.stderr.read())
                try:
                    async for line in process.stdout:
                        with suppress(ValueError):
                            making.share = float(line)
                    if await process.wait() != 0:
                        lines = (await errors).decode("utf-8", "replace").strip().splitlines()
                        making.trouble = lines[-1] if lines else "the process was ended"
                finally:
                    if process.returncode is None:
                        process.kill()
                        await process.wait()
                    await errors
        finally:
            del self.making[making.name]
            self._made -= {each for each in making.problems if not _is_made(each)}

    async def _wait(self, making: Making) -> None:
        """Wait until something is made; a `ValueError` if that fails, or takes too long."""
        assert making.task is not None
        try:
            await asyncio.wait_for(asyncio.shield(making.task), PATIENCE)
        except TimeoutError:
            raise UnsolvedError(f"{making.name} is still being made; ask again") from None
        if making.trouble:
            raise UnsolvedError(f"{making.name} could not be made: {making.trouble}")

    async def close(self) -> None:
        """End what is being made; it goes on from there the next time."""
        tasks = [each.task for each in self.making.values() if each.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # -- players -------------------------------------------------------------------------------

    async def ready_for(self, spec: str, rules: Rules) -> None:
        """See to it that the table that a player needs is there, if it is a small one."""
        if spec.strip().partition(":")[0] == "optimal":
            objective = parse_spec(spec)[1].get("objective", SCORE)
            await self.solved(Problem.of(rules, objective=objective))

    def player(self, spec: str, rules: Rules) -> Player:
        """The player of a spec; all that a request may name can be asked by several threads."""
        key = spec.strip(), rules
        with self._lock:
            if key in self._players:
                self._players.move_to_end(key)
                return self._players[key]
        made = checked_player(spec, rules)
        with self._lock:
            self._players[key] = made
            while len(self._players) > PLAYERS_KEPT:
                self._players.popitem(last=False)
        return made

    def opinion(self, spec: str, rules: Rules, board: Board) -> Opinion:
        """What a player thinks of a position."""
        player = self.player(spec, rules)
        with time_limit(MOVE_SECONDS, player.spec):
            return opinion(player, board)


def _is_made(problem: Problem) -> bool:
    """Whether there is a table of a problem that can be read."""
    try:
        return find_table(problem) is not None
    except (TableError, OSError):
        return False


async def exact_table(
    library: Library, board: Board, rules: Rules
) -> tuple[Table | None, str | None]:
    """The table that has a position; without one, why."""
    if rules.cells > MAX_CELLS:
        return None, f"{rules.name} has too many positions to be solved"
    problem = Problem.of(rules)
    try:
        table = await library.solved(problem)
    except UnsolvedError as error:
        return None, str(error)
    if table is None:
        return None, f"for exact values, solve the board once: {command_for(problem)}"
    if board not in table:
        return None, "no game reaches this position"
    return table, None


def solved_tables() -> list[dict[str, Any]]:
    """All finished tables."""
    found = []
    for folder, facts in list_tables():
        if isinstance(facts, str):
            continue
        try:
            problem = Problem.from_json(facts)
            found.append(
                {
                    "name": folder.name,
                    **problem.as_json(),
                    "states": facts["states"],
                    "value": facts["value"]["start"],
                    "bytes": sum(each.stat().st_size for each in folder.iterdir()),
                    "kept": facts["keep"] == "table",
                    "surveyed": survey_file(folder.name).exists(),
                }
            )
        except (ValueError, KeyError, TypeError, OSError):  # of another version, or just removed
            continue
    return found
