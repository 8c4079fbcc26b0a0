"""The tour: players ranked against perfect play on 3x3, and on 4x4, on one page."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from lab2048.game import Rules
from lab2048.game.randomness import checked_seed
from lab2048.home import check_target, home
from lab2048.measure.arena import prepare
from lab2048.measure.evaluation import Evaluation, evaluate
from lab2048.players.player import Player
from lab2048.players.registry import make_player
from lab2048.report.writing import write_report
from lab2048.solver.problem import Problem
from lab2048.solver.tables import Make, ensure_table
from lab2048.tabular import Tabular

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
"""The players on 3x3."""
EXACT = ("greedy", "corner")
"""Those whose exact mean score is computed as well; it takes a few seconds each."""
LARGE = (
    "random",
    "greedy",
    "montecarlo:rollouts=20",
    "expectimax:depth=2",
    "expectimax:depth=3",
    "ntuple",
    "ntuple:depth=2",
)
"""The players on 4x4."""

Measure = Callable[..., Evaluation]
"""Evaluates: takes entrants, games and seed, and the keywords of `evaluate`."""


@dataclass(frozen=True)
class Tour(Tabular, Sequence[Evaluation]):
    """The evaluations of a tour, one per board, and its page.

    >>> from lab2048 import Tour, evaluate
    >>> boards = [evaluate("greedy", board, games=2) for board in ("2x2", "3x2")]
    >>> [row["board"] for row in Tour(boards, Path("tour.html")).rows()]
    ['2x2', '3x2']
    """

    evaluations: Sequence[Evaluation]
    path: Path

    def __len__(self) -> int:
        return len(self.evaluations)

    def __getitem__(self, which: Any) -> Any:
        return self.evaluations[which]

    def as_json(self) -> list[dict[str, Any]]:
        """Return what `lab2048 tour --json` prints: all figures of every player."""
        return [figures for each in self for figures in each.as_json()]

    def rows(self) -> list[dict[str, Any]]:
        """Return the main figures of each player on each board."""
        rows = [row for each in self for row in each.rows()]
        names = dict.fromkeys(name for row in rows for name in row)
        return [{name: row.get(name) for name in names} for row in rows]


def _evaluated(entrants: Sequence[Player], games: int, seed: int, **more: Any) -> Evaluation:
    """An evaluation that shows no progress."""
    return evaluate(entrants, games=games, seed=seed, resumable=True, **more)


def tour(  # noqa: PLR0913 -- all but the first are keywords
    path: Path | str | None = None,
    *,
    games: int = 500,
    seed: int = 1,
    force: bool = False,
    command: Sequence[str] = (),
    make: Make | None = None,
    measure: Measure = _evaluated,
    waiting: Callable[[], AbstractContextManager[object]] = nullcontext,
    on_result: Callable[[Evaluation], object] = lambda result: None,
) -> Tour:
    """Solve 3x3, rank players against perfect play, play on 4x4, and write it all on a page.

    It takes some minutes the first time. There are `games` per player on 3x3 and a tenth of that on
    4x4. The page is `path`, which is replaced only with `force`, or else `tour.html` in the data
    folder, which always is. The same call resumes an interrupted tour. `on_result` is called with
    each evaluation when it is done. To show progress, `make` and `measure` replace how the table is
    made and how players are measured, and `waiting` is the context in which compilation is awaited.

    >>> import lab2048
    >>> lab2048.tour("tour.html", games=100)[0]["expectimax:depth=2"].agreement  # doctest: +SKIP
    0.87
    """
    checked_seed(seed)
    page = home() / "tour.html" if path is None else Path(path)
    force = force or path is None  # the default page is that of the last tour
    check_target(page, force=force)
    found = []
    with compiling() as ahead:

        def wait() -> None:
            with waiting():
                ahead.readline()

        with ensure_table(Problem.of("3x3"), make, asked=True) as table:
            wait()
            entrants = [make_player(spec, table.rules) for spec in SMALL]
            found.append(measure(entrants, games, seed, table=table, exact=EXACT))
        on_result(found[-1])
        wait()
        entrants = [make_player(spec, Rules(4, 4)) for spec in LARGE]
        found.append(measure(entrants, max(1, games // 10), seed, table=False))
        on_result(found[-1])
    write_report(found, page, force=True, command=command)
    for each in found:
        each.forget()
    return Tour(found, page)


@contextmanager
def compiling() -> Iterator[IO[str]]:
    """Compile what the players need in another process, while this one solves.

    Its output has a line for each board that is ready, or nothing if it fails: then this process
    compiles for itself.
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
    """Compile what the players of the tour need, and print a line after each board."""
    for rules, specs in ((Rules(3, 3), SMALL), (Rules(4, 4), LARGE)):
        for spec in specs:
            if spec != "optimal":  # it needs the table, which is being made
                prepare(make_player(spec, rules))
        print(rules.name, flush=True)
