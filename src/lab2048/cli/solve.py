"""The command `solve`, and the solving of tables that other commands need."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lab2048.cli import completion
from lab2048.cli.cluster import SharedOption, on_team, show_estimate
from lab2048.cli.console import facts_bar, show_facts
from lab2048.cli.options import (
    ClusterOption,
    FourOption,
    GammaOption,
    JsonOption,
    ThreadsOption,
    in_python,
)
from lab2048.formatting import duration, number, size
from lab2048.game import P4
from lab2048.remote import cluster_at
from lab2048.solver.objective import discount_text, usual_objectives

if TYPE_CHECKING:
    from rich.progress import Progress

    from lab2048.cluster.connection import Connection
    from lab2048.cluster.workers import Team
    from lab2048.game import Rules
    from lab2048.solver.executor import Step
    from lab2048.solver.problem import Problem
    from lab2048.solver.table import Table
    from lab2048.solver.tables import Make

app = typer.Typer()

SizeArgument = Annotated[
    str,
    typer.Argument(
        metavar="RxC",
        help="The board's size, such as 3x3.",
        autocompletion=completion.boards,
    ),
]
ObjectiveOption = Annotated[
    str,
    typer.Option("--objective", help=f"{usual_objectives(explained=True)}."),
]


@app.command(epilog=in_python('lab2048.solve("3x3")'))
def solve(  # noqa: PLR0913, PLR0917
    board: SizeArgument,
    objective: ObjectiveOption = "score",
    p4: FourOption = P4,
    gamma: GammaOption = 1.0,
    values: Annotated[str, typer.Option("--values", help="Store float64 or float32.")] = "float64",
    threads: ThreadsOption = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="The table's own folder.")
    ] = None,
    keep: Annotated[
        str, typer.Option("--keep", help="table, or summary: counts and start values only.")
    ] = "table",
    force: Annotated[
        bool, typer.Option("--force", help="Start even if the disk seems too small.")
    ] = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="Remove an unusable table from the folder first.")
    ] = False,
    cluster: ClusterOption = None,
    shared: SharedOption = None,
    only_estimate: Annotated[
        bool, typer.Option("--estimate", help="Only estimate what it will take, by a short trial.")
    ] = False,
    cores: Annotated[
        int | None, typer.Option("--cores", min=1, help="Estimate for a cluster with N cores.")
    ] = None,
    machines: Annotated[
        int | None, typer.Option("--machines", min=1, help="On N machines; default: 64 cores each.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Solve a board exactly: every reachable state and its value.

    Stop it with Ctrl-C; the same command resumes. On a cluster the table is made in the folder
    --shared, under its own name.
    """
    from lab2048.solver.existing_table import remove_unusable
    from lab2048.solver.problem import Problem
    from lab2048.solver.table_files import checked_kind, default_folder, expanded

    problem = Problem.of(board, p4=p4, objective=objective, gamma=gamma)
    if keep not in ("table", "summary"):
        raise ValueError(f"--keep is table or summary, not {keep}")
    checked_kind(values)
    if only_estimate:
        show_estimate(problem, values, keep, cores, machines, as_json)
        return
    if cores is not None or machines is not None:
        raise ValueError("--cores and --machines belong to --estimate")
    if (cluster is None) != (shared is None):
        raise ValueError("--cluster and --shared DIR, a folder that all machines see, go together")
    folder = default_folder(problem, values) if out is None else expanded(out)
    if shared is not None:
        if out is not None:
            raise ValueError("on a cluster the table is made in --shared; there is no --out")
        folder = expanded(shared).absolute() / default_folder(problem, values).name
    with cluster_at(cluster, threads, folder.parent) as there:
        if there is not None:
            _say(f"{there.team.workers} workers on {cluster}")
        if replace and remove_unusable(folder, {**problem.as_json(), "values": values}):
            _say(f"removed the unusable table in {folder}")
        found = _solve(problem, folder, values, keep, threads, force, there)
    if as_json:
        print(json.dumps(found))
    else:
        print_solved(found)


def _solve(
    problem: Problem,
    folder: Path,
    values: str = "float64",
    keep: str = "table",
    threads: int | None = None,
    force: bool = False,
    there: Connection | None = None,
) -> dict[str, Any]:
    """Solve, with an estimate first and then progress on stderr."""
    from lab2048.solver.existing_table import existing_table

    total = None
    manifest = existing_table(folder, {**problem.as_json(), "values": values})
    if manifest is not None and keep in (manifest["keep"], "summary"):
        _say(f"{problem.name} is already solved")
    else:
        total = _announce(
            problem, folder, values, keep, threads or os.cpu_count() or 1, force,
            None if there is None else there.team,
        )  # fmt: skip
    from lab2048.solver.job import make_table  # compiles kernels

    try:
        with _layer_progress(total) as progress:
            return make_table(
                problem,
                folder,
                values=values,
                keep=keep,
                threads=threads,
                progress=progress,
                cluster=there,
                force=True,  # the space was checked above, with what a cluster needs
            )
    except KeyboardInterrupt:
        _say("the same command resumes from here")
        raise


