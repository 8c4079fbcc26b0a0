"""Pure Monte Carlo: the means of random games."""

from __future__ import annotations

import pytest

from lab2048 import Board, Rules
from lab2048.players.registry import make_player
from tests import naive
from tests.players.searching import grid_of, needs_jit


@pytest.mark.slow
@needs_jit
def test_rollouts_have_the_mean_of_random_games():
    """From one board, the mean over many games is the value of random play there."""
    board = Board.parse("2 4 / 4 2 / 8 .")
    known = {}

    def value(grid):
        key = naive.frozen(grid)
        if key not in known:
            moves = naive.legal_moves(grid)
            known[key] = sum(after_move(grid, d) for d in moves) / len(moves) if moves else 0.0
        return known[key]

    def after_move(grid, direction):
        after, reward = naive.move(grid, direction)
        return reward + sum(float(p) * value(s) for p, s in naive.spawns(after, 0.1))

    player = make_player("montecarlo:rollouts=20000", Rules(3, 2))
    for direction, found in player.values(board, word=3).items():
        assert found == pytest.approx(after_move(grid_of(board), direction), rel=0.03)
