"""A search that has had its time ends, and keeps what it has."""

from __future__ import annotations

import time

import pytest

from lab2048 import Board, Rules
from lab2048.players import time_limit
from lab2048.players.registry import make_player
from tests.players.searching import needs_jit

ENDLESS = [
    "minimax:depth=12",
    "expectiminimax:depth=12",
    "expectimax:depth=12",
    "sparse:depth=10,samples=0",
    "mcts:simulations=300000",
    pytest.param("montecarlo:rollouts=100000", marks=needs_jit),
]


@pytest.mark.parametrize("spec", ENDLESS)
def test_a_search_that_is_told_to_stop_does(spec):
    player, board = make_player(spec, Rules(3, 2)), Board.parse("2 2 / . . / . .")
    make_player(spec.partition(":")[0], Rules(3, 2)).choose(board)  # to compile it
    with time_limit.time_limit(0.1, spec):
        time_limit.stop_flag()[0] = 1
        began = time.monotonic()
        with pytest.raises(time_limit.TimeLimitError, match=r"takes more than 0.1 s"):
            player.values(board)
    assert time.monotonic() - began < 2
    assert time_limit.stop_flag()[0] == 0


def test_the_flag_is_set_when_the_time_is_up_and_a_timed_search_keeps_what_it_has():
    board = Board.parse("2 2 / . . / . .")
    with time_limit.time_limit(0.05, "it"):
        stop = time_limit.stop_flag()
        began = time.monotonic()
        while not stop[0] and time.monotonic() - began < 5:
            time.sleep(0.005)
        waited = time.monotonic() - began
        assert stop[0] and waited > 0.04
        assert make_player("expectimax:time=10s", Rules(3, 2)).choose(board) in board.legal_moves
    time_limit.check_time()
    assert not time_limit._watchdog._due
