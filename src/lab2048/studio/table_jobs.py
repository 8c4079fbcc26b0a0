"""Processes that make tables and surveys, and their progress."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from lab2048.game import P4, Rules
from lab2048.solver.estimate import estimate
from lab2048.solver.problem import Problem
from lab2048.solver.table_files import TableError
from lab2048.solver.tables import command_for, find_table, is_made_when_needed
from lab2048.studio.limits import SOLVED_BYTES, SOLVES

PATIENCE = 120.0
"""Seconds that a request waits for a table; the job continues afterwards."""
ON_REQUEST = 9
"""Boards of up to this many cells are solved on request."""


class UnsolvedError(ValueError):
    """A table is missing: it is not made on request, is not finished, or could not be made."""


@dataclass
class TableJob:
    """A process that makes tables or a survey."""

    name: str
    began: float
    problems: Sequence[Problem] = ()
    """The tables that count against `SOLVES` and `SOLVED_BYTES`."""
    task: asyncio.Task[None] | None = None
    share: float = 0.0
    trouble: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return name and progress, JSON-serialisable."""
        return {
            "name": self.name,
            "seconds": round(time.monotonic() - self.began, 1),
            "share": self.share,
        }

    async def wait(self) -> None:
        """Wait until it is done; raise an `UnsolvedError` if it fails or takes too long."""
        assert self.task is not None
        try:
            await asyncio.wait_for(asyncio.shield(self.task), PATIENCE)
        except TimeoutError:
            raise UnsolvedError(f"{self.name} is still being made; ask again") from None
        if self.trouble:
            raise UnsolvedError(f"{self.name} could not be made: {self.trouble}")


class TableJobs:
    """The running jobs. Only the event loop's thread may call the methods."""

    def __init__(self) -> None:
        # at most one process for the default p4, and one for all others
        self._turns = {usual: asyncio.Semaphore(1) for usual in (False, True)}
        self._made: set[Problem] = set()  # with another p4 than the default
        self.running: dict[str, TableJob] = {}

    def solve(self, problems: Sequence[Problem]) -> TableJob:
        """Start a process that makes tables, unless it is running already."""
        rules = problems[0].rules
        name = problems[0].name if len(problems) == 1 else f"{rules.name}-reach-p4-{rules.p4!r}"
        if name in self.running:
            return self.running[name]
        usual = problems[0] == Problem.of(Rules(rules.rows, rules.cols))
        if not ((usual and rules.cells <= ON_REQUEST) or is_made_when_needed(problems[0])):
            raise UnsolvedError(
                f"{problems[0].name} is not made on request; make it with: "
                f"{command_for(problems[0])}"
            )
        wanted = [json.dumps(each.as_json()) for each in problems]
        counted = [] if rules.p4 == P4 else problems
        self._check_amount(counted)
        return self._begin(TableJob(name, time.monotonic(), counted), wanted, rules.p4 == P4)

    def survey(self, problem: Problem) -> TableJob:
        """Start a process that surveys a solved game, unless it is running already."""
        name = f"survey of {problem.name}"
        if name in self.running:
            return self.running[name]
        if problem.rules.cells > ON_REQUEST:
            raise UnsolvedError(
                f"make the survey with: lab2048 survey {problem.rules.name}, which takes long"
            )
        arguments = ["--survey", json.dumps(problem.as_json())]
        return self._begin(TableJob(name, time.monotonic()), arguments, problem.rules.p4 == P4)

    def _check_amount(self, problems: Sequence[Problem]) -> None:
        """Raise an `UnsolvedError` if these exceed the tables or bytes made on request."""
        found = self._made.union(problems)
        size = sum(estimate(each, "float64", 1).disk for each in found)
        if problems and (len(found) > SOLVES or size > SOLVED_BYTES):
            raise UnsolvedError(
                f"this studio makes at most {SOLVES} tables of unusual rules, of {SOLVED_BYTES:,} "
                "bytes together, and has no room left for this; lab2048 solve makes more"
            )

    def _begin(self, job: TableJob, arguments: list[str], usual: bool) -> TableJob:
        """Start a process."""
        self._made.update(job.problems)
        self.running[job.name] = job
        job.task = asyncio.create_task(self._make(job, arguments, usual))
        return job

    async def _make(self, job: TableJob, arguments: list[str], usual: bool) -> None:
        """Run a process to its end, and read its progress."""
        try:
            async with self._turns[usual]:
                process = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-m", "lab2048.studio.solve_process", *arguments),
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.PIPE,
                )
                assert process.stdout is not None and process.stderr is not None
                errors = asyncio.create_task(process.stderr.read())
                try:
                    async for line in process.stdout:
                        with suppress(ValueError):
                            job.share = float(line)
                    if await process.wait() != 0:
                        lines = (await errors).decode("utf-8", "replace").strip().splitlines()
                        job.trouble = lines[-1] if lines else "the process was ended"
                finally:
                    if process.returncode is None:
                        process.kill()
                        await process.wait()
                    await errors
        finally:
            unmade = await asyncio.to_thread(_unmade, job.problems)
            del self.running[job.name]
            self._made -= unmade

    async def close(self) -> None:
        """Stop all jobs; an interrupted table is resumed the next time."""
        tasks = [each.task for each in self.running.values() if each.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _unmade(problems: Sequence[Problem]) -> set[Problem]:
    """Return the problems without a readable table."""
    return {each for each in problems if not _is_made(each)}


def _is_made(problem: Problem) -> bool:
    """Whether a problem has a readable table."""
    try:
        return find_table(problem) is not None
    except (TableError, OSError):
        return False
