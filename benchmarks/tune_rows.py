"""Find the weights of the heuristic `rows`: those with which a short search scores most on 4x4.

    python benchmarks/tune_rows.py [--minutes 60] [--depth 2] [--games 200] [--threads 1]

The cross-entropy method: draw sets of weights around the present ones (the logarithms from a normal
distribution), let each play the same games, and move to the mean of the best. Every round has games
of its own, so that nothing is learnt by heart. What is compared is the mean logarithm of the score,
which a few very good games do not decide.
"""

import argparse
import time

import numpy as np

from lab2048.arena import play_games
from lab2048.game import Rules
from lab2048.search import heuristics
from lab2048.search.expectimax import Expectimax

NAMES = ("FREE", "MERGE", "UNEVEN", "UNEVEN_POWER", "SUM", "SUM_POWER", "dead")
START = np.log([300.0, 500.0, 50.0, 4.0, 10.0, 3.5, 2e6])
SPREAD = np.array([0.5, 0.5, 0.5, 0.1, 0.5, 0.1, 0.7])
SAMPLES, BEST = 20, 5


def scores(weights, depth, games, seed, threads):
    """The scores of games with these weights."""
    *shape, dead = np.exp(weights)
    named = {getattr(heuristics, name): value for name, value in zip(NAMES, shape, strict=False)}
    heuristics.HEURISTICS["rows"] = heuristics.rows_heuristic(named, -dead)
    heuristics.evaluator.cache_clear()
    player = Expectimax(Rules(4, 4), depth=depth)
    played = play_games(player, iter(range(games)), seed, threads)
    return np.array([game.score for game in played], float)


def show(text, weights, found):
    """A line about a set of weights."""
    values = ", ".join(f"{n} {v:.5g}" for n, v in zip(NAMES, np.exp(weights), strict=True))
    half = 1.96 * found.std() / len(found) ** 0.5
    print(f"{text}: mean {found.mean():,.0f} +- {half:,.0f} ({values})", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--depth", type=int, default=2)
    parser.add_argument("--games", type=int, default=200)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    rng = np.random.default_rng(1)
    mean, spread = START.copy(), SPREAD.copy()
    end = time.monotonic() + 60 * given.minutes
    turn = 0
    play = (given.depth, given.games)
    show("start", mean, scores(mean, *play, 10**6, given.threads))
    while time.monotonic() < end:
        trials = mean + spread * rng.standard_normal((SAMPLES, len(mean)))
        found = [np.log(scores(w, *play, turn, given.threads)).mean() for w in trials]
        best = trials[np.argsort(found)[-BEST:]]
        mean = 0.3 * mean + 0.7 * best.mean(axis=0)
        spread = 0.4 * spread + 0.6 * np.maximum(best.std(axis=0), 0.02)
        turn += 1
        show(f"round {turn}", mean, scores(mean, *play, 10**6, given.threads))


if __name__ == "__main__":
    main()
