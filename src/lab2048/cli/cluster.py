"""The command `cluster check`, and estimates of what a solve needs, here or on a cluster."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lab2048.cli.console import new_table, output, show_facts
from lab2048.cli.options import JsonOption, command_group, in_python
from lab2048.formatting import duration, size

if TYPE_CHECKING:
    from lab2048.cluster.workers import Node, Team
    from lab2048.solver.estimate import ClusterEstimate
    from lab2048.solver.problem import Problem

app = command_group("Work on a Ray cluster; docs/cluster.md explains how to start one.")

SharedOption = Annotated[
    Path | None,
    typer.Option("--shared", metavar="DIR", help="A folder that all machines see at this path."),
]
TRIAL_SECONDS = 8.0
"""Length of the trial run that an estimate is based on."""


@app.command(epilog=in_python('lab2048.check_cluster("local")'))
def check(
    address: Annotated[
        str, typer.Argument(help="Its address, such as 10.0.0.1:6379; auto; or local.")
    ],
    shared: SharedOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print what a cluster has, and whether it is ready for a long job."""
    from lab2048.cluster.connection import check_cluster
    from lab2048.cluster.workers import ClusterError

    found = check_cluster(address, shared)
    if as_json:
        print(found.to_json(), end="")
    else:
        _show(found, shared)
    if found.wrong:
        raise ClusterError(found.wrong)
    if not as_json:
        print("All machines can do the same work.")


def _show(nodes: Sequence[Node], shared: Path | None) -> None:
    """Print a table of the machines."""
    grid = new_table("machine")
    grid.add_column("address", no_wrap=True)
    for name in ("cores", "memory"):
        grid.add_column(name, justify="right", no_wrap=True)
    for name in ("lab2048", "source", "python"):
        grid.add_column(name, no_wrap=True)
    if shared is not None:
        grid.add_column("folder")
    for node in nodes:
        seen = [node.shared or "there"] if shared is not None else []
        numbers = str(node.cores), size(node.memory)
        versions = node.version, node.source[:8], node.python
        grid.add_row(node.host, node.address, *numbers, *versions, *seen)
    output().print(grid)
    cores, memory = sum(node.cores for node in nodes), sum(node.memory for node in nodes)
    plural = "s" * (len(nodes) > 1)
    print(f"{len(nodes)} machine{plural}, {cores} cores, {size(memory)} of memory for workers")


# -- estimates -----------------------------------------------------------------------------------


def on_team(
    team: Team | None, problem: Problem, values: str, keep: str, rate: float, threads: int
) -> tuple[ClusterEstimate, int] | None:
    """Estimate a solve on a team, and count its cores; None if no layer is distributed.

    `rate` is that of `threads` threads on this machine.
    """
    from lab2048.solver.estimate import cluster_estimate
    from lab2048.solver.table_size import sizes_of

    if team is None:
        return None
    from lab2048.cluster.executor import LARGE

    if sizes_of(problem)[-1] <= LARGE:
        return None
    cores, machines = team.workers, team.machines
    found = cluster_estimate(problem, values, keep, cores, machines, rate, threads)
    return found, cores


def show_estimate(
    problem: Problem, values: str, keep: str, cores: int | None, machines: int | None, as_json: bool
) -> None:
    """Print an estimate of a solve, on this machine or on a cluster with `cores` cores."""
    from lab2048.solver.estimate import estimate

    if cores is None and machines is not None:
        raise ValueError("--machines needs --cores, the number of cores of all machines")
    print("measuring the speed of this machine for a few seconds", file=sys.stderr)
    found = (
        estimate(problem, values, keep=keep, trial=TRIAL_SECONDS)
        if cores is None
        else estimate(
            problem, values, keep=keep, cores=cores, machines=machines, trial=TRIAL_SECONDS
        )
    )
    facts = found.as_json()
    if as_json:
        print(json.dumps({"board": problem.rules.name, "objective": problem.goal, **facts}))
        return
    measured = facts["measured"]
    states = f"{measured['states']:,} states that were solved here just now"
    show_facts(f"{problem.name}, an estimate from {states}", _rows(facts, measured["threads"]))


def _rows(facts: dict[str, Any], threads: int) -> list[tuple[str, str]]:
    """The rows of an estimate, as text."""
    rates = facts["measured"]
    speed = f"{rates['enumerate'] / 1e6:.1f} M states/s for the states, "
    speed += f"{rates['values'] / 1e6:.1f} for the values, with {threads} threads"
    rows = [("measured", speed)]
    if "machines" not in facts:
        return [
            *rows,
            ("states", f"{facts['states']:,}"),
            ("time", f"{duration(facts['seconds'])} with {threads} threads"),
            ("memory", size(facts["memory"])),
            ("disk", size(facts["disk"])),
        ]
    machines = f"{facts['machines']} machine{'s' * (facts['machines'] > 1)}"
    wait = duration(facts["machines"] * (facts["read"] + facts["written"]) / 1e10)
    return [
        *rows,
        ("states", f"{facts['states']:,} of {facts['ages']:,} ages, {facts['largest']:,} at most"),
        ("time", f"{duration(facts['seconds'])} on {facts['cores']} cores like these, {machines}"),
        ("memory", f"{size(facts['memory'])} a machine"),
        ("disk", f"{size(facts['disk'])} in the shared folder, at most"),
        (
            "network",
            f"{size(facts['read'])} read and {size(facts['written'])} written by each machine",
        ),
        (
            "",
            f"{size(facts['bandwidth'])}/s in all, so that no worker waits; at 10 GB/s it takes "
            f"{wait}",
        ),
    ]
