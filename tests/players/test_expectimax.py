"""Expectimax: pruning, dead ends, and perfect play at full depth."""

from __future__ import annotations

import numpy as np
import pytest

from lab2048 import Board, Rules, player
from lab2048.players.registry import make_player
from tests import naive, naive_search
from tests.players.searching import (
    DEAD,
    NAIVE,
    SEARCHES,
    grid_of,
    needs_jit,
    positions,
    same,
    values_of,
)


@pytest.mark.parametrize("p4", [0.0, 1.0, 0.5])
@pytest.mark.parametrize("name", SEARCHES)
def test_other_chances_of_a_four(name, p4):
    boards = positions(3, 2, 6, p4=p4)
    search = SEARCHES[name](None, p4=p4)
    found = values_of(f"{name}:depth=3,heuristic=zero", Rules(3, 2, p4), boards)
    for board, values in zip(boards, found, strict=True):
        same(values, search.values(grid_of(board), 3))


@pytest.mark.parametrize("cutoff", [0.03, 0.1, 0.2, 0.5])
def test_what_is_unlikely_is_not_looked_into(cutoff):
    boards = positions(3, 2, 30)
    search = naive_search.CutOff(NAIVE["rows"], DEAD["rows"], cutoff)
    spec = "expectimax:depth=3,heuristic=rows"
    exact = values_of(spec, Rules(3, 2), boards)
    found = values_of(f"{spec},cutoff={cutoff}", Rules(3, 2), boards)
    for board, values in zip(boards, found, strict=True):
        same(values, search.values(grid_of(board), 3))
    assert found != exact


@pytest.mark.slow
def test_a_dead_end_may_be_avoided_at_any_price():
    """A move after which some spawn ends the game is worth minus infinity; of such, the first."""
    boards = positions(2, 2, 60)
    rules = Rules(2, 2)
    plain = values_of("sparse:depth=2,samples=0", rules, boards)
    avoid = values_of("sparse:depth=2,samples=0,terminal=avoid", rules, boards)
    assert any(-np.inf in values.values() for values in avoid)
    for board, mild, strict in zip(boards, plain, avoid, strict=True):
        for direction in mild:
            after = naive.move(grid_of(board), direction)[0]
            dead = any(not naive.legal_moves(s) for _, s in naive.spawns(after, 0.1))
            assert strict[direction] == (-np.inf if dead else mild[direction])
        if board.legal_moves and set(strict.values()) == {-np.inf}:
            player = make_player("sparse:depth=2,samples=0,terminal=avoid", rules)
            assert player.choose(board) == board.legal_moves[0]


def test_avoiding_dead_ends_without_a_future():
    boards = positions(3, 2, 60)
    found = values_of("sparse:depth=2,samples=0,gamma=0,terminal=avoid", Rules(3, 2), boards)
    for board, values in zip(boards, found, strict=True):
        assert values == {d: board.move(d).reward for d in board.legal_moves}


@pytest.mark.slow
@needs_jit
def test_expectimax_to_the_end_is_perfect_play():
    """On 2x2 no game is longer than 58 moves, but 12 more moves decide nearly always."""
    graph = naive.game_graph(2, 2, naive.Fraction(1, 10))
    exact = naive.expected_scores(graph)
    old = [state for state in exact if sum(map(sum, state)) >= 36]
    boards = [Board.parse([list(row) for row in state]) for state in old]
    for state, values in zip(
        old, values_of("expectimax:depth=12,heuristic=zero", Rules(2, 2), boards), strict=True
    ):
        assert max(values.values(), default=0.0) == pytest.approx(float(exact[state]), abs=1e-9)


def test_a_search_by_the_clock_tells_images_apart():
    assert player("expectimax:depth=2,ties=split", "2x2").symmetric
    assert not player("expectimax:time=10ms,ties=split", "2x2").symmetric
