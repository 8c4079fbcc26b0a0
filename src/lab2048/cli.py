"""The command line: parse, call, print."""

from __future__ import annotations

import json
import os
import sys
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

import lab2048

if TYPE_CHECKING:
    from lab2048.bulk import Results
    from lab2048.game import Board, Rules

app = typer.Typer(
    help="A laboratory for the game 2048.",
    add_completion=False,
    pretty_exceptions_enable=False,
)
bench_app = typer.Typer(help="Measure how fast lab2048 is on this machine.")
app.add_typer(bench_app, name="bench")

BoardOption = Annotated[str, typer.Option("--board", metavar="RxC", help="The board's size.")]
FourOption = Annotated[float, typer.Option("--p4", help="The chance that a new tile is a 4.")]
SeedOption = Annotated[
    int | None, typer.Option("--seed", help="Same seed, same game. Drawn if not given.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON value and nothing else.")]


def main() -> NoReturn:
    """Run the command line; whatever goes wrong is told in one line."""
    try:
        sys.exit(app(prog_name="lab2048", standalone_mode=False))
    except typer.TyperException as error:
        _fail(error.format_message(), 2)
    except (ValueError, ImportError) as error:
        _fail(str(error), 2)
    except BrokenPipeError:  # the reader of our output has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except KeyboardInterrupt:
        _fail("stopped", 130)
    except Exception as error:
        if os.environ.get("LAB2048_DEBUG"):
            raise
        _fail(f"{type(error).__name__}: {error} (LAB2048_DEBUG=1 shows where)", 1)


