"""The command line: parse, call, print."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TextIO, cast

import typer

import lab2048
from lab2048 import (
    analysis,
    cli_cluster,
    cli_complete,
    cli_data,
    cli_evaluate,
    cli_networks,
    cli_neural,
    cli_probe,
    cli_review,
    cli_solve,
    cli_studio,
    cli_tour,
    cli_train,
)
from lab2048.cli_complete import whole_words
from lab2048.cli_progress import Unheard, be_silent, status, told
from lab2048.game import P4
from lab2048.options import (
    BoardOption,
    FourOption,
    GammaOption,
    JsonOption,
    SeedOption,
    command_group,
)
from lab2048.wording import one_line

if TYPE_CHECKING:
    from rich.table import Table

    from lab2048.game import Game, Rules

app = typer.Typer(
    help="A laboratory for the game 2048.",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
bench_app = command_group("Measure how fast lab2048 is on this machine.")
app.add_typer(cli_solve.app)
app.add_typer(cli_evaluate.app)
app.add_typer(cli_review.app)
app.add_typer(cli_tour.app)
app.add_typer(cli_studio.app)
cli_train.app.add_typer(cli_neural.app)
cli_train.app.add_typer(cli_networks.app)
app.add_typer(cli_train.app, name="train")
app.add_typer(cli_data.app, name="data")
app.add_typer(cli_cluster.app, name="cluster")
app.add_typer(bench_app, name="bench")

STOPPED = 130
"""The exit code of a command that was stopped with Ctrl-C."""


def main() -> NoReturn:
    """Run the command line; whatever goes wrong is told in one line."""
    if sys.stderr is None:  # closed by the caller: what is meant for it would go to stdout
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    heard = sys.stderr if isinstance(sys.stderr, Unheard) else Unheard(sys.stderr)
    sys.stderr = cast(TextIO, heard)
    try:
        with told(heard), whole_words():
            code = app(prog_name="lab2048", standalone_mode=False)
        if sys.stdout is not None:  # it is None where the caller closed it
            sys.stdout.flush()
        if code == STOPPED:
            _fail("stopped", STOPPED)
        sys.exit(code)
    except typer.Abort:
        _fail("there was no answer", 1)
    except typer.TyperException as error:
        _fail(f"{error.format_message().rstrip('.')} (--help shows what there is)", 2)
    except (ValueError, ImportError) as error:
        _fail(str(error), 2)
    except BrokenPipeError:  # the reader of our output has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except KeyboardInterrupt:
        _fail("stopped", STOPPED)
    except OSError as error:
        _fail(f"{error.filename or 'output'}: {error.strerror}", 1)
    except Exception as error:
        if os.environ.get("LAB2048_DEBUG"):
            raise
        _fail(f"{type(error).__name__}: {error} (LAB2048_DEBUG=1 shows where)", 1)


def _fail(message: str, code: int) -> NoReturn:
    """End with a message of one line."""
    print(f"lab2048: {one_line(message)}", file=sys.stderr)
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


@app.command()
def play(
    size: Annotated[
        str | None,
        typer.Argument(
            metavar="[RxC]",
            help="The board's size, as --board.",
            autocompletion=cli_complete.boards,
        ),
    ] = None,
    board: BoardOption = "4x4",
    p4: FourOption = P4,
    seed: SeedOption = None,
) -> None:
    """Play 2048 in the terminal: arrows, WASD or hjkl."""
    from lab2048 import terminal

    be_silent()
    _print_farewell(terminal.play(_rules(size or board, p4), seed))


@app.command()
def watch(
    player: Annotated[
        str,
        typer.Argument(
            help="Who plays, such as expectimax:depth=3.", autocompletion=cli_complete.players
        ),
    ],
    board: BoardOption = "4x4",
    p4: FourOption = P4,
    seed: SeedOption = None,
    speed: Annotated[float, typer.Option("--speed", help="Moves a second.")] = 8.0,
) -> None:
    """Watch a player play."""
    from lab2048 import terminal
    from lab2048.players import make_player

    if not 0.125 <= speed <= 1024:
        raise ValueError(f"--speed is from 0.125 to 1024 moves a second, not {speed}")
    rules = _rules(board, p4)
    made = make_player(player, rules)
    made.prepare()  # what is compiled is said before the screen is taken
    game = terminal.watch(made.spec, made.choose, rules, seed, speed)
    print(game.board.grid())
    _print_farewell(game)


@app.command(context_settings={"ignore_unknown_options": True})
def probe(  # noqa: PLR0913, PLR0917
    context: typer.Context,
    board: Annotated[
        list[str],
        typer.Argument(help="Such as '2 4 . / . 8 . / 2 . .', [[2,4],[0,8]] or ranks: 120030100."),
    ],
    size: Annotated[
        str | None,
        typer.Option(
            "--board",
            metavar="RxC",
            help="The board's size, where ranks leave it open.",
            autocompletion=cli_complete.boards,
        ),
    ] = None,
    table: Annotated[
        str | None,
        typer.Option(
            "--table",
            metavar="PATH",
            help="The table to look in.",
            autocompletion=cli_complete.tables,
        ),
    ] = None,
    after: Annotated[
        str | None, typer.Option("--after", metavar="MOVE", help="Show the spawns after a move.")
    ] = None,
    player: Annotated[
        list[str] | None,
        typer.Option(
            "--player",
            metavar="PLAYER",
            help="What a player thinks; may be repeated.",
            autocompletion=cli_complete.players,
        ),
    ] = None,
    objective: cli_solve.ObjectiveOption = "score",
    p4: FourOption = P4,
    gamma: GammaOption = 1.0,
    as_json: JsonOption = False,
) -> None:
    """Show what every move does to a position, and what it is exactly worth if that is solved."""
    from lab2048.game import Board, Rules

    position = Board.parse(" ".join(board), size)  # a board without quotes is several words
    rules = Rules(position.rows, position.cols, p4)
    with ExitStack() as stack:
        found, hint = cli_probe.table_for(rules, table, objective, gamma)
        if found is not None:
            stack.enter_context(found)
            asked = {"objective": objective, "p4": p4, "gamma": gamma}
            cli_probe.check_asked(found, {n: v for n, v in asked.items() if _is_given(context, n)})
            rules = found.rules  # p4 is the table's unless another was asked for
        thought = analysis.opinions(position, rules, player or [])
        if as_json:
            shown = analysis.as_json(position, rules, found, after, thought)
            print(json.dumps(shown, allow_nan=False))  # NaN is not JSON
        else:
            cli_probe.show(position, rules, found, after, thought, hint)


def _is_given(context: typer.Context, name: str) -> bool:
    """Whether an option is on the command line, not just at its default."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


