"""A game gone through for somebody who waits: judged a while at a time, and told in lines."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

from lab2048.marks import caveat, error_of
from lab2048.player import Player
from lab2048.records import Record
from lab2048.review import Step, review_steps, summary, usual_judge
from lab2048.solve.problem import MAX_CELLS
from lab2048.solve.table import Table
from lab2048.studio.library import Library, exact_table
from lab2048.studio.limits import MOVE_SECONDS
from lab2048.studio.work import Client, Desk
from lab2048.time_limit import time_limit
from lab2048.wording import one_line

JUDGED = 0.05
"""Seconds that moves are judged for at a time; then it is somebody else's turn."""
JUDGED_BY_TABLE = 64
"""Moves that are looked up in a table at a time."""
LONGEST = 100_000
"""Moves of a game that is reviewed."""


def checked_record(found: dict[str, Any]) -> Record:
    """The record of a game that can be replayed, or a `ValueError`."""
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
    """Who judges a game: the player that was named, or the table, or a usual player."""
    rules = record.rules
    if spec is None and rules.cells <= MAX_CELLS:
        first = next(record.turns()).board
        table, _ = await exact_table(library, first, rules)
        if table is not None:
            return table, "perfect play"
    spec = spec or usual_judge(rules)
    await library.ready_for(spec, rules)
    player = await desk.run(client, library.player, spec, rules)
    return player, player.spec


async def review_lines(
    desk: Desk, client: Client, record: Record, judge: Table | Player, name: str
) -> AsyncIterator[str]:
    """What is told about a game, a line at a time."""
    facts = {
        "judge": name,
        "exact": error_of(judge) == 0,
        "caveat": caveat(judge) or None,
        "points": isinstance(judge, Table) or judge.points,
        "moves": len(record.moves),
    }
    yield json.dumps(facts) + "\n"
    left = review_steps(record, judge, JUDGED_BY_TABLE if isinstance(judge, Table) else 1)
    steps: list[Step] = []
    try:
        while part := await desk.run_patiently(client, some_steps, left, name):
            steps += part
            yield json.dumps({"steps": [step.as_json() for step in part]}) + "\n"
    except ValueError as error:
        yield json.dumps({"error": one_line(error)}) + "\n"
        return
    yield json.dumps({"summary": summary(steps)}) + "\n"


def some_steps(left: Iterator[Step], judge: str) -> list[Step]:
    """As many of the steps that are left as can be judged in a while; at least one."""
    end = time.perf_counter() + JUDGED
    found: list[Step] = []
    while time.perf_counter() < end or not found:
        with time_limit(MOVE_SECONDS, judge):
            step = next(left, None)
        if step is None:
            break
        found.append(step)
    return found
