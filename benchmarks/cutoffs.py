"""What a cut-off costs `expectimax` and what it saves, by depth.

    python benchmarks/cutoffs.py --boards 200

The boards are from games of `expectimax:depth=3` on 4x4 (seed 1). The loss of a choice is judged by
a search of depth 8 with a cut-off of 0.0002, in points of the heuristic, averaged over the boards.
"""

import argparse
import time

import numpy as np

from lab2048.game import Rules
from lab2048.measure.arena import play_games, retrace
from lab2048.measure.intervals import student_half_width
from lab2048.players.registry import make_player

RULES = Rules(4, 4)
TRIED = [(5, 0.0), (5, 0.003), *((depth, c) for depth in (6, 7) for c in (0.005, 0.003, 0.001))]


def some_boards(count):
    """Boards drawn uniformly from the last three quarters of some games."""
    rng = np.random.default_rng(1)
    found = []
    games = play_games(make_player("expectimax:depth=3", RULES), iter(range(5)), 1)
    for game in sorted(games, key=lambda game: game.index):  # they end in any order
        boards = retrace(RULES, 1, game).boards
        found.append(boards[rng.integers(len(boards) // 4, len(boards) - 1, count // 5)])
    return np.concatenate(found)


def values(boards, depth, cutoff):
    """The values of all moves, and milliseconds per board."""
    player = make_player(f"expectimax:depth={depth},cutoff={cutoff}", RULES)
    began = time.thread_time()
    found = player.values_many(boards, np.zeros_like(boards))
    return found, 1000 * (time.thread_time() - began) / len(boards)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--boards", type=int, default=200)
    boards = some_boards(parser.parse_args().boards)
    truth, _ = values(boards, 8, 0.0002)
    for depth, cutoff in TRIED:
        found, took = values(boards, depth, cutoff)
        chosen = truth[np.arange(len(boards)), np.nanargmax(found, axis=1)]
        lost = np.nanmax(truth, axis=1) - chosen
        print(
            f"depth {depth}, cutoff {cutoff:<6g} {took:6.1f} ms, loses {lost.mean():6.1f} "
            f"+/- {student_half_width(lost):5.1f}, same choice {np.mean(lost == 0):.0%}"
        )


if __name__ == "__main__":
    main()
