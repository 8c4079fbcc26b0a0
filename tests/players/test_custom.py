"""A function of the user's as a player."""

from __future__ import annotations

import numpy as np
import pytest

from lab2048 import Game, Rules
from lab2048.measure.arena import play_match
from lab2048.players.custom import Custom
from lab2048.players.player import PlayerError
from lab2048.players.registry import make_player
from lab2048.solver.exact_value import evaluate_policy

RULES = Rules(3, 2)


@pytest.mark.slow
def test_a_function_is_a_player():
    def first_legal(ranks, legal):
        assert ranks.dtype == np.uint8 and ranks.shape[1:] == (3, 2)
        assert legal.dtype == np.bool_
        return legal.argmax(axis=1)

    def alike(ranks, legal):
        return legal / np.maximum(legal.sum(axis=1, keepdims=True), 1)

    player = Custom(RULES, first_legal)
    for game in play_match(player, 5, 1).games:
        plain = Game(RULES, 1, index=game.index)
        for move in game.moves:
            assert move == plain.board.legal_moves[0]
            plain.play(move)
    random = evaluate_policy(make_player("random", RULES)).value
    assert evaluate_policy(Custom(RULES, alike)).value == pytest.approx(random, abs=1e-9)
    moves = np.concatenate(
        [np.frombuffer(g.moves, np.uint8) for g in play_match(Custom(RULES, alike), 300, 1).games]
    )
    assert np.bincount(moves, minlength=4).min() > 0.15 * len(moves)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda legal: np.zeros(len(legal), int) - 1, "direction -1"),
        (lambda legal: np.full(len(legal), 4), "direction 4"),
        (lambda legal: (~legal).argmax(axis=1), "not legal"),
        (lambda legal: np.full((len(legal), 4), np.nan), "not numbers"),
        (lambda legal: np.where(legal, -1.0, 0.0), "negative"),
        (lambda legal: legal * 0.1, "add up to"),
        (lambda legal: np.zeros(len(legal)), "shape"),
        (lambda legal: np.zeros((2, 2)), "shape"),
        (lambda legal: "left", "shape"),
        (lambda legal: None, "shape"),
    ],
)
def test_what_a_function_may_not_return(answer, message):
    player = Custom(RULES, lambda ranks, legal: answer(legal))
    with pytest.raises(PlayerError, match=message):
        play_match(player, 3, 1)
    with pytest.raises(PlayerError, match=message):
        evaluate_policy(player)
