"""The commands about networks that were trained."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lab2048 import cli_complete
from lab2048.options import ForceOption, JsonOption
from lab2048.wording import size

if TYPE_CHECKING:
    from lab2048.learn.files import Facts

app = typer.Typer()

LEVELS, VISITS = 20_000, 3
"""How finely a packed n-tuple network rounds what boards are worth, and how often a weight was
visited at least: on 4x4 and 3x3 that costs nothing (docs/results.md)."""
ABOUT: dict[str, tuple[str, Callable[[Facts], str], Callable[[Facts], str]]] = {
    "ntuple": (
        "games",
        lambda facts: f"{facts['method']}: {' '.join(facts['tuples'])}",
        lambda facts: f"{facts['games']:,} games",
    ),
    "supervised": (
        "epoch",
        lambda facts: facts["network"] + f" of {facts['channels']}" * bool(facts["channels"]),
        lambda facts: f"{facts['epoch']:,} of {facts['epochs']:,} epochs",
    ),
    "zero": (
        "moves",
        lambda facts: f"{facts['preset']}, {facts['simulations']} simulations",
        lambda facts: f"{facts['moves']:,} moves",
    ),
}
"""Of each kind: what tells how long it was trained, what the network is, and how long that was."""


@app.command("list")
def list_networks(as_json: JsonOption = False) -> None:
    """List the networks that were trained."""
    from rich import box
    from rich.console import Console
    from rich.table import Table as Grid

    from lab2048.learn.files import FILE, networks_folder

    paths = sorted(networks_folder().glob(f"*/{FILE}"))
    found = {path.parent.name: about(path) for path in paths}
    if as_json:
        print(json.dumps(found))
        return
    console = Console(highlight=False)
    if not found:
        console.print("none yet; lab2048 train ntuple --board 3x3 --episodes 20k makes one")
        return
    grid = Grid(box=box.SIMPLE)
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


def about(path: Path) -> dict[str, Any]:
    """What is told about a network, or what is wrong with it."""
    from lab2048.learn.files import read_facts

    weight = {"bytes": path.stat().st_size}
    try:
        facts = read_facts(path)
        key, network, trained = ABOUT[facts["kind"]]
        told = {name: facts[name] for name in ("kind", "board", "seconds", key)}
        return {**told, "network": network(facts), "trained": trained(facts), **weight}
    except (ValueError, OSError) as error:
        return {"error": str(error), **weight}
    except (KeyError, TypeError) as error:
        return {"error": f"{path} is damaged: {type(error).__name__} {error}", **weight}


@app.command()
def pack(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="A network that was trained.",
            autocompletion=cli_complete.networks,
        ),
    ],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write it.")],
    step: Annotated[
        float | None,
        typer.Option("--step", help="Round weights to multiples of it; 16 on 4x4 (n-tuples)."),
    ] = None,
    visits: Annotated[
        int | None,
        typer.Option("--visits", min=1, help="Leave out what was visited less often (n-tuples)."),
    ] = None,
    force: ForceOption = False,
) -> None:
    """Write a network to a file that is as small as it gets. It plays, but does not learn."""
    from lab2048.home import check_target
    from lab2048.learn.files import FILE, network_folder, networks_folder, read_facts

    if file.suffix != ".safetensors":
        raise ValueError(f"the name of the file ends in .safetensors, not {file.name[:40]!r}")
    if step is not None and not 0 < step < 1e6:
        raise ValueError(f"--step is a number above 0, not {step:g}")
    if file.resolve().is_relative_to(networks_folder().resolve()):
        raise ValueError(f"{file} is among the networks that learn, and what is packed does not")
    check_target(file, force=force)
    path = network_folder(name) / FILE
    if not path.exists():
        raise ValueError(f"there is no network {name}; lab2048 train list shows what there is")
    kind = read_facts(path)["kind"]
    if kind == "ntuple":
        pack_tuples(path, file, step, visits)
    elif step is not None or visits is not None:
        raise ValueError("--step and --visits are for n-tuple networks")
    else:
        pack_neural(path, file, kind)
    print(f"wrote {file}: {size(file.stat().st_size)}; it plays as {kind}:{file}")


def pack_tuples(path: Path, file: Path, step: float | None, visits: int | None) -> None:
    """Round the weights of an n-tuple network."""
    from lab2048.learn.training import usual_initial
    from lab2048.learn.weights import read_weights, write_packed

    stored = read_weights(path, learning=True)
    usual = VISITS if stored.facts["method"] == "tc" and stored.stride > 1 else 1
    write_packed(file, stored, step or usual_initial(stored.rules) / LEVELS, visits or usual)


def pack_neural(path: Path, file: Path, kind: str) -> None:
    """Leave out what only training needs, and where on the disk its data was."""
    from lab2048.learn.files import TRAINING, read_tensors, write_tensors

    facts, tensors = read_tensors(path, kind, {}, leave=TRAINING)
    if "data" in facts:
        facts["data"] = [Path(each).name for each in facts["data"]]
    write_tensors(file, kind, {**facts, "packed": True}, tensors)
