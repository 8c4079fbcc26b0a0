"""What all requests share: open tables, prepared players, and tables in progress."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, TypeVar

from lab2048.game import P4, Board, Rules
from lab2048.measure.archive import read_survey, survey_file
from lab2048.measure.positions import Opinion, opinion
from lab2048.players.player import Player
from lab2048.players.registry import parse_spec
from lab2048.players.time_limit import time_limit
from lab2048.solver.objective import tiles_to_reach
from lab2048.solver.optimal import Optimal
from lab2048.solver.problem import MAX_CELLS, Problem
from lab2048.solver.table import NotInTableError, Table
from lab2048.solver.tables import command_for, is_made_when_needed, list_tables
from lab2048.studio.limits import MOVE_SECONDS, checked_player
from lab2048.studio.open_tables import OpenTable, OpenTables, current_table
from lab2048.studio.table_jobs import ON_REQUEST, TableJobs, UnsolvedError

T = TypeVar("T")
Run = Callable[..., Awaitable[Any]]
"""`Desk.run` or `Desk.run_patiently`, bound to a client."""

PLAYERS_KEPT = 8
"""Players that are ready at a time; one with a network may take 270 MB."""


class ReadyPlayer(NamedTuple):
    """A player, and the table in which it looks up moves, if any."""

    player: Player
    table: OpenTable | None

    def is_current(self) -> bool:
        """Whether the table has not been replaced."""
        return self.table is None or self.table.is_current()


class Library:
    """Tables and players. `player` and `opinion` may be called from any thread."""

    def __init__(self) -> None:
        self.tables = OpenTables()
        self.jobs = TableJobs()
        self._players: OrderedDict[tuple[str, Rules], ReadyPlayer] = OrderedDict()
        self._makers: dict[tuple[str, Rules], threading.Lock] = {}
        self._lock = threading.Lock()

    async def close(self) -> None:
        """Stop the jobs, and close the tables."""
        await self.jobs.close()
        self.tables.close()

    # -- tables --------------------------------------------------------------------------------

    async def ask(self, problem: Problem, question: Callable[[Table], T]) -> T | None:
        """Ask a table (`OpenTables.ask`); solve the problem first if the board is small.

        None if a larger board is not solved.
        """
        answer = await self.tables.ask(problem, question)
        if answer is None and is_made_when_needed(problem):
            await self.jobs.solve([problem]).wait()
            answer = await self.tables.ask(problem, question)
        return answer

    async def reach(self, board: Board, rules: Rules) -> tuple[dict[int, float], list[int]]:
        """Return the chance of making each tile from a position, and the tiles without a table."""
        if rules.cells > MAX_CELLS:
            raise ValueError(f"boards of up to {MAX_CELLS} cells can be solved, not {rules.name}")
        tiles = tiles_to_reach(rules)
        problems = {tile: Problem.of(rules, objective=f"reach:{tile}") for tile in tiles}

        async def ask(tile: int) -> tuple[float | None] | None:
            return await self.tables.ask(problems[tile], lambda table: (table.get(board),))

        found = {tile: await ask(tile) for tile in tiles}
        missing = [tile for tile, answer in found.items() if answer is None]
        if missing and is_made_when_needed(problems[missing[0]]):
            await self.jobs.solve([problems[tile] for tile in missing]).wait()
            found |= {tile: await ask(tile) for tile in missing}
            missing = []
        chances = {tile: answer[0] for tile, answer in found.items() if answer is not None}
        return {tile: each for tile, each in chances.items() if each is not None}, missing

    async def solvable(self, rules: Rules) -> bool:
        """Whether a board is not solved yet, and can be solved on request."""
        if rules.cells > ON_REQUEST or rules.p4 != P4:
            return False
        problem = Problem.of(rules)
        return not is_made_when_needed(problem) and await self.tables.get(problem) is None

    # -- players -------------------------------------------------------------------------------

    async def ready_for(self, spec: str, rules: Rules, run: Run) -> None:
        """Make the table that a player needs, if it is missing and the board is small.

        `run` has a thread call a function.
        """
        if spec.strip().partition(":")[0] == "optimal":
            await self.ask(await run(_problem_of, spec, rules), lambda table: True)

    def player(self, spec: str, rules: Rules) -> Player:
        """Return the player of a spec; every player here may be used by several threads."""
        key = spec.strip(), rules
        with self._lock:
            kept = self._players.get(key)
            if kept is not None:
                self._players.move_to_end(key)
        if kept is not None and kept.is_current():
            return kept.player
        with self._lock:
            maker = self._makers.setdefault(key, threading.Lock())
        with maker:  # a network or a table is loaded once, however many ask for it
            found = self._players.get(key)
            return self._make_player(key) if found is None or found is kept else found.player

    def _make_player(self, key: tuple[str, Rules]) -> Player:
        """Make a player and keep it."""
        try:
            made = _with_small_cache(checked_player(*key))
            with self._lock:
                self._players[key] = made
                while len(self._players) > PLAYERS_KEPT:
                    self._players.popitem(last=False)
            return made.player
        finally:
            with self._lock:
                self._makers.pop(key, None)

    def opinion(self, spec: str, rules: Rules, board: Board) -> Opinion:
        """Return what a player thinks of a position."""
        player = self.player(spec, rules)
        with time_limit(MOVE_SECONDS, player.spec):
            return opinion(player, board)


def _with_small_cache(player: Player) -> ReadyPlayer:
    """Prepare a player; an `Optimal` gets its table reopened with the small cache used here."""
    if not isinstance(player, Optimal):
        return ReadyPlayer(player, None)
    own = player.table
    opened = current_table(own.problem)
    if opened is not None:
        object.__setattr__(player, "table", opened.table)  # the player is a frozen dataclass
        own.close()
    return ReadyPlayer(player, opened)


def _problem_of(spec: str, rules: Rules) -> Problem:
    """Return the problem whose table a player needs.

    Off the event loop: an unknown objective is looked for in all installed distributions.
    """
    return Problem.of(rules, objective=parse_spec(spec)[1].get("objective", "score"))


async def exact_answer(
    library: Library, board: Board, rules: Rules, question: Callable[[Table], T]
) -> tuple[T | None, str | None]:
    """Ask the table of a position. Return the answer, or None and why there is none."""
    if rules.cells > MAX_CELLS:
        return None, f"{rules.name} has too many positions to be solved"

    def ask(table: Table) -> tuple[T] | tuple[()]:
        try:
            return (question(table),)
        except NotInTableError:
            return ()

    problem = Problem.of(rules)
    try:
        found = await library.ask(problem, ask)
    except UnsolvedError as error:
        return None, str(error)
    if found is None:
        return None, f"for exact values, solve the board once: {command_for(problem)}"
    return (found[0], None) if found else (None, "no game reaches this position")


def solved_tables() -> list[dict[str, Any]]:
    """Return metadata of all finished tables."""
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


def survey_of(name: str) -> dict[str, Any] | None:
    """Return the survey of a finished table; None if there is none."""
    return read_survey(name) if any(each["name"] == name for each in solved_tables()) else None
