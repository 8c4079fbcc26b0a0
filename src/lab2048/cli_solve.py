"""The commands about solved games: solve, table, survey."""

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

from lab2048 import cli_complete
from lab2048.cli_cluster import SharedOption, job_on, on_team, show_estimate, team_at
from lab2048.cli_progress import bar_of, move_on, progress_bar
from lab2048.game import P4
from lab2048.notation import parse_number
from lab2048.options import (
    ClusterOption,
    ForceOption,
    FourOption,
    GammaOption,
    JsonOption,
    ThreadsOption,
    command_group,
)
from lab2048.wording import duration, number, percent, size

if TYPE_CHECKING:
    from rich.progress import Progress

    from lab2048.cluster.team import Team
    from lab2048.solve.problem import Problem
    from lab2048.solve.solver import Step
    from lab2048.solve.survey import Survey
    from lab2048.solve.table import Table

app = typer.Typer()
table_app = command_group("Look after the tables that were solved.")
app.add_typer(table_app, name="table")

SizeArgument = Annotated[
    str,
    typer.Argument(
        metavar="RxC",
        help="The board's size, such as 3x3.",
        autocompletion=cli_complete.boards,
    ),
]
ObjectiveOption = Annotated[
    str,
    typer.Option(
        "--objective", help="score, reach:TILE (the chance to make it) or worst-case (any spawns)."
    ),
]
NameArgument = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="A name out of `table list`, or a folder.",
        autocompletion=cli_complete.tables,
    ),
]


# -- solve ---------------------------------------------------------------------------------------


