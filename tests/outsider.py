"""What somebody else adds to lab2048, with nothing but public names: twenty lines each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import lab2048 as lab

# -- a player ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Downhill(lab.Player):
    """It likes the direction it was told, then the others clockwise."""

    first: int = lab.option(2, "the direction it likes best", low=0, high=3)

    name = "downhill"
    about = "one direction as long as it is legal, then the others clockwise"
    meaning = "4 for the direction it likes best, down to 1"

    def values_many(self, boards, words):
        liked = 4.0 - (np.arange(4) - self.first) % 4
        return np.where(lab.legal_moves(boards, self.rules), liked, np.nan)


# -- an objective ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Length(lab.Objective):
    """The expected number of moves until the game ends."""

    name, unit = "length", "moves"
    points, per_move = 0.0, 1.0


# -- a heuristic -------------------------------------------------------------------------------


def last_corner(board, rows, cols):
    """A hundred points for each rank of the tile in the last corner."""
    return 100.0 * lab.rank_at(board, rows * cols - 1)
