"""Games in bulk: the same games whatever the threads, kept when stopped, and judged."""

from __future__ import annotations

import numpy as np
import pytest

from lab2048 import Board, Game, Rules, random_games
from lab2048.measure import arena as arena_module
from lab2048.measure.arena import play_games, play_match
from lab2048.players.custom import Custom
from lab2048.players.player import PlayerError
from lab2048.players.registry import make_player

RULES = Rules(3, 2)


SPECS = [
    "random",
    "corner",
    "greedy:ties=split",
    "expectimax:depth=2",
    "sparse",
    "mcts:simulations=9",
]


def played(spec, games=12, seed=7, **options):
    player = make_player(spec, RULES)
    found = play_games(player, iter(range(games)), seed, **options)
    return sorted(found, key=lambda game: game.index)


@pytest.mark.parametrize("spec", SPECS)
def test_the_same_games_with_any_number_of_threads(spec):
    one = played(spec, threads=1)
    assert one == played(spec, threads=2) == played(spec, threads=5)
    assert [game.index for game in one] == list(range(12))


@pytest.mark.parametrize("spec", SPECS)
def test_games_are_those_of_the_plain_game(spec):
    player = make_player(spec, RULES)
    for game in played(spec, games=3):
        plain = Game(RULES, 7, index=game.index)
        for move in game.moves:
            assert player.choose(plain.board, plain.own_word) == move
            plain.play(move)
        assert plain.over
        assert (plain.score, plain.board.max_tile) == (game.score, game.max_tile)


def test_the_random_player_plays_the_random_games():
    found = played("random", games=200)
    results = random_games(RULES, 200, seed=7)
    assert [game.score for game in found] == results.score.tolist()
    assert [len(game.moves) for game in found] == results.moves.tolist()
    assert [game.max_tile for game in found] == results.max_tile.tolist()


def test_a_game_that_outgrows_the_packed_board_goes_on(monkeypatch):
    """With two 32768s to begin with, the first merge already does not fit."""
    start = Board.parse("32768 32768 / 2 4 / . .")
    real = arena_module.begin_games

    def begin(state, seed, games, four, rows, cols):
        real(state, seed, games, four, rows, cols)
        state[0], state[2] = start.packed, 0b1111

    monkeypatch.setattr(arena_module, "begin_games", begin)
    monkeypatch.setattr(arena_module, "Game", lambda *a, **k: Game(*a, **k, start=start))
    (game,) = played("greedy", games=1)
    assert game.max_tile >= 65536
    assert game.score >= 65536


def test_an_error_in_a_player_ends_the_match():
    def broken(ranks, legal):
        raise RuntimeError("out of ideas")

    with pytest.raises(RuntimeError, match="out of ideas"):
        play_match(Custom(RULES, broken), 5, 1)


# -- figures -----------------------------------------------------------------------------------


def test_a_player_that_makes_no_move_ends_the_match():
    class Lazy(Custom):
        def prepare(self):
            pass

        def choose_many(self, boards, words):
            return np.full(len(boards), -1)

    with pytest.raises(PlayerError, match="makes no move on "):
        play_match(Lazy(RULES, print), 1, 1)
