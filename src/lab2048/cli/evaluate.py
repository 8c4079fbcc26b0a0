"""The commands about players: players, evaluate."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lab2048.cli import completion
from lab2048.cli.console import allowed, check_target, output, progress_bar
from lab2048.cli.options import (
    BoardOption,
    ClusterOption,
    ForceOption,
    FourOption,
    JsonOption,
    ThreadsOption,
    count_option,
    in_python,
)
from lab2048.cli.results import show_results
from lab2048.game import P4
from lab2048.home import say

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from lab2048.game import Rules
    from lab2048.measure.evaluation import Evaluation
    from lab2048.players.player import Player
    from lab2048.solver.table import Table

app = typer.Typer()

TableOption = Annotated[
    str | None,
    typer.Option(
        "--table",
        metavar="TABLE",
        help="A table to compare with, by name or folder.",
        autocompletion=completion.tables,
    ),
]
GamesSeedOption = Annotated[int, typer.Option("--seed", help="Same seed, same games.")]


# -- players -------------------------------------------------------------------------------------


@app.command(epilog=in_python("lab2048.list_players()"))
def players(as_json: JsonOption = False) -> None:
    """List all players with their options and defaults."""
    from lab2048.players.heuristics import HEURISTICS
    from lab2048.players.player import format_value
    from lab2048.players.registry import list_players

    found = list_players()
    if as_json:
        print(found.to_json(), end="")
        return
    console = output()
    for name, facts in found.items():
        console.print(f"[bold]{name}[/]  {facts.about}", soft_wrap=True)
        for option, each in facts.options.items():
            default = "-" if each["default"] is None else format_value(each["default"])
            shown = f" ({', '.join(each['choices'])})" if each["choices"] else ""
            text = f"    {option + '=' + default:22} {each['about']}{shown}"
            console.print(text, markup=False, soft_wrap=True)
    console.print("[bold]python:MODULE.FUNCTION[/]  your own player (see docs/methods.md)")
    console.print("\nHeuristics, for the option heuristic= of search players:")
    for heuristic, what in HEURISTICS.items():
        console.print(f"    {heuristic:6} {what.about}", markup=False, soft_wrap=True)
    console.print("\nAs in: lab2048 evaluate greedy expectimax:depth=2,heuristic=snake --board 3x3")


# -- evaluate ------------------------------------------------------------------------------------


@app.command(epilog=in_python('lab2048.evaluate("greedy", "3x3", games=1000)'))
def evaluate(  # noqa: PLR0913, PLR0917
    specs: Annotated[
        list[str],
        typer.Argument(
            metavar="PLAYER...",
            help="Such as greedy expectimax:depth=2.",
            autocompletion=completion.players,
        ),
    ],
    board: BoardOption = "4x4",
    p4: FourOption = P4,
    games: Annotated[
        int, count_option("--games", "games", "Games per player, such as 500 or 10k.", high=10**8)
    ] = 100,
    seed: GamesSeedOption = 1,
    table: TableOption = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="Also compute the exact mean score, without games.")
    ] = False,
    threads: ThreadsOption = None,
    cluster: ClusterOption = None,
    save: Annotated[
        Path | None,
        typer.Option("--save", metavar="FILE", help="Save the games: .jsonl, .parquet."),
    ] = None,
    report: Annotated[
        Path | None, typer.Option("--report", metavar="FILE", help="Write a page with pictures.")
    ] = None,
    plots: Annotated[
        Path | None, typer.Option("--plots", metavar="DIR", help="Save the pictures as SVG files.")
    ] = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print comma-separated values.")] = False,
    as_latex: Annotated[bool, typer.Option("--latex", help="Print a LaTeX table.")] = False,
) -> None:
    """Play games of one or more players, and measure them against each other and perfect play.

    Stop it with Ctrl-C; the same command resumes.
    """
    from lab2048.game import Rules
    from lab2048.measure.evaluation import make_players

    if as_json + as_csv + as_latex > 1:
        raise ValueError("only one of --json, --csv and --latex can be printed")
    rules = Rules.parse(board, p4)
    check_targets(save, report, plots, rules, force)
    entrants = make_players(specs, rules, exact=exact)
    with ExitStack() as stack:
        found = table_for(rules, table, threads)
        if found is not None:
            stack.enter_context(found)
        result = run(
            entrants, games, seed, table=found or False, exact=exact, threads=threads,
            cluster=cluster,
        )  # fmt: skip
    _keep(result)
    if save is not None:
        say(f"saved {result.save_games(save, force=True):,} games in {save}")
    write_pages(result, report, plots)
    if as_json or as_csv or as_latex:
        print(
            (result.to_json if as_json else result.to_csv if as_csv else result.to_latex)(), end=""
        )
    else:
        show_results(result.details())
    result.forget()


def write_pages(result: Evaluation, report: Path | None, plots: Path | None) -> None:
    """Write the page and the pictures, where they are asked for."""
    from lab2048.report.writing import write_plots, write_report

    if report is not None:
        say(f"wrote {write_report(result, report, force=True, command=sys.argv[1:])}")
    if plots is not None:
        for path in write_plots(result, plots, force=True):
            say(f"wrote {path}")


def _keep(result: Evaluation) -> None:
    """Keep results for the studio; an error is reported, but does not stop the command."""
    try:
        result.keep(sys.argv[1:])
    except OSError as error:
        say(f"the results could not be kept: {error.strerror}")


def check_targets(
    save: Path | None, report: Path | None, plots: Path | None, rules: Rules, force: bool
) -> None:
    """Check, before any game is played, that results can be written to these files."""
    from lab2048.game.record import check_file

    if save is not None:
        allowed(partial(check_file, save), force)
    if report is not None:
        check_target(report, force=force)
    if plots is not None:
        from lab2048.report.writing import evaluation_plots

        check_target(plots, files=evaluation_plots(rules), force=force)


def table_for(rules: Rules, name: str | None, threads: int | None = None) -> Table | None:
    """Return the table to compare with, made now if it is small; say how to make a larger one."""
    from lab2048.cli.solve import maker_of
    from lab2048.solver import tables
    from lab2048.solver.problem import MAX_CELLS, Problem

    if name is None and rules.cells > MAX_CELLS:
        return None
    found = tables.table_for(rules, name, maker_of(rules, {}, threads))
    if found is None:
        how = tables.command_for(Problem.of(rules))
        say(f"for the distance from perfect play, solve the board once: {how}")
    return found


def run(entrants: Sequence[Player], games: int, seed: int, **more: Any) -> Evaluation:
    """Evaluate players, with progress on stderr."""
    from lab2048.measure.evaluation import evaluate, prepared

    prepared(entrants, say, games, seed)
    with progress_bar() as bar:
        note = partial(_advance, bar, {})
        try:
            return evaluate(entrants, games=games, seed=seed, resumable=True, progress=note, **more)
        except KeyboardInterrupt:
            bar.stop()
            say("finished games are kept; the same command resumes from here")
            raise


def _advance(
    bar: Progress, tasks: dict[str, TaskID], what: str, done: int, total: int | None
) -> None:
    """Advance the bar of a player; without a total, only rename the newest bar."""
    if total is None:
        bar.update(bar.task_ids[-1], description=what)
        return
    if what not in tasks:
        for spec, before in tasks.items():
            bar.update(before, description=spec)
        tasks[what] = bar.add_task(what, total=total)
    bar.update(tasks[what], completed=done)
