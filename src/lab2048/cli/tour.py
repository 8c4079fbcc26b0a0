"""The command `tour`: players ranked against perfect play, on one page."""

from __future__ import annotations

import shutil
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lab2048.cli.console import check_target, status
from lab2048.cli.evaluate import run
from lab2048.cli.options import ForceOption, JsonOption, count_option, in_python
from lab2048.cli.results import show_results

if TYPE_CHECKING:
    from lab2048.measure.evaluation import Evaluation

app = typer.Typer()

WELCOME = """\
A tour of lab2048. On 3x3, 2048 is solved: all 48,713,519 states and what each is worth.

    64 16  4     Perfect play has {left:,.1f} points still to come from here, on average.
     8 32  2     A player can be measured by what it gives away: its exact distance
     2  .  4     from perfect play. That is what follows.
"""
FIRST = 4469.5781
"""The value of the board in the welcome: what perfect play still scores from it."""


@app.command(epilog=in_python('lab2048.tour("tour.html", games=500)'))
def tour(
    games: Annotated[
        int, count_option("--games", "games", "Games on 3x3; a tenth on 4x4.", 10, 10**7)
    ] = 500,
    seed: Annotated[int, typer.Option("--seed", help="Same seed, same games.")] = 1,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Where to write the page.")
    ] = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Solve 3x3, rank players against perfect play, play on 4x4, and write it all on a page."""
    from lab2048.cli.solve import maker
    from lab2048.game.randomness import checked_seed
    from lab2048.report.tour import tour as make_tour
    from lab2048.solver.problem import Problem

    checked_seed(seed)
    if out is not None:
        force = check_target(out, force=force)
    print(WELCOME.format(left=FIRST), file=sys.stderr, flush=True)
    found = make_tour(
        out, games=games, seed=seed, force=force, command=sys.argv[1:],
        make=maker(Problem.of("3x3")), measure=run,
        waiting=partial(status, "getting the players ready"),
        on_result=_ignore if as_json else _show,
    )  # fmt: skip
    if as_json:
        print(found.to_json(), end="")
        return
    command = "lab2048" if shutil.which("lab2048") else sys.argv[0]
    print(f"The page with pictures: {found.path}")
    print(f"Next: {command} watch ntuple, {command} players, {command} --help")


def _show(result: Evaluation) -> None:
    """Print the results of one board."""
    show_results(result.details())


def _ignore(result: Evaluation) -> None:
    """Print nothing."""
