"""The commands that make and check move data."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lab2048.cli import completion
from lab2048.cli.console import allowed, move_on, progress_bar
from lab2048.cli.options import (
    BoardOption,
    ClusterOption,
    ForceOption,
    FourOption,
    JsonOption,
    ThreadsOption,
    command_group,
    count_option,
    in_python,
)
from lab2048.formatting import size
from lab2048.game import Rules

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from lab2048.data.files import Written

app = command_group("Make move data to learn from, or check it.")

RandomOption = Annotated[
    float, typer.Option("--random", min=0, max=1, help="The chance of a random move.")
]
FirstOption = Annotated[
    int | None, count_option("--first", "moves", "Only the first N moves of each game.")
]
MovesOption = Annotated[
    int, count_option("--moves", "moves", "Number of moves, such as 5000, 200k or 5M.")
]
GamesOption = Annotated[int, typer.Option("--seed", min=0, help="Seed of the games.")]
PlayerOption = Annotated[
    str,
    typer.Option(
        "--player",
        help="Who plays, such as ntuple:depth=2.",
        autocompletion=completion.players,
    ),
]
OutOption = Annotated[Path, typer.Option("--out", metavar="FILE", help="Where to write it.")]


@app.command(epilog=in_python('lab2048.save_moves("moves.parquet", "ntuple", moves=5000)'))
def make(  # noqa: PLR0913, PLR0917
    out: OutOption,
    player: PlayerOption = "ntuple",
    moves: MovesOption = 100_000,
    first: FirstOption = None,
    board: BoardOption = "4x4",
    p4: FourOption = 0.1,
    seed: GamesOption = 1,
    threads: ThreadsOption = None,
    cluster: ClusterOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write the moves of a player's games: .parquet, or .txt for the text form of the study."""
    from lab2048.data.files import save_moves
    from lab2048.data.moves import check_file

    force = allowed(partial(check_file, out), force)
    with progress_bar() as bar:
        task = bar.add_task(player, total=moves)
        written = save_moves(
            out, player, Rules.parse(board, p4), moves=moves, first=first, seed=seed,
            threads=threads, force=force, progress=partial(move_on, bar, task),
            cluster=cluster,
        )  # fmt: skip
    tell_written(written, as_json)


@app.command(epilog=in_python('lab2048.save_labels("labels.parquet", "ntuple", moves=5000)'))
def label(  # noqa: PLR0913, PLR0917
    out: OutOption,
    player: PlayerOption = "ntuple",
    teacher: Annotated[
        str | None,
        typer.Option(
            "--teacher",
            help="Who judges the moves, if not the player.",
            autocompletion=completion.players,
        ),
    ] = None,
    moves: MovesOption = 100_000,
    first: FirstOption = None,
    random: RandomOption = 0.0,
    board: BoardOption = "4x4",
    p4: FourOption = 0.1,
    seed: GamesOption = 1,
    threads: ThreadsOption = None,
    cluster: ClusterOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write boards from a player's games with the value that it, or a teacher, gives each move."""
    from lab2048.data.files import check_labels, save_labels

    force = allowed(partial(check_labels, out), force)
    with progress_bar() as bar:
        task = bar.add_task(player, total=moves)
        written = save_labels(
            out, player, Rules.parse(board, p4), teacher=teacher, moves=moves, first=first,
            random=random, seed=seed, threads=threads, force=force,
            progress=partial(move_on, bar, task), cluster=cluster,
        )  # fmt: skip
    tell_written(written, as_json)


def tell_written(written: Written, as_json: bool) -> None:
    """Print what was written to a file."""
    if as_json:
        print(json.dumps(written.as_json()))
        return
    what, who = written.what, written.facts["player"]
    print(f"wrote {written.count:,} {what} of {who} to {written.path}: {size(written.bytes)}")


@app.command(epilog=in_python('lab2048.save_perfect_labels("perfect.parquet", "3x3")'))
def perfect(  # noqa: PLR0913, PLR0917
    out: OutOption,
    board: BoardOption = "3x3",
    p4: FourOption = 0.1,
    player: PlayerOption = "optimal:ties=split",
    random: RandomOption = 0.0,
    likely: Annotated[
        float, typer.Option("--likely", min=0, max=1, help="Leave out what fewer games reach.")
    ] = 1e-7,
    threads: ThreadsOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write perfect labels of a solved board: every state that a player reaches, and how often."""
    from lab2048.cli.solve import maker
    from lab2048.data.files import check_labels, save_perfect_labels
    from lab2048.solver.problem import Problem
    from lab2048.solver.tables import require_table

    rules = Rules.parse(board, p4)
    allowed(partial(check_labels, out), force)
    problem = Problem.of(rules)
    with require_table(problem, make=maker(problem, threads)) as table, progress_bar() as bar:
        task = bar.add_task(player, total=(4 << rules.cells) - 4)  # the largest age
        written = save_perfect_labels(
            out, rules, player, table=table, random=random, likely=likely, threads=threads,
            force=True, progress=partial(move_on, bar, task),
        )  # fmt: skip
    tell_written(written, as_json)


@app.command(epilog=in_python('lab2048.check_moves("moves.parquet")'))
def check(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help=".txt or .parquet files.")],
    board: BoardOption = "4x4",
    as_json: JsonOption = False,
) -> None:
    """Check move data: count the moves, and find out what their cells mean."""
    from lab2048.data.files import check_moves

    rules = Rules.parse(board)
    found = {}
    with progress_bar() as bar:
        for path in files:
            task = bar.add_task(path.name, total=None)
            found[str(path)] = check_moves(path, rules, partial(_move_on, bar, task))
    if as_json:
        print(json.dumps({name: each.as_json() for name, each in found.items()}))
        return
    means = {
        "before": "of the tile before the move",
        "after": "of the tile after the move",
        "either": "of the tile before the move or after it: both fit",
    }
    for name, each in found.items():
        shares = [f"{100 * n / max(1, each.moves):.1f}%" for n in each.directions]
        print(f"{name}: {each.moves:,} moves, tiles up to {each.largest:,}")
        print(f"  up {shares[0]}, right {shares[1]}, down {shares[2]}, left {shares[3]}")
        print(f"  cells are {means[each.cell]}")


def _move_on(bar: Progress, task: TaskID, done: int, total: int) -> None:
    """Set how much of a file has been read."""
    bar.update(task, completed=done, total=total)
