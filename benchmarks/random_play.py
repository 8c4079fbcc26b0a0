"""How much the lanes of `engine.random_games` gain over a plain loop, in one run on one thread.

The plain loop plays one game after the other and computes all four moves every time, with the same
tables, the same words and the same games. Run: python benchmarks/random_play.py
"""

from __future__ import annotations

import statistics
import time

import numpy as np

from lab2048 import Rules, random_games
from lab2048.engine.arrays import Slides, Words
from lab2048.engine.jit import U, kernel
from lab2048.engine.packed import GOLDEN, PLAYER, bounded, game_key, mix
from lab2048.engine.slides import slide, table
from lab2048.engine.spawns import spawn, start_board
from lab2048.game import spawns

GAMES = 100_000
REPEATS = 9


@kernel("int64(uint64, int64, uint64[::1], uint32[::1])")
def plain_loop(seed: U, games: int, four: Words, lines: Slides) -> int:
    """The number of moves of `games` random games on 4x4."""
    total = 0
    after = np.empty(4, np.uint64)
    legal = np.empty(4, np.int64)
    for game in range(games):
        key = game_key(seed, U(game))
        own = mix(key ^ PLAYER)
        board, _ = start_board(key, four, 4, 4)
        key += GOLDEN + GOLDEN
        while True:
            n = 0
            for direction in range(4):
                after[direction] = slide(board, U(direction), lines, lines, 4, 4)
                if after[direction] != board:
                    legal[n] = direction
                    n += 1
            if n == 0:
                break
            own += GOLDEN
            key += GOLDEN
            k, _ = bounded(mix(own), U(n))
            board, _ = spawn(after[legal[k]], mix(key), four, 4, 4)
            total += 1
    return total


def main() -> None:
    """Time both, turn by turn, and print the medians and their ratio."""
    four = np.array(spawns.four_threshold(0.1), np.uint64)
    speeds: dict[str, list[float]] = {"plain loop": [], "lanes": []}
    for repeat in range(REPEATS + 1):
        began = time.perf_counter()
        moves = plain_loop(U(repeat), GAMES, four, table(4))
        middle = time.perf_counter()
        same = int(random_games(Rules(4, 4), GAMES, seed=repeat, threads=1).moves.sum())
        ended = time.perf_counter()
        assert moves == same, "the two do not play the same games"
        if repeat > 0:  # the first round warms up
            speeds["plain loop"].append(moves / (middle - began))
            speeds["lanes"].append(moves / (ended - middle))
    for name, values in speeds.items():
        print(f"{name}: {statistics.median(values) / 1e6:.1f} million moves/s")
    ratios = [b / a for a, b in zip(*speeds.values(), strict=True)]
    print(f"ratio: {statistics.median(ratios):.2f}, from {min(ratios):.2f} to {max(ratios):.2f}")


if __name__ == "__main__":
    main()
