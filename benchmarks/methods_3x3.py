"""Which update rule comes how close to perfect play on 3x3, and how fast.

Trains five networks by each method and measures each exactly on the way; what was done before is
not done again. Needs the table of 3x3 (`lab2048 solve 3x3`). An hour or two on two cores:

    python benchmarks/methods_3x3.py docs/learning-3x3.svg [--episodes 200k] [--runs 5]
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

from lab2048.cli_train import counted
from lab2048.learn.curves import curve, plot_curves
from lab2048.learn.runs import read_log
from lab2048.learn.weights import FILE, network_folder, read_facts
from lab2048.solve.table import open_table

METHODS = {
    "TD, forward": ["--method", "td", "--order", "forward"],
    "TD, backward": ["--method", "td"],
    "TC, forward": ["--method", "tc", "--order", "forward"],
    "TC, backward": ["--method", "tc"],
    "optimistic TD": ["--method", "otd"],
    "optimistic TD, then TC": ["--method", "otd+tc"],
    "optimistic TC": ["--method", "otc"],
    "TD on states": ["--method", "state"],
    "Q-learning": ["--method", "q", "--epsilon", "0.01"],
}


def main() -> None:
    """Train what is missing, draw the curves, and print the last point of each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("plot", type=Path)
    parser.add_argument("--episodes", default="200k")
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    goal = counted(options.episodes)
    logs = {}
    for name, how in METHODS.items():
        slug = re.sub("[^a-z]+", "-", name.lower())
        names = [f"study-{slug}-{goal}-{run}" for run in range(1, options.runs + 1)]
        for run, each in enumerate(names, start=1):
            train(each, goal, [*how, "--seed", str(run)])
        logs[name] = [read_log(network_folder(each), goal) for each in names]
    with open_table("3x3") as table:
        perfect = table.start_value["start"]
    plot_curves(logs, options.plot, perfect)
    print("| method | games | exact mean | +/- | of perfect | values off by |")
    print("|---|---|---|---|---|---|")
    for name, runs in logs.items():
        last = curve(runs)[-1]
        error = sum(run[-1]["exact"]["error"] for run in runs) / len(runs)
        share = last.mean / perfect
        figures = f"{last.mean:,.1f} | {last.half:,.1f} | {share:.1%} | {error:,.0f}"
        print(f"| {name} | {last.games:,} | {figures} |")


def train(name: str, goal: int, how: list[str]) -> None:
    """Train a network up to so many games, unless that was done."""
    path = network_folder(name) / FILE
    again = path.exists()
    if again and read_facts(path)["games"] >= goal:
        return
    start = ["--resume"] if again else ["--board", "3x3", *how]
    common = ["--out", name, "--episodes", str(goal), "--block", "log", "--against", "3x3"]
    command = [sys.executable, "-m", "lab2048", "train", "ntuple", *start, *common]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
