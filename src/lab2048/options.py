"""Options that several commands have."""

from __future__ import annotations

from typing import Annotated

import typer

BoardOption = Annotated[str, typer.Option("--board", metavar="RxC", help="The board's size.")]
FourOption = Annotated[float, typer.Option("--p4", help="The chance that a new tile is a 4.")]
SeedOption = Annotated[
    int | None, typer.Option("--seed", help="Same seed, same game. Drawn if not given.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON value and nothing else.")]
GammaOption = Annotated[float, typer.Option("--gamma", help="Discount a move, from 0 to 1.")]
ThreadsOption = Annotated[
    int | None, typer.Option("--threads", min=1, max=1024, help="As many as cores if not given.")
]