@app.command()
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
        bool, typer.Option("--force", help="Begin even if the disk seems too small.")
    ] = False,
    cluster: ClusterOption = None,
    shared: SharedOption = None,
    only_estimate: Annotated[
        bool, typer.Option("--estimate", help="Only say what it will take, by a short trial here.")
    ] = False,
    cores: Annotated[
        int | None, typer.Option("--cores", min=1, help="Estimate for a cluster of so many cores.")
    ] = None,
    machines: Annotated[
        int | None, typer.Option("--machines", min=1, help="Of so many machines; of 64 cores each.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Solve a board exactly: every reachable state and its value.

    Stop it with Ctrl-C, and go on with the same command. On a cluster the table is made in the
    folder --shared, under its own name.
    """
    from lab2048.solve.problem import Problem
    from lab2048.solve.store import checked_kind, default_folder, expanded

    problem = Problem.of(board, p4=p4, objective=objective, gamma=gamma)
    if keep not in ("table", "summary"):
        raise ValueError(f"--keep is table or summary, not {keep}")
    checked_kind(values)
    if only_estimate:
        show_estimate(problem, values, keep, cores, machines, as_json)
        return
    if cores is not None or machines is not None:
        raise ValueError("--cores and --machines belong to --estimate; a cluster is as it is")
    if (cluster is None) != (shared is None):
        raise ValueError("--cluster and --shared DIR, a folder that all machines see, go together")
    folder = default_folder(problem, values) if out is None else expanded(out)
    if shared is not None:
        if out is not None:
            raise ValueError("on a cluster the table is made in --shared; there is no --out")
        folder = expanded(shared).absolute() / default_folder(problem, values).name
    with team_at(cluster, threads) as team:
        if team is not None:
            team.check(team.nodes(folder.parent), folder.parent)
            _say(f"{team.workers} workers on {cluster}")
        found = _solve(problem, folder, values, keep, threads, force, team)
    if as_json:
        print(json.dumps(found))
    else:
        _print_solved(found)


def _solve(
    problem: Problem,
    folder: Path,
    values: str = "float64",
    keep: str = "table",
    threads: int | None = None,
    force: bool = False,
    team: Team | None = None,
) -> dict[str, Any]:
    """Solve with an estimate before and progress on the way, on stderr."""
    from lab2048.solve.manifest import check_identity, is_whole, load_manifest
    from lab2048.solve.store import check_folder, is_older

    total = None
    check_folder(folder)
    manifest = load_manifest(folder)
    if manifest is not None and is_older(manifest):
        manifest = None  # it is made anew
    if manifest is not None:
        check_identity(folder, manifest, {**problem.as_json(), "values": values})
    enough = manifest is not None and keep in (manifest["keep"], "summary")
    if manifest is not None and enough and is_whole(folder, manifest):
        _say(f"{problem.name} is already solved")
    else:
        total = _announce(
            problem, folder, values, keep, threads or os.cpu_count() or 1, force, team
        )
    from lab2048.solve.solver import make_table  # compiles kernels

    try:
        with _layer_progress(total) as progress:
            return make_table(
                problem,
                folder,
                values=values,
                keep=keep,
                threads=threads,
                progress=progress,
                job=job_on(team),
            )
    except KeyboardInterrupt:
        _say("the same command goes on from here")
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
    """Print what a solve will need; the number of states, if it is known."""
    from lab2048.solve.estimate import compile_seconds, estimate, free_space, rate_here
    from lab2048.solve.store import PROGRESS

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
    free, begun = free_space(folder), (folder / PROGRESS).exists()
    if begun:
        _say("going on with what has been done before")
    if takes.disk > free and not force and not begun:
        smaller = "--values float32, " if (keep, values) == ("table", "float64") else ""
        smaller = f"--keep summary, {smaller}" if keep == "table" else smaller
        other = "--out" if team is None else "--shared"
        raise ValueError(
            f"{problem.name} needs about {size(takes.disk)} of disk and {folder} has "
            f"{size(free)} free; lab2048 solve has {smaller}{other} for another disk, "
            "and --force to begin all the same"
        )
    return found.states if found.exact else None


@contextmanager
def _layer_progress(total: int | None) -> Iterator[Callable[[Step], object]]:
    """A line on stderr: stage, age, layer, rate, and the time left if the total is known."""
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[facts]}"))
    stage, first, before, shown = "", 0.0, 0, 0.0
    with ExitStack() as stack:
        bar: Progress | None = None  # until something is done: kernels are compiled before

        def tell(step: Step) -> None:
            nonlocal bar, shown, stage, first, before
            now = time.perf_counter()
            if step.stage != stage:  # files may be checked twice: before the work, and after it
                stage, first, before = step.stage, now, step.done
            if now - shown < 0.1:
                return
            shown = now
            if bar is None:
                bar = stack.enter_context(bar_of(*columns, TimeElapsedColumn()))
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


def _print_solved(found: dict[str, Any]) -> None:
    """A finished solve, for people."""
    value = found["value"]
    print(
        f"{found['board']}, p4 {found['p4']:g}, {found['objective']}"
        + (f", gamma {found['gamma']:g}" if found["gamma"] != 1 else "")
    )
    rows = [
        ("states", f"{found['states']:,} ({found['terminals']:,} of them terminal)"),
        ("afterstates", f"{found['afterstates']:,}"),
        ("largest age", f"{found['max_age']:,}"),
        ("value", f"{number(value['start'])} of a start drawn by the rules"),
    ]
    rows.append(("", _kinds(value)))
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
    for name, text in rows:
        print(f"  {name:12} {text}")


def _kinds(value: dict[str, float | None]) -> str:
    """The values of the kinds of starts that are possible."""
    kinds = {kind: worth for kind, worth in value.items() if kind != "start" and worth is not None}
    return ", ".join(f"{kind}: {number(worth)}" for kind, worth in kinds.items())


# -- tables --------------------------------------------------------------------------------------


@table_app.command("list")
def list_(as_json: JsonOption = False) -> None:
    """All tables in the data folder: what they are of, what they are worth, how large they are."""
    from lab2048.solve.manifest import description
    from lab2048.solve.store import tables_folder
    from lab2048.solve.table import list_tables

    found = list_tables()
    if as_json:
        facts = [
            description(folder, manifest)
            if isinstance(manifest, dict)
            else {"table": str(folder), "keep": manifest}
            for folder, manifest in found
        ]
        print(json.dumps(facts))
        return
    if not found:
        print(f"There is no table in {tables_folder()} yet; make one with: lab2048 solve 3x3")
        return
    lines = [("table", "board", "p4", "objective", "states", "value 2+2", "size")]
    for folder, manifest in found:
        if isinstance(manifest, str):
            lines.append((folder.name, "", "", manifest, "", "", ""))
            continue
        row = description(folder, manifest)
        discount = f" gamma {row['gamma']:g}" if row["gamma"] != 1 else ""
        lines.append(
            (
                folder.name,
                row["board"],
                f"{row['p4']:g}",
                row["objective"] + discount,
                f"{row['states']:,}",
                number(row["value"]["2+2"]),
                size(row["table_bytes"]) if row["keep"] == "table" else "summary",
            )
        )
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        left = [text.ljust(width) for text, width in zip(line[:4], widths, strict=False)]
        right = [text.rjust(width) for text, width in zip(line[4:], widths[4:], strict=True)]
        print("  ".join(left + right).rstrip())


@table_app.command()
def info(name: NameArgument, as_json: JsonOption = False) -> None:
    """Everything that is known about a table."""
    from lab2048.solve.manifest import description
    from lab2048.solve.table import read_manifest

    folder = folder_of(name)
    manifest = read_manifest(folder)
    found = description(folder, manifest)
    if as_json:
        print(json.dumps(found))
    else:
        _print_solved(found)


@table_app.command()
def verify(
    name: NameArgument,
    full: Annotated[
        bool, typer.Option("--full", help="Compare all states with their moves, not a sample.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Check all files of a table, the order of its keys, and that values fit one another."""
    from lab2048.solve.table import Table

    folder = folder_of(name)
    from lab2048.solve.verify import verify  # compiles kernels

    with Table(folder) as table, _bar("verifying", table.states) as progress:
        found = verify(table, full=full, progress=progress)
    if as_json:
        print(json.dumps({"table": str(table.path), **found}))
        return
    print(
        f"{table.path} is sound: {found['states']:,} states, {found['compared']:,} of them "
        f"compared with their moves, largest difference {found['largest_residual']:.1e}"
    )


@table_app.command()
def remove(
    name: NameArgument,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Remove a table."""
    from lab2048.solve.table import remove_table

    folder = folder_of(name)
    if not yes and not typer.confirm(f"Remove {folder}?"):
        print("kept")
        return
    print(f"removed {folder}, {size(remove_table(folder))}")


def folder_of(name: str) -> Path:
    """The folder of a table by its name, or by its path."""
    from lab2048.solve.store import TableError, tables_folder

    for folder in (tables_folder() / name, tables_folder() / f"{name}-score", Path(name)):
        if folder.is_dir() and folder != tables_folder():
            return folder
    raise TableError(f"there is no table {name}; lab2048 table list shows what there is")


# -- survey --------------------------------------------------------------------------------------

TREE, SWEEP = ("tree.svg",), ("sweep.json", "p4.png")
SURVEY = ("survey.json", "by-move.png", "by-age.png", "tiles.png")
"""The files of each kind of survey."""


@app.command()
def survey(
    board: SizeArgument,
    p4: Annotated[
        str, typer.Option("--p4", help="The chance of a 4, or several: 0,0.05,0.1")
    ] = str(P4),
    gamma: GammaOption = 1.0,
    tree: Annotated[
        bool, typer.Option("--tree", help="Draw all states of a very small board.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Where pictures are put.")
    ] = None,
    threads: ThreadsOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """What optimal play is like: exact statistics and pictures. Solves what is not solved yet."""
    from lab2048.home import check_target
    from lab2048.results import survey_folder
    from lab2048.solve.problem import Problem
    from lab2048.solve.store import expanded

    chances = [_chance(text) for text in p4.split(",")]
    problems = [Problem.of(board, p4=chance, gamma=gamma) for chance in chances]
    usual = (
        Problem.of(board, gamma=gamma).name + "-by-p4" if len(problems) > 1 else problems[0].name
    )
    folder = survey_folder(usual) if out is None else expanded(out)
    if tree and len(problems) > 1:
        raise ValueError("--tree draws one game; give it one --p4")
    files = TREE if tree else SWEEP if len(problems) > 1 else SURVEY
    check_target(folder, files=files, force=force or out is None)  # the usual place is renewed
    if tree:
        _draw_tree(problems[0], folder, as_json)
    elif len(problems) > 1:
        _sweep(problems, folder, threads, as_json)
    else:
        _survey_one(problems[0], folder, threads, as_json)


def _chance(text: str) -> float:
    """A number out of a list on the command line."""
    try:
        return parse_number(text, float)
    except ValueError:
        raise ValueError(
            f"--p4 is a number or several with commas, such as 0,0.1, not {text!r}"
        ) from None


def solved(problem: Problem, threads: int | None = None) -> Table:
    """The table of a problem, solved first if it has to be."""
    from lab2048.solve.problem import ON_THE_FLY
    from lab2048.solve.table import find_table, open_table

    if find_table(problem) is not None:
        return open_table(problem)
    from lab2048.solve.optimal import made_table

    # where there is no room for a small one, that is found out when it is made
    force = problem.rules.cells <= ON_THE_FLY
    return made_table(problem, partial(_solve, problem, threads=threads, force=force))


def _draw_tree(problem: Problem, folder: Path, as_json: bool) -> None:
    """Save the drawing of a whole game."""
    from lab2048.home import write_atomically
    from lab2048.solve.estimate import estimate
    from lab2048.solve.tree import MOST_STATES, draw_tree

    if estimate(problem, "float64", 1).states > MOST_STATES:
        raise ValueError(f"{problem.rules.name} has too many states to be drawn; --tree is for 2x2")
    with solved(problem) as table:
        drawing = draw_tree(table)
    path = folder / TREE[0]
    write_atomically(path, drawing)
    print(json.dumps({"tree": str(path)}) if as_json else f"saved {path}")


def _survey_one(problem: Problem, folder: Path, threads: int | None, as_json: bool) -> None:
    """Print a survey and save its pictures."""
    from lab2048.results import keep_survey
    from lab2048.solve.plots import plot_survey

    with solved(problem, threads) as table:
        found = _surveyed(table, threads)
    keep_survey(found.as_json(), problem.name, folder)
    pictures = plot_survey(found, folder)
    if as_json:
        print(json.dumps({**found.as_json(), "pictures": [str(path) for path in pictures]}))
        return
    _print_survey(found)
    print(f"saved {', '.join(path.name for path in pictures)} and survey.json in {folder}")


def _surveyed(table: Table, threads: int | None, by_move: bool = True) -> Survey:
    """A survey with its progress on stderr."""
    from lab2048.solve.survey import prepare, survey

    prepare(table)
    with _bar(f"survey of {table.path.name}", table.states) as progress:
        return survey(table, threads=threads, by_move=by_move, progress=progress)


def _print_survey(found: Survey) -> None:
    """A survey, for people."""
    value, states = found.value, sum(found.by_age.states)
    gamma = found.problem["gamma"]
    discount = f", gamma {gamma:g}" if gamma != 1 else ""
    print(
        f"Optimal play on {found.problem['board']}, p4 {found.problem['p4']:g}{discount}, exactly"
    )
    rows = [
        (
            "score",
            f"{found.score['mean']:,.2f} on average, deviation {found.score['deviation']:,.2f}",
        ),
        (
            "moves",
            f"{found.moves['mean']:,.2f} on average, deviation {found.moves['deviation']:,.2f}",
        ),
        ("states", f"{states:,}, {found.visited_states:,} of them visited by optimal play"),
        ("value", _value_words(value, discounted=gamma != 1)),
    ]
    for name, text in rows:
        print(f"  {name:12} {text}")
    print()
    print("      tile     reached   largest at the end")
    for tile, chance in found.reach.items():
        print(f"  {tile:8,}  {percent(chance)}   {percent(found.final_tile.get(tile, 0.0))}")
    print()
    moves, last = found.by_move, len(found.by_move.visits)
    how = "exact" if moves.games is None else f"from {moves.games:,} games"
    print(f"      move         gap      margin   over before  (means over visits, {how})")
    ended, steps = 0.0, [last * n // 8 for n in range(1, 9)]
    for index in range(last):
        ended += moves.ends[index]
        if index + 1 in steps:
            means = [moves.gap[index], moves.margin[index]]
            shown = "".join(f"  {'-' if m is None else format(m, ',.2f'):>10}" for m in means)
            print(f"  {index + 1:8,}{shown}     {percent(min(1.0, ended))}")
    print("The gap is the best move's q less the worst's, the margin the best's less the second's.")
    print("Moves that are equally good share a state's visits evenly.")


def _value_words(value: dict[str, float | None], discounted: bool) -> str:
    """The values of starts, for people."""
    words = f"{number(value['start'])} of a start drawn by the rules; {_kinds(value)}"
    return f"{words} (discounted)" if discounted else words


def _sweep(problems: list[Problem], folder: Path, threads: int | None, as_json: bool) -> None:
    """Print how things depend on p4, and save the picture."""
    from lab2048.home import write_atomically
    from lab2048.solve.plots import plot_sweep

    rows: list[dict[str, Any]] = []
    for problem in problems:
        with solved(problem, threads) as table:
            found = _surveyed(table, threads, by_move=False)
        rows.append(
            {
                "p4": problem.rules.p4,
                "value": found.value["start"],
                "mean": found.score["mean"],
                "deviation": found.score["deviation"],
                "reach": found.reach,
            }
        )
    write_atomically(folder / SWEEP[0], json.dumps(rows) + "\n")
    gamma = problems[0].gamma
    title = problems[0].rules.name + (f", gamma = {gamma:g}" if gamma != 1 else "")
    path = plot_sweep(rows, title, folder / SWEEP[1])
    if as_json:
        print(json.dumps({"rows": rows, "pictures": [str(path)]}))
        return
    tiles = sorted({tile for row in rows for tile in row["reach"]})[-5:]
    print("    p4       value       score   deviation  " + "".join(f"{t:>11}" for t in tiles))
    for row in rows:
        numbers = "".join(f"  {row[name]:10,.2f}" for name in ("value", "mean", "deviation"))
        reach = "".join(f"  {percent(row['reach'].get(tile, 0.0))}" for tile in tiles)
        print(f"  {row['p4']:4g}{numbers}  {reach}")
    print(f"saved {path} and sweep.json")


# -- how things are written ----------------------------------------------------------------------


@contextmanager
def _bar(what: str, total: int) -> Iterator[Callable[[int, int], object]]:
    """A progress bar on stderr that is told how much is done."""
    with progress_bar(parts=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done, _: move_on(bar, task, done)


def _say(text: str) -> None:
    """A line on stderr."""
    print(text, file=sys.stderr)