def _announce(
    problem: Problem,
    folder: Path,
    values: str,
    keep: str,
    threads: int,
    force: bool,
    team: Team | None,
) -> int | None:
    """Print what a solve will need; return the number of states if it is known exactly."""
    from lab2048.solver.estimate import compile_seconds, estimate, rate_here
    from lab2048.solver.table_files import PROGRESS
    from lab2048.solver.table_size import check_room

    rate = rate_here(problem, threads)
    compiling = compile_seconds(problem)
    found = estimate(problem, values, threads, keep, rate)
    takes, cores = on_team(team, problem, values, keep, rate, threads) or (found, threads)
    how = "" if found.exact else "at most " if found.known else "about "
    why = "" if found.known else " (extrapolated)"
    _say(
        f"{problem.name}: {how}{found.states:,} states{why}, about "
        f"{duration(takes.seconds + compiling)}{' with compiling' * (compiling > 0)}, "
        f"{size(takes.memory)} of memory{' a machine' * (takes is not found)} and "
        f"{size(takes.disk)} of disk with {cores} core{'s' * (cores > 1)}"
    )
    if (folder / PROGRESS).exists():
        _say("resuming an earlier solve")
    if not force:
        other = "--out" if team is None else "--shared"
        check_room(problem, folder, values, keep, needed=takes.disk, elsewhere=other)
    return found.states if found.exact else None


@contextmanager
def _layer_progress(total: int | None) -> Iterator[Callable[[Step], object]]:
    """A line on stderr: stage, age, layer, rate, and the time left if the total is known."""
    stage, first, before, shown = "", 0.0, 0, 0.0
    with ExitStack() as stack:
        bar: Progress | None = None  # until the first step: kernels are compiled before

        def tell(step: Step) -> None:
            nonlocal bar, shown, stage, first, before
            now = time.perf_counter()
            if step.stage != stage:  # files may be checked twice: before the work, and after it
                stage, first, before = step.stage, now, step.done
            if now - shown < 0.1:
                return
            shown = now
            if bar is None:
                bar = stack.enter_context(facts_bar())
                bar.add_task("", facts="")
            rate = (step.done - before) / max(now - first, 1e-9)
            facts = f"age {step.age:,}  layer {step.layer:,}  {rate / 1e6:.1f} M states/s"
            if step.total and rate > 0:
                facts += f"  {duration((step.total - step.done) / rate)} left"
            bar.update(
                bar.task_ids[0],
                description=step.stage,
                completed=step.done,
                total=step.total,
                facts=facts,
            )

        yield lambda step: tell(step if step.total else step._replace(total=total))


def print_solved(found: dict[str, Any]) -> None:
    """Print the facts about a solved table."""
    value = found["value"]
    words = [found["board"], f"p4 {found['p4']:g}", found["objective"]]
    title = ", ".join(words + discount_text(found["gamma"]))
    rows = [
        ("states", f"{found['states']:,} ({found['terminals']:,} of them terminal)"),
        ("afterstates", f"{found['afterstates']:,}"),
        ("largest age", f"{found['max_age']:,}"),
        ("value", f"{number(value['start'])} of a start drawn by the rules"),
    ]
    rows.append(("", kinds(value)))
    seconds = found["seconds"]
    if seconds:
        rows.append(
            (
                "time",
                f"{seconds['total']:.1f} s: {seconds['enumerate']:.1f} for the states, "
                f"{seconds['values']:.1f} for the values, with {found['threads']} "
                f"thread{'s' * (found['threads'] > 1)}",
            )
        )
    if found["peak_memory_bytes"]:
        rows.append(("memory", f"{size(found['peak_memory_bytes'])} at most"))
    kept = f"{found['values']}, {size(found['table_bytes'])}"
    rows.append(
        ("table", f"{found['table']} ({kept if found['keep'] == 'table' else 'only a summary'})")
    )
    show_facts(title, rows)


def kinds(value: dict[str, float | None]) -> str:
    """The value of each kind of start that is possible, as text."""
    kinds = {kind: worth for kind, worth in value.items() if kind != "start" and worth is not None}
    return ", ".join(f"{kind}: {number(worth)}" for kind, worth in kinds.items())


def solved(problem: Problem, threads: int | None = None) -> Table:
    """Return the table of a problem, solved first if necessary."""
    from lab2048.solver.tables import ensure_table

    return ensure_table(problem, maker(problem, threads), asked=True)


def maker_of(rules: Rules, asked: dict[str, Any], threads: int | None = None) -> Make | None:
    """Return a function that solves a board as `asked`; None if the board is too large."""
    from lab2048.solver.problem import MAX_CELLS, Problem

    return maker(Problem.of(rules, **asked), threads) if rules.cells <= MAX_CELLS else None


def maker(problem: Problem, threads: int | None = None) -> Make:
    """Return a function that solves a problem into a folder, with progress on stderr."""
    from lab2048.solver.problem import ON_THE_FLY

    # a small table is not checked for space: if there is none, writing it fails
    force = problem.rules.cells <= ON_THE_FLY
    return partial(_solve, problem, threads=threads, force=force)


def _say(text: str) -> None:
    """Print a line on stderr."""
    print(text, file=sys.stderr)
