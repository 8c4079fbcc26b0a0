"""The commands `table`: list, describe, verify and remove solved tables."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from lab2048.cli import completion
from lab2048.cli.console import counting_bar
from lab2048.cli.options import JsonOption, command_group, in_python
from lab2048.cli.solve import print_solved
from lab2048.formatting import number, size

app = command_group("List, describe, verify and remove solved tables.")

NameArgument = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="A name from `table list`, or a folder.",
        autocompletion=completion.tables,
    ),
]


@app.command("list", epilog=in_python("lab2048.list_tables()"))
def list_(as_json: JsonOption = False) -> None:
    """List the tables in the data folder: their problems, values and sizes."""
    from lab2048.solver.manifest import description
    from lab2048.solver.objective import discount_text
    from lab2048.solver.table_files import tables_folder
    from lab2048.solver.tables import list_tables

    found = list_tables()
    if as_json:
        print(found.to_json(), end="")
        return
    if not found:
        print(f"There is no table in {tables_folder()} yet; make one with: lab2048 solve 3x3")
        return
    lines = [("table", "board", "p4", "objective", "states", "value 2+2", "size")]
    for folder, manifest in found:
        if isinstance(manifest, str):
            lines.append((folder.name, "", "", manifest, "", "", ""))
            continue
        row = description(folder, manifest)
        lines.append(
            (
                folder.name,
                row["board"],
                f"{row['p4']:g}",
                " ".join([row["objective"], *discount_text(row["gamma"])]),
                f"{row['states']:,}",
                number(row["value"]["2+2"]),
                size(row["table_bytes"]) if row["keep"] == "table" else "summary",
            )
        )
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        left = [text.ljust(width) for text, width in zip(line[:4], widths, strict=False)]
        right = [text.rjust(width) for text, width in zip(line[4:], widths[4:], strict=True)]
        print("  ".join(left + right).rstrip())


@app.command(epilog=in_python('lab2048.open_table("3x3").facts'))
def info(name: NameArgument, as_json: JsonOption = False) -> None:
    """Print all facts about a table."""
    from lab2048.solver.manifest import description, read_manifest
    from lab2048.solver.tables import table_folder

    folder = table_folder(name)
    manifest = read_manifest(folder)
    found = description(folder, manifest)
    if as_json:
        print(json.dumps(found))
    else:
        print_solved(found)


@app.command(epilog=in_python('lab2048.verify(lab2048.open_table("3x3"))'))
def verify(
    name: NameArgument,
    full: Annotated[
        bool, typer.Option("--full", help="Compare all states with their moves, not just a sample.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Check all files of a table, the order of its keys, and the consistency of its values."""
    from lab2048.solver.table import Table
    from lab2048.solver.tables import table_folder

    folder = table_folder(name)
    from lab2048.solver.verify import verify  # compiles kernels

    with Table(folder) as table, counting_bar("verifying", table.states) as progress:
        found = verify(table, full=full, progress=progress)
    if as_json:
        print(json.dumps({"table": str(table.path), **found}))
        return
    print(
        f"{table.path} is sound: {found['states']:,} states, {found['compared']:,} of them "
        f"compared with their moves, largest difference {found['largest_residual']:.1e}"
    )


@app.command(epilog=in_python('lab2048.remove_table("3x3")'))
def remove(
    name: NameArgument,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Remove a table."""
    from lab2048.solver.tables import remove_table, table_folder

    folder = table_folder(name)
    if not yes and not typer.confirm(f"Remove {folder}?"):
        print("kept")
        return
    print(f"removed {folder}, {size(remove_table(folder))}")
