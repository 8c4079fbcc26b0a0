"""Tree search: visits, values, and what a rollout backs up."""

from __future__ import annotations

import pytest

from lab2048 import Board, Direction, Rules
from lab2048.players.registry import make_player
from tests import naive, naive_search
from tests.players.searching import chosen, grid_of, needs_jit, positions, values_of


@pytest.mark.slow
def test_what_a_rollout_backs_up():
    """After the one legal move, any spawn ends the game."""
    board = Board.parse("64 4 / 8 32 / 16 16")
    assert board.legal_moves == (Direction.RIGHT, Direction.LEFT)
    rules = Rules(3, 2)
    after = {"max": 64, "sum": 64 + 4 + 8 + 32 + 32 + 2.2, "score": 32}
    for backup, wanted in after.items():
        player = make_player(f"montecarlo:rollouts=400,backup={backup}", rules)
        assert player.values(board)[Direction.LEFT] == pytest.approx(wanted, abs=0.2)


@pytest.mark.slow
@needs_jit
def test_a_tree_search_finds_the_optimal_moves():
    """On 2x2, with many simulations and leaves valued by random games."""
    graph = naive.game_graph(2, 2, naive.Fraction(1, 10))
    exact = naive.expected_scores(graph)
    player = make_player("mcts:simulations=20000,leaf=rollouts,c1=0.5", Rules(2, 2))
    wrong = 0
    states = [state for state in graph if len(graph[state]) > 1][::15]
    for state in states:
        q = {}
        grid = [list(row) for row in state]
        for direction in naive.legal_moves(grid):
            after, reward = naive.move(grid, direction)
            spawns = naive.spawns(after, naive.Fraction(1, 10))
            q[direction] = reward + sum(p * exact[naive.frozen(s)] for p, s in spawns)
        best = max(q.values())
        margin = sorted(q.values())[-2]
        move = player.choose(Board.parse(grid), word=1)
        if best - margin > 1:
            assert q[int(move)] == best, state
        wrong += q[int(move)] != best
    assert wrong <= len(states) // 10


def test_every_simulation_is_a_visit():
    boards = positions(3, 2, 20)
    for spec in (
        "mcts:simulations=50",
        "mcts:simulations=50,depth=1",
        "mcts:simulations=7,cells=1",
    ):
        simulations = int(spec.split("=")[1].split(",")[0])
        for board, values in zip(boards, values_of(spec, Rules(3, 2), boards), strict=True):
            assert sum(values.values()) == (simulations if board.legal_moves else 0)


@needs_jit
def test_with_depth_one_a_tree_search_is_a_mean_over_spawns():
    """Leaves are the states after one move, so the best move is that of a search to depth 2."""
    rules = Rules(3, 2)
    tree = make_player("mcts:simulations=5000,depth=1,heuristic=alpha", rules)
    search = naive_search.Expectimax(naive_search.alpha)
    for board in positions(3, 2, 12):
        values = search.values(grid_of(board), 2)
        ordered = sorted(values.values())
        if len(ordered) > 1 and ordered[-1] - ordered[-2] > 0.05 * abs(ordered[-1]):
            assert tree.choose(board, word=9) == chosen(values)
