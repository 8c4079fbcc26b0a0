"""Find the weights of the heuristic `rows` with which expectimax scores most on 4x4.

    python benchmarks/tune_rows.py --player time=3ms --games 12 --minutes 120 --out tuning.jsonl

Weights that are best for a short search are not best for a deep one (docs/methods.md), so the
search they are tuned for is an option. Sets of weights are drawn around the best ones so far (their
logarithms from a normal distribution), and each plays the same games; the mean logarithm of the
score decides, which a few very good games do not dominate. Every set is a line of the file; the
same command resumes.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np

from lab2048.game import Rules
from lab2048.measure.arena import play_games
from lab2048.players import heuristics
from lab2048.players.registry import make_player

NAMES = ("FREE", "MERGE", "UNEVEN", "UNEVEN_POWER", "SUM", "SUM_POWER")
START = np.log([300.0, 700.0, 50.0, 3.8, 12.0, 3.5, 1.5e6])
SPREAD = np.array([0.35, 0.35, 0.4, 0.05, 0.3, 0.05, 0.3])
"""Standard deviations of the logarithms; the last weight is the cost of a dead end."""
BEST = 4
"""New sets are drawn around the mean of this number of the best."""


def scores(weights, player, games, threads):
    """The scores of games with these weights."""
    *shape, dead = np.exp(weights)
    named = {getattr(heuristics, name): float(v) for name, v in zip(NAMES, shape, strict=True)}
    heuristics.HEURISTICS["rows"] = heuristics.rows_heuristic(named, -float(dead))
    entrant = make_player(f"expectimax:{player}", Rules(4, 4))
    return np.array([g.score for g in play_games(entrant, iter(range(games)), 777, threads)], float)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--player", default="time=3ms", help="options of expectimax")
    parser.add_argument("--games", type=int, default=12)
    parser.add_argument("--minutes", type=float, default=120)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("tuning.jsonl"))
    given = parser.parse_args()
    end = time.monotonic() + 60 * given.minutes
    tried = (
        [json.loads(line) for line in given.out.read_text().splitlines()]
        if given.out.exists()
        else []
    )
    while time.monotonic() < end:
        rng = np.random.default_rng(len(tried))
        tried.sort(key=lambda each: -each["log"])
        near = [np.log(each["weights"]) for each in tried[:BEST]]
        centre = np.mean([START, *near], axis=0) if len(tried) < 2 * BEST else np.mean(near, axis=0)
        shrink = 1.0 if len(tried) < 2 * BEST else 0.5
        weights = centre + shrink * SPREAD * rng.standard_normal(len(SPREAD))
        found = scores(weights, given.player, given.games, given.threads)
        tried.append(
            {
                "weights": np.exp(weights).tolist(),
                "mean": found.mean(),
                "log": np.log(found).mean(),
                "error": found.std() / len(found) ** 0.5,
            }
        )
        with given.out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(tried[-1]) + "\n")
        print(json.dumps(tried[-1]), flush=True)


if __name__ == "__main__":
    main()