def _fail(message: str, code: int) -> NoReturn:
    print("lab2048: " + " ".join(message.split()), file=sys.stderr)
    sys.exit(code)


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """A laboratory for the game 2048."""
    if version:
        print(f"lab2048 {lab2048.__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help())


@bench_app.callback(invoke_without_command=True)
def bench_root(context: typer.Context) -> None:
    """Measure how fast lab2048 is on this machine."""
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command()
def play(
    size: Annotated[str, typer.Argument(metavar="RxC", help="The board's size.")] = "4x4",
    p4: FourOption = 0.1,
    seed: SeedOption = None,
) -> None:
    """Play 2048 in the terminal: arrows, WASD or hjkl."""
    from lab2048 import terminal

    game = terminal.play(_rules(size, p4), seed)
    print(_farewell(game.score, game.board.max_tile, len(game.moves), game.seed))


@app.command()
def watch(
    player: Annotated[str, typer.Argument(help="Who plays: random.")],
    board: BoardOption = "4x4",
    p4: FourOption = 0.1,
    seed: SeedOption = None,
    speed: Annotated[float, typer.Option("--speed", help="Moves a second.")] = 8.0,
) -> None:
    """Watch a player play."""
    from lab2048 import terminal
    from lab2048.players import find_player

    if not 0.125 <= speed <= 1024:
        raise ValueError(f"--speed is from 0.125 to 1024 moves a second, not {speed}")
    game = terminal.watch(player, find_player(player), _rules(board, p4), seed, speed)
    print(game.board.grid())
    print(_farewell(game.score, game.board.max_tile, len(game.moves), game.seed))


@app.command(context_settings={"ignore_unknown_options": True})
def probe(
    board: Annotated[
        str,
        typer.Argument(help="Such as '2 4 . / . 8 . / 2 . .', [[2,4],[0,8]] or ranks: 120030100."),
    ],
    size: Annotated[
        str | None,
        typer.Option("--board", metavar="RxC", help="The board's size, where ranks leave it open."),
    ] = None,
    p4: FourOption = 0.1,
    as_json: JsonOption = False,
) -> None:
    """Show what every move does to a position."""
    from lab2048.game import Board, Rules

    position = Board.parse(board, size)
    rules = Rules(position.rows, position.cols, p4)
    if as_json:
        print(json.dumps(_probe_json(position, rules)))
    else:
        _print_probe(position, rules)


def _probe_json(board: Board, rules: Rules) -> dict[str, Any]:
    """The object that `probe --json` prints; an illegal move has neither reward nor afterstate."""
    from lab2048.game import Direction

    moves = {}
    for direction in Direction:
        legal, reward, after = board.move(direction)
        moves[str(direction)] = {
            "legal": legal,
            "reward": reward if legal else None,
            "after": str(after) if legal else None,
        }
    return {
        "board": str(board),
        "rules": {"rows": rules.rows, "cols": rules.cols, "p4": rules.p4},
        "terminal": board.is_terminal,
        "moves": moves,
    }


def _print_probe(board: Board, rules: Rules) -> None:
    """The position and a table of its moves."""
    from rich.console import Console
    from rich.table import Table

    from lab2048.game import Direction

    console = Console()
    console.print(board.grid(), highlight=False)
    console.print(
        f"{rules.name}, age {board.age}, {board.empty} empty, largest tile {board.max_tile}"
        + (", no move is legal" if board.is_terminal else ""),
        highlight=False,
    )
    table = Table("move", "legal")
    table.add_column("reward", justify="right")
    table.add_column("afterstate", no_wrap=True)
    for direction in Direction:
        legal, reward, after = board.move(direction)
        cells = ("yes", f"{reward}", f"{after}") if legal else ("no", "", "")
        table.add_row(str(direction), *cells)
    console.print(table)


@app.command()
def tour(
    games: Annotated[int, typer.Option("--games", min=1, help="Games on each board.")] = 1000,
    seed: Annotated[int, typer.Option("--seed", help="Same seed, same games.")] = 1,
    as_json: JsonOption = False,
) -> None:
    """Play random games on 3x3 and 4x4 and show how they went."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    from lab2048.chance import checked_seed
    from lab2048.game import Rules

    checked_seed(seed)
    boards = [Rules(3, 3), Rules(4, 4)]
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    results = {}
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True)) as bar:
        tasks = [bar.add_task(f"random play on {rules.name}", total=games) for rules in boards]
        from lab2048.bulk import random_games

        for rules, task in zip(boards, tasks, strict=True):
            advance = partial(bar.advance, task)
            results[rules.name] = random_games(rules, games, seed, progress=advance)
    if as_json:
        print(json.dumps([_tour_row(name, seed, found) for name, found in results.items()]))
    else:
        _print_tour(results, games, seed)


def _tour_row(name: str, seed: int, results: Results) -> dict[str, Any]:
    """One board's results as a JSON object."""
    tiles, counts = _reach(results)
    games = len(results.score)
    return {
        "player": "random",
        "board": name,
        "games": games,
        "seed": seed,
        "score": {"mean": float(results.score.mean()), "max": int(results.score.max())},
        "moves": {"mean": float(results.moves.mean())},
        "reach": {str(tile): n / games for tile, n in zip(tiles, counts, strict=True)},
    }


def _reach(results: Results) -> tuple[list[int], list[int]]:
    """Every tile that some game ended with as its largest, and how many games reached it."""
    tiles = sorted({int(tile) for tile in results.max_tile})
    return tiles, [int((results.max_tile >= tile).sum()) for tile in tiles]


def _print_tour(results: dict[str, Results], games: int, seed: int) -> None:
    """The result table, and what to do next."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"The random player, {games:,} games a board, seed {seed}")
    for name in ("board", "mean score", "± 95%", "best score", "mean moves"):
        table.add_column(name, justify="right")
    table.add_column("games that reached a tile")
    for name, found in results.items():
        tiles, counts = _reach(found)
        half = 1.96 * float(found.score.std(ddof=1)) / games**0.5 if games > 1 else float("nan")
        reached = [f"{tile}: {100 * n / games:.3g}%" for tile, n in zip(tiles, counts, strict=True)]
        table.add_row(
            name,
            f"{found.score.mean():,.1f}",
            f"{half:,.1f}",
            f"{found.score.max():,}",
            f"{found.moves.mean():,.1f}",
            "  ".join(reached[-4:]),
        )
    Console().print(table)
    print("Next: lab2048 play, lab2048 watch random, lab2048 probe '2 4 . / . 8 . / 2 . .'")


@bench_app.command()
def engine(as_json: JsonOption = False) -> None:
    """The speed of the game itself, on one thread, and the signature of its behaviour."""
    from rich.console import Console
    from rich.table import Table

    with Console(stderr=True).status("starting") as status:
        from lab2048.bench import bench_engine

        figures = bench_engine(lambda text: status.update(f"measuring {text}"))
    if as_json:
        print(json.dumps(figures))
        return
    table = Table("figure")
    table.add_column("value", justify="right")
    for board, speed in figures["random_play_moves_per_second"].items():
        table.add_row(f"random play on {board}", f"{speed / 1e6:.1f} million moves/s")
    steps = figures["vector_env_steps_per_second"]
    shown = "needs lab2048[gym]" if steps is None else f"{steps / 1e6:.1f} million steps/s"
    table.add_row("vector environment, 4096 boards of 4x4", shown)
    table.add_row("import lab2048", f"{figures['import_seconds'] * 1000:.0f} ms")
    table.add_row("signature", str(figures["signature"]))
    console = Console()
    console.print(table)
    console.print(", ".join(f"{key} {value}" for key, value in figures["machine"].items()))


def _rules(size: str, p4: float) -> Rules:
    from lab2048.game import Rules

    return Rules.parse(size, p4)


def _farewell(score: int, tile: int, moves: int, seed: int) -> str:
    return f"score {score:,}, largest tile {tile}, {moves:,} moves, seed {seed}"
