"""Sparse sampling comes to expectimax with its samples."""

from __future__ import annotations

import pytest

from lab2048 import Board, Rules
from lab2048.players.registry import make_player
from tests import naive_search
from tests.players.searching import NAIVE, grid_of, positions, same, values_of


def test_sparse_sampling_of_all_spawns_is_expectimax():
    boards = positions(3, 2, 10)
    for gamma, heuristic in ((1.0, "zero"), (0.9, "zero"), (1.0, "alpha")):
        spec = f"sparse:depth=3,samples=0,gamma={gamma},heuristic={heuristic}"
        search = naive_search.Expectimax(NAIVE[heuristic], gamma=gamma)
        for board, values in zip(boards, values_of(spec, Rules(3, 2), boards), strict=True):
            same(values, search.values(grid_of(board), 3))


def test_sparse_sampling_comes_near_expectimax():
    board = Board.parse("2 4 / 8 2 / . .")
    player = make_player("sparse:depth=2,samples=1000", Rules(3, 2))
    wanted = naive_search.Expectimax(None).values(grid_of(board), 2)
    found = player.values(board, word=5)
    for direction, value in wanted.items():
        assert found[direction] == pytest.approx(value, abs=0.5)
