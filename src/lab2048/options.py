"""Options that several commands have."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Annotated

import typer

BoardOption = Annotated[str, typer.Option("--board", metavar="RxC", help="The board's size.")]
FourOption = Annotated[float, typer.Option("--p4", help="The chance that a new tile is a 4.")]
SeedOption = Annotated[
    int | None, typer.Option("--seed", help="Same seed, same game. Drawn if not given.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON value and nothing else.")]
ForceOption = Annotated[
    bool, typer.Option("--force", help="Replace files that exist, without a question.")
]
GammaOption = Annotated[float, typer.Option("--gamma", help="Discount a move, from 0 to 1.")]
ThreadsOption = Annotated[
    int | None, typer.Option("--threads", min=1, max=1024, help="As many as cores if not given.")
]

ClusterOption = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="ADDRESS",
        help="Work on a Ray cluster: its address, auto, or local for one on this machine.",
    ),
]

FACTORS = {"": 1, "k": 1000, "m": 1_000_000}


def counted(text: str, what: str = "games") -> int:
    """A number of things such as 5000, 200k or 1.5M."""
    found = re.fullmatch(r"([0-9]+\.?[0-9]*)([kKmM]?)", text.strip())
    value = Decimal(found[1]) * FACTORS[found[2].lower()] if found else Decimal(0)
    if not 1 <= value <= 10**12 or value != int(value):
        raise ValueError(f"a number of {what} is such as 5000, 200k or 1M, not {text[:40]!r}")
    return int(value)
