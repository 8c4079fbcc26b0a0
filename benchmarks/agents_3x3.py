"""How often self-play agents make an optimal move on 3x3, by what is at stake.

Table 3 of Yamashita, Kaneko and Nakayashiki (2022), reproduced: the share of optimal moves by the
number of simulations per move in training and in play, and by d(s), the difference between the best
and the worst move. Networks that exist are not trained again. Needs the table of 3x3
(`lab2048 solve 3x3`):

    python benchmarks/agents_3x3.py [--moves 200k] [--games 100] [--preset small] [--threads 1]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from typing import Any

from lab2048.game.notation import counted
from lab2048.learn.network_files import FILE, network_folder, read_facts

TRAINED, PLAYING = (10, 20, 50, 100), (10, 100, 1000)
SLOW = 1000
"""From this number of simulations on, fewer games are played."""
PAPER = {
    (10, 10): (0.54, 0.47, 0.72, 0.71),
    (10, 100): (0.49, 0.57, 0.62, 0.67),
    (10, 1000): (0.50, 0.65, 0.70, 0.77),
    (20, 10): (0.47, 0.61, 0.73, 0.73),
    (20, 100): (0.49, 0.61, 0.68, 0.77),
    (20, 1000): (0.47, 0.56, 0.59, 0.75),
    (50, 10): (0.53, 0.60, 0.67, 0.79),
    (50, 100): (0.54, 0.64, 0.73, 0.80),
    (50, 1000): (0.52, 0.70, 0.72, 0.83),
    (100, 10): (0.50, 0.62, 0.77, 0.76),
    (100, 100): (0.50, 0.62, 0.76, 0.76),
    (100, 1000): (0.50, 0.62, 0.77, 0.81),
}
"""The paper's shares, by simulations in training and in play."""
HEADINGS = ("(0, 500]", "(500, 1000]", "(1000, 1500]", "above 1500")


def main() -> None:
    """Train what is missing, let every agent play, and print the table beside the paper's."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--moves", default="200k")
    parser.add_argument("--games", type=int, default=100)
    parser.add_argument("--preset", default="small")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    options = parser.parse_args()
    print(f"| trained, playing | mean score (95%) | {' | '.join(HEADINGS)} | regret a move |")
    print("|---" * (len(HEADINGS) + 3) + "|")
    for simulations in TRAINED:
        name = trained(simulations, counted(options.moves, "moves"), options)
        print(row(simulations, 0, found(name, 0, 10 * options.games, options.threads)), flush=True)
        for playing in PLAYING:
            games = options.games if playing < SLOW else options.games // 4
            print(
                row(simulations, playing, found(name, playing, games, options.threads)), flush=True
            )


def lab2048(*arguments: str) -> str:
    """Run a lab2048 command, and return what it prints."""
    command = [sys.executable, "-m", "lab2048", *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def trained(simulations: int, moves: int, options: argparse.Namespace) -> str:
    """The name of a network trained for this number of moves; train it if it is missing."""
    name = f"agent-{options.preset}-{simulations}-{moves}"
    path = network_folder(name) / FILE
    if not path.exists() or read_facts(path)["moves"] < moves:
        begun = ["--board", "3x3", "--preset", options.preset, "--simulations", str(simulations)]
        start = ["--resume"] if path.exists() else begun
        more = ["--moves", str(moves), "--threads", str(options.threads), "--out", name, "--json"]
        lab2048("train", "zero", *start, *more)
    return name


def found(name: str, simulations: int, games: int, threads: int) -> dict[str, Any]:
    """The figures of an agent's games, judged by the table."""
    player = f"zero:{name},simulations={simulations}"
    more = ["--games", str(games), "--threads", str(threads), "--json"]
    results = json.loads(lab2048("evaluate", player, "--board", "3x3", *more))
    figures: dict[str, Any] = results[0]
    return figures


def row(trained: int, playing: int, figures: dict[str, Any]) -> str:
    """An agent as a row of the table, the paper's shares in brackets."""
    theirs = PAPER.get((trained, playing), (None,) * 4)
    score, judged = figures["score"], figures["optimal"]
    shares = [each["agreement"] for each in judged["by_gap"][1:]]
    cells = [
        f"{'-' if share is None else f'{share:.2f}'}{f' ({their:.2f})' if their else ''}"
        for share, their in zip(shares, theirs, strict=True)
    ]
    low, high = score["ci95"]
    mean = f"{score['mean']:,.0f} ({low:,.0f} to {high:,.0f})"
    regret = judged["regret_per_move"]
    return f"| {trained}, {playing} | {mean} | {' | '.join(cells)} | {regret:.1f} |"


if __name__ == "__main__":
    main()