@bench_app.command()
def engine(as_json: JsonOption = False) -> None:
    """The speed of the game itself, on one thread, and the signature of its behaviour."""
    from rich.table import Table

    from lab2048.bench import bench_engine, prepare

    prepare()
    figures = _measured(bench_engine)
    table = Table("figure")
    table.add_column("value", justify="right")
    for board, speed in figures["random_play_moves_per_second"].items():
        table.add_row(f"random play on {board}", f"{speed / 1e6:.1f} million moves/s")
    steps = figures["vector_env_steps_per_second"]
    shown = "Gymnasium is not installed" if steps is None else f"{steps / 1e6:.1f} million steps/s"
    table.add_row("vector environment, 4096 boards of 4x4", shown)
    table.add_row("import lab2048", f"{figures['import_seconds'] * 1000:.0f} ms")
    table.add_row("signature", str(figures["signature"]))
    _print_figures(figures, table, as_json)


@bench_app.command("solve")
def bench_solve(as_json: JsonOption = False) -> None:
    """The speed of solving 4x2 and 3x3, on all cores, and the size of their tables."""
    from rich.table import Table

    from lab2048 import bench

    bench.prepare_solve()
    figures = _measured(bench.bench_solve)
    table = Table("board")
    for name in ("states", "seconds", "enumerate, states/s", "values, states/s", "bytes a state"):
        table.add_column(name, justify="right")
    for board, row in figures["boards"].items():
        table.add_row(
            board,
            f"{row['states']:,}",
            f"{row['seconds']:.2f}",
            f"{row['enumerate_states_per_second'] / 1e6:.1f} million",
            f"{row['values_states_per_second'] / 1e6:.1f} million",
            f"{row['bytes_per_state']:.2f}",
        )
    _print_figures(figures, table, as_json)


@bench_app.command("search")
def bench_search(as_json: JsonOption = False) -> None:
    """The speed of players that search, and of exact values of players."""
    from rich.table import Table

    from lab2048 import bench

    bench.prepare_search()
    figures = _measured(bench.bench_search)
    table = Table("figure")
    table.add_column("value", justify="right")
    for depth, row in figures["expectimax_moves_per_cpu_second"].items():
        table.add_row(
            f"expectimax:{depth}, one thread", f"{row['moves'] / 1e6:.1f} million moves/s"
        )
    for name in ("montecarlo_50", "mcts_200", "greedy"):
        row = figures[name]
        speed = f"{row['moves_per_second']:,} moves/s, {row['seconds_per_game']:.2g} s a game"
        table.add_row(f"games of {name.replace('_', ', ')} on 4x4", speed)
    for spec, seconds in figures["exact_3x3_seconds"].items():
        table.add_row(f"exact value of {spec} on 3x3", f"{seconds:.1f} s")
    _print_figures(figures, table, as_json)


@bench_app.command("td")
def bench_td(as_json: JsonOption = False) -> None:
    """The speed of training n-tuple networks on 4x4, and of playing with one."""
    from rich.table import Table

    from lab2048 import bench

    bench.prepare_td()
    figures = _measured(bench.bench_td)
    table = Table("figure")
    table.add_column("value", justify="right")
    for name, row in figures["learning_moves_per_second"].items():
        for threads, speed in row.items():
            several = f"{threads} thread{'s' * (threads != '1')}"
            table.add_row(f"learning, {name}, {several}", f"{speed / 1e6:.2f} million moves/s")
    for depth, speed in figures["playing_moves_per_second"].items():
        table.add_row(f"playing, {depth}, 1 thread", f"{speed:,} moves/s")
    _print_figures(figures, table, as_json)


