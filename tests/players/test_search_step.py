"""Every search method against its slow recursion."""

from __future__ import annotations

import pytest

from lab2048 import Rules
from lab2048.players.registry import make_player
from tests.players.searching import (
    DEAD,
    NAIVE,
    SEARCHES,
    chosen,
    grid_of,
    needs_jit,
    positions,
    same,
    values_of,
)

BOARDS = [
    (3, 2),
    pytest.param(2, 2, marks=pytest.mark.slow),
    pytest.param(3, 3, marks=[pytest.mark.slow, needs_jit]),
]


@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.parametrize("heuristic", ["zero", "rows", "snake"])
@pytest.mark.parametrize(("rows", "cols"), BOARDS)
def test_a_search_is_its_recursion(name, heuristic, rows, cols):
    depth = 3 if rows * cols < 9 else 2
    boards = positions(rows, cols, 8 if rows * cols < 9 else 3)
    search = SEARCHES[name](NAIVE[heuristic], DEAD.get(heuristic, 0.0))
    for d in range(1, depth + 1):
        spec = f"{name}:depth={d},heuristic={heuristic}"
        player = make_player(spec, Rules(rows, cols))
        for board, values in zip(boards, values_of(spec, Rules(rows, cols), boards), strict=True):
            wanted = search.values(grid_of(board), d)
            same(values, wanted)
            move = chosen(wanted, ties=heuristic == "zero") if wanted else None
            if move is not None:
                assert player.choose(board) == move
