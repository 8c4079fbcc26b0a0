"""The commands that make move data, and look through it."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from lab2048 import cli_complete
from lab2048.cli_cluster import judge_on, player_on, team_at
from lab2048.cli_progress import move_on, progress_bar
from lab2048.options import (
    BoardOption,
    ClusterOption,
    ForceOption,
    FourOption,
    JsonOption,
    ThreadsOption,
    command_group,
    count_option,
)
from lab2048.wording import size

app = command_group("Make move data to learn from, or look through it.")

RandomOption = Annotated[
    float, typer.Option("--random", min=0, max=1, help="The chance of a random move.")
]
FirstOption = Annotated[
    int | None, count_option("--first", "moves", "Only the first N moves of each game.")
]
MovesOption = Annotated[
    int, count_option("--moves", "moves", "How many, such as 5000, 200k or 5M.")
]
GamesOption = Annotated[int, typer.Option("--seed", min=0, help="Of the games.")]
PlayerOption = Annotated[
    str,
    typer.Option(
        "--player",
        help="Who plays, such as ntuple:depth=2.",
        autocompletion=cli_complete.players,
    ),
]
OutOption = Annotated[Path, typer.Option("--out", metavar="FILE", help="Where to write it.")]


@app.command()
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
    """Write the moves of games of a player: .parquet, or .txt for the text form of the study."""
    from lab2048.arena import prepare
    from lab2048.data import check_file, make_moves, write_moves
    from lab2048.game import Rules
    from lab2048.players import make_player

    rules = Rules.parse(board, p4)
    check_file(out, force)
    chosen = make_player(player, rules)
    prepare(chosen)
    with team_at(cluster, threads) as team, progress_bar() as bar:
        task = bar.add_task(chosen.spec, total=moves)
        note, play = partial(move_on, bar, task), player_on(team)
        parts = make_moves(chosen, moves, seed, threads, note, first, play)
        written = write_moves(out, parts, rules, {"player": chosen.spec, "seed": seed})
    tell_written(out, "moves", written, as_json, player=chosen.spec, board=rules.name, seed=seed)


@app.command()
def label(  # noqa: PLR0913, PLR0917
    out: OutOption,
    player: PlayerOption = "ntuple",
    teacher: Annotated[
        str | None,
        typer.Option(
            "--teacher",
            help="Who judges the moves, if not who plays.",
            autocompletion=cli_complete.players,
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
    """Write boards of games of a player with what it, or its teacher, says about each move."""
    from lab2048.arena import prepare
    from lab2048.game import Rules
    from lab2048.labels import Astray, write_labels
    from lab2048.players import make_player

    rules = Rules.parse(board, p4)
    check_labels(out, force)
    chosen = make_player(player, rules)
    judge = make_player(teacher, rules) if teacher else chosen
    prepare(chosen)
    prepare(judge)
    with team_at(cluster, threads) as team, progress_bar() as bar:
        task = bar.add_task(chosen.spec, total=moves)
        written = write_labels(
            out, Astray(rules, chosen, random), judge, moves, first=first, seed=seed,
            threads=threads, progress=partial(move_on, bar, task), play=player_on(team),
            judge=judge_on(team),
        )  # fmt: skip
    facts = {"player": chosen.spec, "teacher": judge.spec, "board": rules.name, "seed": seed}
    tell_written(out, "boards", written, as_json, **facts)


def tell_written(path: Path, what: str, written: int, as_json: bool, **facts: Any) -> None:
    """Say what is in a file now: so many moves, boards or states of a player."""
    found = path.stat().st_size
    if as_json:
        print(json.dumps({"file": str(path), what: written, "bytes": found, **facts}))
    else:
        print(f"wrote {written:,} {what} of {facts['player']} to {path}: {size(found)}")


def check_labels(path: Path, force: bool) -> None:
    """An error unless labels may be put into this file (`home.check_target`)."""
    from lab2048.data import check_file

    if path.suffix != ".parquet":
        raise ValueError(f"labels go into a .parquet file, not {path.name[:40]}")
    check_file(path, force)


@app.command()
def perfect(  # noqa: PLR0913, PLR0917
    out: OutOption,
    board: BoardOption = "3x3",
    p4: FourOption = 0.1,
    player: PlayerOption = "optimal:ties=split",
    random: RandomOption = 0.0,
    likely: Annotated[
        float, typer.Option("--likely", min=0, max=1, help="Leave out what fewer games come to.")
    ] = 1e-7,
    threads: ThreadsOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write perfect labels of a solved board: every state that a player comes to, and how often."""
    from lab2048.arena import prepare
    from lab2048.cli_train import table_against
    from lab2048.game import Rules
    from lab2048.labels import write_perfect
    from lab2048.players import make_player

    rules = Rules.parse(board, p4)
    check_labels(out, force)
    with table_against(rules.name, rules) as table, progress_bar() as bar:
        chosen = make_player(player, rules)
        prepare(chosen)
        task = bar.add_task(chosen.spec, total=(4 << rules.cells) - 4)  # the largest age
        written = write_perfect(
            out, table, chosen, random=random, likely=likely, threads=threads,
            progress=partial(move_on, bar, task),
        )  # fmt: skip
    facts = {"player": chosen.spec, "board": rules.name, "random": random}
    tell_written(out, "states", written, as_json, **facts)


@app.command()
def check(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help=".txt or .parquet files.")],
    board: BoardOption = "4x4",
    as_json: JsonOption = False,
) -> None:
    """Look through move data: how many moves there are, and what their cells mean."""
    from dataclasses import asdict

    from lab2048.data import open_moves, summarise
    from lab2048.game import Rules

    rules = Rules.parse(board)
    found = {}
    with progress_bar() as bar:
        for path in files:
            source = open_moves(path, rules)
            task = bar.add_task(path.name, total=len(source))
            found[str(path)] = summarise(source, partial(move_on, bar, task))
    if as_json:
        print(json.dumps({name: asdict(each) for name, each in found.items()}))
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