@bench_app.command("neural")
def bench_neural(as_json: JsonOption = False) -> None:
    """The speed of neural networks, on one thread: self-play on 3x3, and votes on 4x4."""
    from rich.table import Table

    from lab2048.learn.neural import torch_module

    torch_module("learner")
    from lab2048 import bench_neural as bench

    figures = _measured(bench.bench_neural)
    table = Table("figure")
    table.add_column("value", justify="right")
    for preset, row in figures["self_play"].items():
        name = f"self-play on 3x3, {preset}, {bench.SIMULATIONS} simulations"
        table.add_row(name, f"{row['moves_per_second']:,} moves/s")
        evaluations = f"{row['evaluations_per_second']:,} in batches of {row['mean_batch']:.0f}"
        table.add_row("  evaluations a second", evaluations)
        alone = f"{row['network_alone_evaluations_per_second']:,}"
        table.add_row("  of the network alone", alone)
        table.add_row("  the search costs", f"{100 * row['search_overhead']:.1f}%")
    for name, row in figures["voting"].items():
        speed = f"{row['moves_per_second']:,} moves/s"
        table.add_row(f"votes of {name}, {bench.GAMES:,} games of 4x4", speed)
    _print_figures(figures, table, as_json)


@bench_app.command("cluster")
def bench_cluster(as_json: JsonOption = False) -> None:
    """What a Ray cluster on this machine costs over threads, on layers of 4x3."""
    from rich.table import Table

    from lab2048 import bench_cluster as bench

    figures = _measured(bench.bench_cluster)
    table = Table("who")
    for name in ("states, states/s", "values, states/s", "both, states/s"):
        table.add_column(name, justify="right")
    for name in ("threads", "workers"):
        row = figures[f"{name}_states_per_second"]
        speeds = [f"{row[stage] / 1e6:.1f} M" for stage in ("enumerate", "values", "both")]
        table.add_row(f"{figures['workers']} {name}", *speeds)
    _print_figures(figures, table, as_json)
    if not as_json:
        turns = ", ".join(f"{each:g}%" for each in figures["more_time_percent_of_turns"])
        print(f"Workers take {figures['more_time_percent']:g}% longer (turns: {turns}).")


@bench_app.command("studio")
def bench_studio(as_json: JsonOption = False) -> None:
    """How fast the studio answers, to one client and to many at once."""
    from rich.table import Table

    from lab2048 import bench_studio as bench
    from lab2048.cli_studio import need_server

    need_server()
    figures = _measured(bench.bench_studio)
    crowd = figures["crowd"]
    table = Table("figure")
    table.add_column("value", justify="right")
    table.add_row("start, until the address is printed", f"{figures['start_seconds']:.2f} s")
    page = figures["page"]
    table.add_row(f"page, {page['files']} files", f"{page['bytes'] / 1000:.0f} kB")
    table.add_row("  transfer of all", f"{page['transfer_ms']:.0f} ms")
    table.add_row(
        f"analysis on {figures['board']}, one client", _milliseconds(figures["analyse_ms"])
    )
    many = f"{crowd['clients']} clients, {crowd['watchers']} watching"
    table.add_row(f"analysis, {many}", _milliseconds(crowd))
    table.add_row("  answers a second", f"{crowd['answers_per_second']:,}")
    table.add_row("  frames a second, each watcher", f"{crowd['frames_per_second_a_watcher']}")
    table.add_row("  errors", str(crowd["errors"]))
    crowd = figures["table_crowd"]
    table.add_row(f"analysis, {crowd['clients']} clients", _milliseconds(crowd))
    _print_figures(figures, table, as_json)


def _milliseconds(spread: dict[str, Any]) -> str:
    """A median and what only a hundredth exceeds."""
    return f"{spread['median']:.1f} ms, 1% above {spread['p99']:.0f} ms"


def _measured(bench: Callable[[Callable[[str], object]], dict[str, Any]]) -> dict[str, Any]:
    """The figures of a benchmark, which says meanwhile what it is at."""
    with status("measuring") as change:
        return bench(lambda text: change(f"measuring {text}"))


def _print_figures(figures: dict[str, Any], table: Table, as_json: bool) -> None:
    """Figures as JSON, or as a table and the machine they were measured on."""
    from rich.console import Console

    if as_json:
        print(json.dumps(figures))
        return
    console = Console()
    console.print(table)
    console.print(", ".join(f"{key} {value}" for key, value in figures["machine"].items()))


def _rules(size: str, p4: float) -> Rules:
    """The rules that a command was given."""
    from lab2048.game import Rules

    return Rules.parse(size, p4)


def _print_farewell(game: Game) -> None:
    """How a game went, in a line."""
    number = f", game {game.index + 1}" if game.index else ""
    print(
        f"score {game.score:,}, largest tile {game.board.max_tile}, "
        f"{len(game.moves):,} moves, seed {game.seed}{number}"
    )
