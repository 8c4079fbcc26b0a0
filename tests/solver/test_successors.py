"""The moves of states: all canonical afterstates, as the naive game has them."""

from __future__ import annotations

import numpy as np
import pytest

from lab2048.engine.jit import U
from lab2048.engine.slides import pairs
from lab2048.game import Board
from lab2048.solver.enumeration import Mover
from lab2048.solver.problem import Problem
from lab2048.solver.successors import WIN, moves_kernel
from tests import naive
from tests.conftest import WITH_JIT
from tests.solver.solving import canonical

SHAPES = [(2, 2)] if WITH_JIT else [(2, 2), (3, 2), (3, 3)]


LARGER = [
    pytest.param(*shape, marks=pytest.mark.slow)
    for shape in ((3, 2), (3, 3), (5, 2), (2, 6), (4, 3))
    if WITH_JIT
]


def as_grid(board):
    return [list(row) for row in board.tiles]


def random_boards(rows, cols, count):
    """Boards that have many small tiles, some empty cells, and sometimes large tiles."""
    rng = np.random.default_rng(rows * 10 + cols)
    largest = rng.choice([2, 3, 5, 10], (count, 1))
    ranks = rng.integers(0, 12, (count, rows * cols)) % (largest + 1)
    return [Board(tuple(map(int, row)), rows, cols) for row in ranks if row.any()]


@pytest.mark.parametrize(("rows", "cols"), SHAPES + LARGER)
def test_moves_lead_to_all_canonical_afterstates(rows, cols):
    boards = random_boards(rows, cols, 700 if WITH_JIT else 40)
    keys = np.array([board.packed for board in boards], np.uint64)
    edges, sources = np.empty(4 * len(keys) + 1, np.uint64), np.empty(4 * len(keys) + 1, np.uint32)
    found = moves_kernel(rows, cols)(keys, U(15), pairs(cols), pairs(rows), edges, sources)
    made = [[] for _ in boards]
    for edge, source in zip(edges[:found].tolist(), sources[:found].tolist(), strict=True):
        made[source].append(edge)
    for board, afters in zip(boards, made, strict=True):
        grid = as_grid(board)
        wanted = [canonical(naive.move(grid, d)[0]) for d in naive.legal_moves(grid)]
        assert sorted(afters) == sorted(wanted), board


def test_a_move_that_makes_the_tile_is_a_win():
    keys = np.array([Board.parse("8 8 / 2 4").packed], np.uint64)
    edges, sources = Mover(Problem.of("2x2", objective="reach:16"))(keys)
    assert edges.tolist() == [int(WIN)] * 2 and sources.tolist() == [0, 0]


def test_a_reward_is_what_a_move_adds_to_the_sum_of_tiles_times_rank_less_one():
    """The values rest on it: no reward is ever looked up."""
    for board in random_boards(3, 3, 300):
        for direction in board.legal_moves:
            _, reward, after = board.move(direction)
            assert after.merged - board.merged == reward
