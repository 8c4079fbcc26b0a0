"""What tests of searches share: boards, values, and the slow twin of each heuristic and method."""

from __future__ import annotations

import numpy as np
import pytest

from lab2048 import Rules
from lab2048.game import Game, random_move
from lab2048.players import heuristics
from lab2048.players.heuristics import ROWS, ROWS_DEAD, SHAPE, SHAPE_DEAD, SHAPE_EDGE
from lab2048.players.registry import make_player
from tests import naive_search
from tests.conftest import WITH_JIT

NAIVE = {
    "rows": naive_search.rows(
        {
            "free": ROWS[heuristics.FREE],
            "merge": ROWS[heuristics.MERGE],
            "uneven": ROWS[heuristics.UNEVEN],
            "uneven_power": ROWS[heuristics.UNEVEN_POWER],
            "sum": ROWS[heuristics.SUM],
            "sum_power": ROWS[heuristics.SUM_POWER],
        }
    ),
    "shape": naive_search.shape(
        {
            "free": SHAPE[heuristics.FREE],
            "rough": SHAPE[heuristics.ROUGH],
            "uneven": SHAPE[heuristics.UNEVEN],
            "edge": SHAPE_EDGE,
        }
    ),
    "snake": naive_search.snake,
    "alpha": naive_search.alpha,
    "zero": None,
}


DEAD = {"rows": ROWS_DEAD, "shape": SHAPE_DEAD}


needs_jit = pytest.mark.skipif(not WITH_JIT, reason="takes minutes without the JIT")


def positions(rows, cols, count, seed=1, p4=0.1):
    """Boards out of random games, some of them terminal."""
    out, index = [], 0
    while len(out) < count:
        game = Game(Rules(rows, cols, p4), seed, index=index)
        index += 1
        while not game.over:
            out.append(game.board)
            game.play(random_move(game.board, game.own_word))
        out.append(game.board)
    step = max(1, len(out) // count)
    return out[::step][:count]


def grid_of(board):
    return [list(row) for row in board.tiles]


def packed(boards):
    return np.array([board.packed for board in boards], np.uint64)


def values_of(spec, rules, boards):
    """The values of a player, as it says them one by one."""
    player = make_player(spec, rules)
    found = player.values_many(packed(boards), np.arange(len(boards), dtype=np.uint64))
    return [{d: row[d] for d in range(4) if not np.isnan(row[d])} for row in found.tolist()]


def same(found, wanted):
    """Whether values agree but for the rounding of the tables of lines."""
    assert found.keys() == wanted.keys()
    for direction, value in wanted.items():
        assert found[direction] == pytest.approx(value, rel=1e-6, abs=1e-3)


def chosen(values, ties=False):
    """The first of the best moves; None if that is too close to call.

    Without `ties` it is wherever two are nearly the same: tables of lines are rounded.
    """
    best = max(values.values())
    near = [d for d, v in values.items() if v >= best - 1e-6 * max(1e3, abs(best))]
    tied = [d for d, v in values.items() if v >= best - 1e-11 * max(1, abs(best))]
    return near[0] if len(near) == 1 or (ties and near == tied) else None


SEARCHES = {
    "expectimax": naive_search.Expectimax,
    "minimax": naive_search.Minimax,
    "expectiminimax": naive_search.Expectiminimax,
}
