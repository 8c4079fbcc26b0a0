"""The command `tour`: players ranked against perfect play, on one page."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from lab2048.cli.console import check_target, status
from lab2048.cli.evaluate import run
from lab2048.cli.options import ForceOption, JsonOption, count_option, in_python
from lab2048.cli.results import show_results

if TYPE_CHECKING:
    from lab2048.measure.evaluation import Evaluation

app = typer.Typer()

SMALL = (
    "random",
    "greedy",
    "corner",
    "sparse",
    "minimax:depth=2",
    "montecarlo:rollouts=20",
    "mcts:simulations=100",
    "expectimax:depth=1",
    "expectimax:depth=2",
    "expectimax:depth=3",
    "ntuple",
    "optimal",
)
"""Who plays on 3x3."""
EXACT = ("greedy", "corner")
"""Of these the exact mean score is told as well; it takes a few seconds each."""
LARGE = (
    "random",
    "greedy",
    "montecarlo:rollouts=20",
    "expectimax:depth=2",
    "expectimax:depth=3",
    "ntuple",
    "ntuple:depth=2",
)
"""Who plays on 4x4."""

WELCOME = """\
A tour of lab2048. On 3x3, 2048 is solved: all 48,713,519 states and what each is worth.

    64 16  4     Perfect play has {left:,.1f} points still to come from here, on average.
     8 32  2     A player can be measured by what it gives away: its exact distance
     2  .  4     from perfect play. That is what follows.
"""
FIRST = 4469.5781
"""What perfect play still scores from the board in the welcome."""


@app.command(epilog=in_python('lab2048.evaluate("optimal", "3x3", games=500)'))
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
    from lab2048.game.randomness import checked_seed
    from lab2048.home import home

    checked_seed(seed)
    path = out if out is not None else home() / "tour.html"
    check_target(path, force=force or out is None)  # the usual page is the last tour's
    print(WELCOME.format(left=FIRST), file=sys.stderr, flush=True)
    with _compiling() as ahead:
        small = _on_3x3(games, seed, ahead)
        if not as_json:
            show_results(small.details())
        large = _on_4x4(max(1, games // 10), seed, ahead)
        if not as_json:
            show_results(large.details())
    from lab2048.report.evaluation_page import write_report

    write_report([*small.details(), *large.details()], path, sys.argv[1:])
    for each in (small, large):
        each.forget()
    if as_json:
        print(json.dumps([*small.as_json(), *large.as_json()]))
        return
    command = "lab2048" if shutil.which("lab2048") else sys.argv[0]
    print(f"The page with pictures: {path}")
    print(f"Next: {command} watch ntuple, {command} players, {command} --help")


@contextmanager
def _compiling() -> Iterator[IO[str]]:
    """Compile what the players need in another process, while this one solves.

    What comes out is a line for each board that is ready, or nothing if the process fails: then
    this one compiles for itself.
    """
    code = f"from {__name__} import compile_ahead; compile_ahead()"
    ahead = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert ahead.stdout is not None
    try:
        yield ahead.stdout
    finally:
        ahead.kill()
        ahead.communicate()


def compile_ahead() -> None:
    """Compile what the players of the tour need, and say so after each board."""
    from lab2048.game import Rules
    from lab2048.measure.arena import prepare
    from lab2048.players.registry import make_player

    for rules, specs in ((Rules(3, 3), SMALL), (Rules(4, 4), LARGE)):
        for spec in specs:
            if spec != "optimal":  # it needs the table, which is being made
                prepare(make_player(spec, rules))
        print(rules.name, flush=True)


def _on_3x3(games: int, seed: int, ahead: IO[str]) -> Evaluation:
    """The players on 3x3, against perfect play."""
    from lab2048.cli.solve import solved
    from lab2048.game import Rules
    from lab2048.players.registry import make_player
    from lab2048.solver.problem import Problem

    rules = Rules(3, 3)
    with solved(Problem.of(rules)) as table:
        _wait(ahead)
        entrants = [make_player(spec, rules) for spec in SMALL]
        return run(entrants, games, seed, table=table, exact=EXACT)


def _on_4x4(games: int, seed: int, ahead: IO[str]) -> Evaluation:
    """Some players on 4x4."""
    from lab2048.game import Rules
    from lab2048.players.registry import make_player

    _wait(ahead)
    entrants = [make_player(spec, Rules(4, 4)) for spec in LARGE]
    return run(entrants, games, seed, table=False)


def _wait(ahead: IO[str]) -> None:
    """Wait until the players of the next board are compiled."""
    with status("getting the players ready"):
        ahead.readline()
