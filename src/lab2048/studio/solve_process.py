"""A process that makes tables, or a survey, and reports its progress on stdout.

    python -m lab2048.studio.solve_process PROBLEM...          each as JSON, see `Problem.as_json`
    python -m lab2048.studio.solve_process --survey PROBLEM

It prints one number from 0 to 1 per line. An error is one line on stderr, with exit code 1.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable

from lab2048.formatting import one_line
from lab2048.solver.problem import Problem


def main(arguments: list[str]) -> int:
    """Do what the arguments say."""
    wanted = [each for each in arguments if each != "--survey"]
    try:
        problems = [Problem.from_json(json.loads(each)) for each in wanted]
        if "--survey" in arguments:
            make_survey(problems[0])
        else:
            make_tables(problems)
    except (OSError, ValueError) as error:
        print(one_line(error), file=sys.stderr)
        return 1
    return 0


def make_tables(problems: list[Problem]) -> None:
    """Solve problems, one after the other."""
    from lab2048.solver.executor import Step
    from lab2048.solver.job import make_table
    from lab2048.solver.table_size import sizes_of

    tell = teller()
    for number, problem in enumerate(problems):

        def note(step: Step, number: int = number, states: int = sizes_of(problem)[0]) -> None:
            share = min(1.0, step.done / (step.total or states))
            both = {"enumerate": share / 2, "values": 0.5 + share / 2}.get(step.stage)
            if both is not None:  # checks take next to no time
                tell((number + both) / len(problems))

        make_table(problem, progress=note)


def make_survey(problem: Problem) -> None:
    """Survey a solved game, without plots."""
    from lab2048.measure.archive import keep_survey
    from lab2048.solver.survey import survey
    from lab2048.solver.tables import open_table

    tell = teller()
    with open_table(problem) as table:
        found = survey(table, progress=lambda done, total: tell(done / max(total, 1)))
    keep_survey(found.as_json(), problem.name)


def teller() -> Callable[[float], None]:
    """Return a function that prints a share, at most ten times per second."""
    last = 0.0

    def tell(share: float) -> None:
        nonlocal last
        if time.monotonic() - last > 0.1:
            last = time.monotonic()
            print(f"{share:.4f}", flush=True)

    return tell


if __name__ == "__main__":
    if hasattr(os, "nice"):
        os.nice(10)  # requests come first
    sys.exit(main(sys.argv[1:]))
