"""Minimax: alpha-beta, and fewer cells for the opponent."""

from __future__ import annotations

import numpy as np
import pytest

from lab2048 import Rules
from lab2048.players.registry import make_player
from lab2048.players.ties import pick
from tests import naive_search
from tests.players.searching import SEARCHES, grid_of, packed, positions, same, values_of


@pytest.mark.parametrize("name", SEARCHES)
def test_fewer_cells(name):
    """Zhou's pruning: only the first cells along the snake."""
    boards = positions(3, 2, 8)
    for cells in (1, 2):
        search = SEARCHES[name](naive_search.alpha, cells=cells)
        found = values_of(f"{name}:depth=3,heuristic=alpha,cells={cells}", Rules(3, 2), boards)
        for board, values in zip(boards, found, strict=True):
            same(values, search.values(grid_of(board), 3))


def test_alpha_beta_makes_the_same_move_as_plain_minimax():
    for heuristic in ("zero", "alpha", "rows"):
        player = make_player(f"minimax:depth=3,heuristic={heuristic}", Rules(3, 2))
        boards = packed(positions(3, 2, 40))
        words = np.zeros_like(boards)
        plain = pick(player.values_many(boards, words), words, False, player.tie)
        assert player.choose_many(boards, words).tolist() == plain.tolist()
