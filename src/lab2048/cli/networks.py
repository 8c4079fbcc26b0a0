"""The commands about trained networks: list, pack."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from lab2048.cli import completion
from lab2048.cli.console import allowed, new_table, output
from lab2048.cli.options import ForceOption, JsonOption, in_python
from lab2048.formatting import size

app = typer.Typer()


@app.command("list", epilog=in_python("lab2048.list_networks()"))
def show_networks(as_json: JsonOption = False) -> None:
    """List the trained networks."""
    from lab2048.learn.trained_networks import list_networks

    found = list_networks()
    if as_json:
        print(found.to_json(), end="")
        return
    console = output()
    if not found:
        console.print("none yet; lab2048 train ntuple --board 3x3 --episodes 20k makes one")
        return
    grid = new_table()
    for heading in ("name", "kind", "board", "network", "trained", "hours", "size"):
        left = heading in ("name", "kind", "network")
        grid.add_column(heading, justify="left" if left else "right")
    for name, facts in found.items():
        if "error" in facts:
            grid.add_row(name, "", "", facts["error"], "", "", size(facts["bytes"]))
            continue
        grid.add_row(
            name, facts["kind"], facts["board"], facts["network"], facts["trained"],
            f"{facts['seconds'] / 3600:.2f}", size(facts["bytes"]),
        )  # fmt: skip
    console.print(grid)


@app.command(epilog=in_python('lab2048.pack_network("mine", "mine.safetensors")'))
def pack(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="The name of a trained network.",
            autocompletion=completion.networks,
        ),
    ],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write it.")],
    step: Annotated[
        float | None,
        typer.Option("--step", help="Round weights to multiples of this; 16 on 4x4 (n-tuples)."),
    ] = None,
    visits: Annotated[
        int | None,
        typer.Option("--visits", min=1, help="Leave out weights visited less often (n-tuples)."),
    ] = None,
    force: ForceOption = False,
) -> None:
    """Write a network to as small a file as possible. It can play, but not be trained further."""
    from lab2048.learn.trained_networks import check_packed_file, pack_network

    force = allowed(partial(check_packed_file, file), force)
    spec = pack_network(name, file, step=step, visits=visits, force=force)
    print(f"wrote {file}: {size(file.stat().st_size)}; it plays as {spec}")
