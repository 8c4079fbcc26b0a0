"""The command line: parse, call, print."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TextIO, cast

import typer

import lab2048
from lab2048.cli import bench as cli_bench
from lab2048.cli import cluster as cli_cluster
from lab2048.cli import completion as cli_complete
from lab2048.cli import data as cli_data
from lab2048.cli import evaluate as cli_evaluate
from lab2048.cli import networks as cli_networks
from lab2048.cli import probe as cli_probe
from lab2048.cli import review as cli_review
from lab2048.cli import solve as cli_solve
from lab2048.cli import studio as cli_studio
from lab2048.cli import survey as cli_survey
from lab2048.cli import tables as cli_tables
from lab2048.cli import tour as cli_tour
from lab2048.cli import train as cli_train
from lab2048.cli.completion import whole_words
from lab2048.cli.console import Unheard, be_silent, existing, show_briefly, told
from lab2048.cli.options import (
    BoardOption,
    FourOption,
    GammaOption,
    JsonOption,
    SeedOption,
    in_python,
)
from lab2048.formatting import as_options, one_line
from lab2048.game import P4
from lab2048.home import ExistingFilesError, shown_briefly
from lab2048.measure import positions

if TYPE_CHECKING:
    from lab2048.game import Game, Rules

app = typer.Typer(
    help="A laboratory for the game 2048.",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(cli_solve.app)
app.add_typer(cli_survey.app)
app.add_typer(cli_tables.app, name="table")
app.add_typer(cli_evaluate.app)
app.add_typer(cli_review.app)
app.add_typer(cli_tour.app)
app.add_typer(cli_studio.app)
cli_train.app.add_typer(cli_networks.app)
app.add_typer(cli_train.app, name="train")
app.add_typer(cli_data.app, name="data")
app.add_typer(cli_cluster.app, name="cluster")
app.add_typer(cli_bench.app, name="bench")

STOPPED = 130
"""The exit code of a command that was stopped with Ctrl-C."""


def main() -> NoReturn:
    """Run the command line; report any error in one line."""
    if sys.stderr is None:  # closed by the caller: print would write to stdout instead
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    heard = sys.stderr if isinstance(sys.stderr, Unheard) else Unheard(sys.stderr)
    sys.stderr = cast(TextIO, heard)
    try:
        with told(heard), shown_briefly(show_briefly), whole_words():
            code = app(prog_name="lab2048", standalone_mode=False)
        if sys.stdout is not None:  # it is None where the caller closed it
            sys.stdout.flush()
        if code == STOPPED:
            _fail("stopped", STOPPED)
        sys.exit(code)
    except typer.Abort:
        _fail("there was no answer", 1)
    except typer.TyperException as error:
        _fail(f"{error.format_message().rstrip('.')} (see --help)", 2)
    except ExistingFilesError as error:
        _fail(existing(error), 2)
    except (ValueError, ImportError) as error:
        _fail(as_options(str(error)), 2)
    except BrokenPipeError:  # the reader of our output has gone
        _discard_output()
        sys.exit(1)
    except KeyboardInterrupt:
        _fail("stopped", STOPPED)
    except OSError as error:
        _fail_of_disk(error)
    except Exception as error:
        if os.environ.get("LAB2048_DEBUG"):
            raise
        _fail(f"{type(error).__name__}: {error} (LAB2048_DEBUG=1 shows where)", 1)


def _fail_of_disk(error: OSError) -> NoReturn:
    """End with the message of an error of the disk; if it names no file, it was stdout."""
    if error.filename is None:
        _discard_output()
    _fail(f"{error.filename or 'output'}: {error.strerror or error}", 1)


def _discard_output() -> None:
    """Drop what stdout buffers and cannot write; Python would try, and fail, again at exit."""
    with suppress(AttributeError, OSError):  # it is closed, or no file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str, code: int) -> NoReturn:
    """Print a one-line message and exit."""
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


@app.command(epilog=in_python("lab2048.Game(lab2048.Rules(4, 4), seed=1)"))
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
    from lab2048.cli import play_screen

    be_silent()
    _print_farewell(play_screen.play(_rules(size or board, p4), seed))


@app.command(epilog=in_python('lab2048.player("expectimax", "3x2").choose("2 4 / 8 . / . 2")'))
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
    speed: Annotated[float, typer.Option("--speed", help="Moves per second.")] = 8.0,
) -> None:
    """Watch a player play."""
    from lab2048.cli import play_screen
    from lab2048.players.registry import make_player

    if not 0.125 <= speed <= 1024:
        raise ValueError(f"--speed is from 0.125 to 1024 moves per second, not {speed}")
    rules = _rules(board, p4)
    made = make_player(player, rules)
    made.prepare()  # compile, with a message, before the screen is taken over
    game = play_screen.watch(made.spec, made.choose, rules, seed, speed)
    print(game.board.grid())
    _print_farewell(game)


@app.command(
    context_settings={"ignore_unknown_options": True},
    epilog=in_python('lab2048.probe("2 2 / 4 .")'),
)
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
            help="The table to look it up in.",
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
            help="Also show the opinion of a player; may be repeated.",
            autocompletion=cli_complete.players,
        ),
    ] = None,
    objective: cli_solve.ObjectiveOption = "score",
    p4: FourOption = P4,
    gamma: GammaOption = 1.0,
    as_json: JsonOption = False,
) -> None:
    """Show what every move does to a position, with exact values if the board is solved."""
    from lab2048.game import Board, Rules

    position = Board.parse(" ".join(board), size)  # a board without quotes is several words
    rules = Rules(position.rows, position.cols, p4)
    options: dict[str, Any] = {"objective": objective, "p4": p4, "gamma": gamma}
    asked = {name: value for name, value in options.items() if _is_given(context, name)}
    with ExitStack() as stack:
        # a small table is made here, with progress; only options that are given have to agree
        found = positions.position_table(rules, table, asked, cli_solve.maker_of(rules, asked))
        if found is not None:
            stack.enter_context(found)
        shown = positions.probe(
            position,
            False if found is None else found,
            p4=asked.get("p4"),  # unless it is given, the table's
            after=after,
            players=player or [],
        )
    if as_json:
        print(shown.to_json(), end="")
    else:
        cli_probe.show(shown, after, "" if found else cli_probe.hint_for(rules, asked))


def _is_given(context: typer.Context, name: str) -> bool:
    """Whether an option was given on the command line."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _rules(size: str, p4: float) -> Rules:
    """The rules for a board size and a p4."""
    from lab2048.game import Rules

    return Rules.parse(size, p4)


def _print_farewell(game: Game) -> None:
    """Print the result of a game in one line."""
    number = f", game {game.index + 1}" if game.index else ""
    print(
        f"score {game.score:,}, largest tile {game.board.max_tile}, "
        f"{len(game.moves):,} moves, seed {game.seed}{number}"
    )
