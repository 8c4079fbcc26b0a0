"""The review of a game as a stream: moves are judged in short turns, and sent as JSON lines.

The threads that judge also encode the lines: those of a long game would block the event loop.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Any

from lab2048.formatting import one_line
from lab2048.game.record import Record
from lab2048.measure.marks import caveat, error_of
from lab2048.measure.review import Step, review_steps, summary, usual_judge
from lab2048.players.player import Player
from lab2048.players.time_limit import time_limit
from lab2048.solver.problem import MAX_CELLS, Problem
from lab2048.solver.table import Table
from lab2048.studio.fair_queue import Client, Desk
from lab2048.studio.limits import MOVE_SECONDS
from lab2048.studio.resources import Library, exact_answer

JUDGED = 0.05
"""Seconds of judging before it is another client's turn."""
JUDGED_BY_TABLE = 64
"""Moves that are looked up in a table at a time."""
LONGEST = 100_000
"""The longest game that is reviewed, in moves."""


def checked_record(found: dict[str, Any]) -> Record:
    """Return the record of a game after replaying it, or raise a `ValueError`."""
    text = json.dumps(found)
    record = Record.from_json(text)
    if not 0 < len(record.moves) <= LONGEST:
        raise ValueError(f"a game that is reviewed has 1 to {LONGEST:,} moves")
    for _ in record.turns():
        pass
    return record


async def find_judge(
    library: Library, desk: Desk, client: Client, record: Record, spec: str | None
) -> tuple[Table | Player, str]:
    """Return the judge of a game and its name: the given player, the table, or a default player."""
    rules = record.rules
    if spec is None and rules.cells <= MAX_CELLS:
        first = next(record.turns()).board
        known, _ = await exact_answer(library, first, rules, lambda table: first in table)
        table = await library.tables.get(Problem.of(rules)) if known else None
        if table is not None:
            return table, "perfect play"
    spec = spec or usual_judge(rules)
    run = partial(desk.run, client)
    await library.ready_for(spec, rules, run)
    player = await run(library.player, spec, rules)
    return player, player.spec


async def review_lines(
    desk: Desk, client: Client, record: Record, judge: Table | Player, name: str
) -> AsyncIterator[bytes]:
    """Judge a game, and yield the lines of the answer."""
    facts = {
        "judge": name,
        "exact": error_of(judge) == 0,
        "caveat": caveat(judge) or None,
        "points": isinstance(judge, Table) or judge.points,
        "moves": len(record.moves),
    }
    yield _line(facts)
    left = review_steps(record, judge, JUDGED_BY_TABLE if isinstance(judge, Table) else 1)
    steps: list[Step] = []
    try:
        while part := await desk.run_patiently(client, _part, left, name):
            found, line = part
            steps += found
            yield line
    except ValueError as error:
        yield _line({"error": one_line(error)})
        return
    yield await desk.run_patiently(client, _summary_line, steps)


def _part(left: Iterator[Step], judge: str) -> tuple[list[Step], bytes] | None:
    """Judge some moves. Return their steps, also as a line; None at the end of the game."""
    found = _some_steps(left, judge)
    return (found, _line({"steps": [step.as_json() for step in found]})) if found else None


def _summary_line(steps: list[Step]) -> bytes:
    """Return the last line of the answer."""
    return _line({"summary": summary(steps)})


def _line(found: dict[str, Any]) -> bytes:
    """Return a line of the answer."""
    return json.dumps(found).encode() + b"\n"


def _some_steps(left: Iterator[Step], judge: str) -> list[Step]:
    """Judge moves for `JUDGED` seconds, at least one; empty at the end of the game."""
    end = time.perf_counter() + JUDGED
    found: list[Step] = []
    while time.perf_counter() < end or not found:
        with time_limit(MOVE_SECONDS, judge):
            step = next(left, None)
        if step is None:
            break
        found.append(step)
    return found
