"""How close each update rule comes to perfect play on 3x3, and how fast.

Trains five networks by each method, forward and backward, and measures each exactly on the way;
runs that exist are not repeated. Needs the table of 3x3 (`lab2048 solve 3x3`). About two hours on
two cores; writes docs/learning-3x3-forward.svg and docs/learning-3x3-backward.svg:

    python benchmarks/methods_3x3.py docs/learning-3x3.svg [--episodes 200k] [--runs 5]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from lab2048.game.notation import counted
from lab2048.learn.checkpoint import Record, read_log
from lab2048.learn.curve import curve
from lab2048.learn.network_files import FILE, network_folder, read_facts
from lab2048.report.curves import plot_curves
from lab2048.solver.tables import open_table

METHODS = {
    "forward": {
        "TD": ["--method", "td"],
        "TC": ["--method", "tc"],
        "optimistic TD, then TC": ["--method", "otd+tc"],
        "optimistic TC": ["--method", "otc"],
        "Q-learning": ["--method", "q", "--epsilon", "0.01"],
    },
    "backward": {
        "TD": ["--method", "td"],
        "TC": ["--method", "tc"],
        "optimistic TD, then TC": ["--method", "otd+tc"],
        "optimistic TC": ["--method", "otc"],
        "optimistic TD": ["--method", "otd"],
        "TD on states": ["--method", "state"],
    },
}


def main() -> None:
    """Train what is missing, draw the curves, and print where each ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("plot", type=Path)
    parser.add_argument("--episodes", default="200k")
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    goal = counted(options.episodes)
    with open_table("3x3") as table:
        perfect = table.start_value["start"]
    print("| method | exact mean | +/- | of perfect | values off by |")
    print("|---|---|---|---|---|")
    assert perfect is not None
    for order, methods in METHODS.items():
        logs = {
            name: [trained(how, order, goal, seed) for seed in range(1, options.runs + 1)]
            for name, how in methods.items()
        }
        plot = options.plot.with_stem(f"{options.plot.stem}-{order}")
        plot_curves(logs, plot, perfect)
        for name, runs in logs.items():
            print(row(f"{name}, {order}", runs, perfect))


def row(name: str, runs: list[list[Record]], perfect: float) -> str:
    """The final figures of several runs as a row of a table."""
    last = curve(runs)[-1]
    error = sum(run[-1]["exact"]["error"] for run in runs) / len(runs)
    share = last.mean / perfect
    return f"| {name} | {last.mean:,.0f} | {last.half:,.0f} | {share:.1%} | {error:,.0f} |"


def trained(how: list[str], order: str, goal: int, seed: int) -> list[Record]:
    """The log of a training run of `goal` games; run it if it is missing."""
    name = f"study-{how[1]}-{order}-{goal}-{seed}"
    path = network_folder(name) / FILE
    if not path.exists() or read_facts(path)["games"] < goal:
        start = ["--resume"] if path.exists() else ["--board", "3x3", *how, "--order", order]
        common = ["--out", name, "--seed", str(seed), "--episodes", str(goal), "--block", "log"]
        command = [sys.executable, "-m", "lab2048", "train", "ntuple", *start, *common]
        subprocess.run([*command, "--against", "3x3"], check=True, stdout=subprocess.DEVNULL)
    return read_log(network_folder(name), goal)


if __name__ == "__main__":
    main()
