"""Options shared by several commands."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from lab2048.cli import completion
from lab2048.game.notation import counted

BoardOption = Annotated[
    str,
    typer.Option(
        "--board", metavar="RxC", help="The board's size.", autocompletion=completion.boards
    ),
]
FourOption = Annotated[float, typer.Option("--p4", help="The chance that a new tile is a 4.")]
SeedOption = Annotated[
    int | None, typer.Option("--seed", help="Same seed, same game. Random if not given.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON value and nothing else.")]
ForceOption = Annotated[
    bool, typer.Option("--force", help="Replace existing files without asking.")
]
GammaOption = Annotated[float, typer.Option("--gamma", help="Discount per move, from 0 to 1.")]
ThreadsOption = Annotated[
    int | None, typer.Option("--threads", min=1, max=1024, help="Threads; default: one per core.")
]

ClusterOption = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="ADDRESS",
        help="Run on a Ray cluster: its address, auto, or local for one on this machine.",
    ),
]


def count_option(flag: str, what: str, about: str, low: int = 1, high: int = 10**12) -> Any:
    """An option for a number of things, which may be written as 200k or 1.5M."""

    def parse(value: str | int) -> int:
        try:
            return counted(str(value), what, low, high)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None

    return typer.Option(flag, metavar="N", help=about, parser=parse)


def command_group(about: str) -> typer.Typer:
    """A group of commands; called without one, it prints its help."""
    group = typer.Typer(help=about)

    @group.callback(invoke_without_command=True, help=about)
    def root(context: typer.Context) -> None:
        if context.invoked_subcommand is None:
            print(context.get_help())

    return group


def in_python(call: str) -> str:
    """Return the last line of a command's help: the call that does the same in Python."""
    return f"In Python: {call}"
