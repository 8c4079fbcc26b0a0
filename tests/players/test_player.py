"""What all players have in common: legal moves, images, boards of every size."""

from __future__ import annotations

import numpy as np
import pytest

from lab2048 import Board, Direction, Rules, direction_on_image
from lab2048.players.registry import make_player
from tests import naive_search
from tests.players.searching import grid_of, needs_jit, packed, positions, same

SPECS = [
    "random",
    "greedy",
    "greedy:ties=split",
    "corner",
    "minimax:depth=2",
    "expectimax:depth=2",
    "expectimax:depth=3,cutoff=0.01",
    "expectimax:depth=2,ties=split",
    "expectiminimax:depth=2",
    "sparse",
    pytest.param("montecarlo:rollouts=5", marks=pytest.mark.slow),
    "mcts:simulations=20",
    "mcts:simulations=20,leaf=rollouts",
]


@pytest.mark.parametrize("spec", SPECS)
def test_a_player_moves_legally_and_as_its_values_say(spec):
    rules = Rules(3, 2)
    player = make_player(spec, rules)
    boards = positions(3, 2, 30)
    words = np.arange(len(boards), dtype=np.uint64)
    moves = player.choose_many(packed(boards), words)
    values = player.values_many(packed(boards), words)
    for i, board in enumerate(boards):
        if board.is_terminal:
            assert moves[i] == -1 and np.isnan(values[i]).all()
            with pytest.raises(ValueError, match="no move is legal"):
                player.choose(board)
            continue
        assert Direction(int(moves[i])) in board.legal_moves
        assert player.choose(board, int(words[i])) == moves[i]
        assert player.values(board, int(words[i])).keys() == set(board.legal_moves)
        if not player.splits:
            assert values[i, moves[i]] == pytest.approx(np.nanmax(values[i]), rel=1e-9)


@pytest.mark.parametrize("spec", ["random", "greedy:ties=split", "expectimax:depth=2,ties=split"])
def test_symmetric_players_play_images_alike(spec):
    rules = Rules(3, 2)
    player = make_player(spec, rules)
    assert player.symmetric
    for board in positions(3, 2, 30):
        chances = player.probabilities(packed([board]))[0]
        for symmetry in range(4):
            images = player.probabilities(packed([board.image(symmetry)]))[0]
            for direction in Direction:
                turned = direction_on_image(direction, symmetry)
                assert images[turned] == pytest.approx(chances[direction], abs=1e-12)


def test_a_board_too_large_to_be_packed_is_played_by_its_stand_in():
    board = Board.parse("131072 65536 / 2 2 / . .")
    for spec in ("greedy", "expectimax:depth=2", "mcts:simulations=10"):
        assert make_player(spec, Rules(3, 2)).choose(board) in board.legal_moves


@pytest.mark.slow
@needs_jit
def test_lines_of_six_cells():
    board = Board.parse("2 2 4 8 16 32 / . . . . . 2")
    search = naive_search.Expectimax(naive_search.alpha)
    found = make_player("expectimax:depth=2,heuristic=alpha", Rules(2, 6)).values(board)
    same({int(d): v for d, v in found.items()}, search.values(grid_of(board), 2))
