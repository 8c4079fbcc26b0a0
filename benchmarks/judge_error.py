"""The error of a judge: the losses of moves by a network, against those by a better judge.

Positions are sampled from games of weak and strong players. Every legal move is valued by the
package's n-tuple network at several depths, and by perfect play where the board is solved, or else
by a much deeper search. Errors are shares of the value that the judge gives the position. The
bounds in `lab2048.measure.marks` are the 95% column, rounded up. 4x4 takes about ten minutes on two
cores:

    python benchmarks/judge_error.py 4x4 [--positions 1000] [--deep 6] [--seed 1]
    python benchmarks/judge_error.py 3x3 --positions 2000     after lab2048 solve 3x3
"""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray

from lab2048.game import Rules
from lab2048.measure.arena import play_games, retrace
from lab2048.measure.marks import STEPS
from lab2048.players.registry import make_player
from lab2048.solver.problem import MAX_CELLS, Problem
from lab2048.solver.tables import find_table

PLAYERS = ("corner", "expectimax:depth=2", "ntuple", "ntuple:depth=2")
GAMES = 40
"""Number of games of each player from which positions are sampled."""
DEPTHS = (1, 2, 3, 4)
QUANTILES = (0.5, 0.9, 0.95, 0.99)
Floats = NDArray[np.float64]


def main() -> None:
    """Print the errors of each depth."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("board")
    parser.add_argument("--positions", type=int, default=1000)
    parser.add_argument("--deep", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rules = Rules.parse(options.board)
    solved = rules.cells <= MAX_CELLS and find_table(Problem.of(rules)) is not None
    better = "optimal" if solved else f"ntuple:depth={options.deep}"
    boards = positions(rules, options.positions, options.seed)
    print(f"{len(boards):,} positions of {', '.join(PLAYERS)} on {rules.name}; against {better}")
    print("| depth | moves | 50% | 90% | 95% | 99% | no loss, of those beyond 95% |")
    print("|---|---|---|---|---|---|---|")
    truth, values = losses(better, rules, boards)
    shares = truth / values
    for depth in DEPTHS:
        lost, values = losses(f"ntuple:depth={depth}", rules, boards)
        compared = (lost > 0) | (truth > 0)  # neither holds for an illegal move
        off = (np.abs(lost - truth) / values)[compared]
        bounds = np.quantile(off, QUANTILES)
        beyond = lost / values > bounds[QUANTILES.index(0.95)]
        wrong = float(np.mean(shares[beyond] < STEPS[0]))
        shown = " | ".join(f"{bound:.1%}" for bound in bounds)
        print(f"| {depth} | {len(off):,} | {shown} | {wrong:.1%} |", flush=True)


def positions(rules: Rules, count: int, seed: int) -> NDArray[np.uint64]:
    """Boards sampled from games, equally many of each player."""
    rng = np.random.default_rng(seed)
    found = []
    for spec in PLAYERS:
        games = play_games(make_player(spec, rules), iter(range(GAMES)), seed)
        ordered = sorted(games, key=lambda game: game.index)
        boards = [retrace(rules, seed, game).boards[:-1] for game in ordered]
        found.append(rng.choice(np.concatenate(boards), count // len(PLAYERS), replace=False))
    return np.concatenate(found)


def losses(spec: str, rules: Rules, boards: NDArray[np.uint64]) -> tuple[Floats, Floats]:
    """The loss of each move by the values of a player, and the value of the best, at least 1."""
    found = make_player(spec, rules).values_many(boards, np.zeros_like(boards))
    best = np.nanmax(found, axis=1, keepdims=True)
    return best - found, np.maximum(best, 1.0)


if __name__ == "__main__":
    main()
