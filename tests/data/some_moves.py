"""Moves to try things on."""

from __future__ import annotations

import numpy as np

from lab2048.data import moves as data
from lab2048.data.move_rows import Moves
from lab2048.game import Rules
from lab2048.players.registry import make_player

FOUR = Rules(4, 4)


SMALL = Rules(3, 2)


def some_moves(rules=FOUR, size=1000, spec="greedy", seed=3):
    parts = list(data.make_moves(make_player(spec, rules), size, seed))
    return Moves(*(np.concatenate(each) for each in zip(*parts, strict=True)))
