"""Random games: those in lanes are those of `Game`, and play is random."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from lab2048 import Board, Game, Rules, random_games
from lab2048.engine import batch as lanes
from lab2048.engine import random_games as bulk
from lab2048.engine.jit import U
from lab2048.engine.packed import CHOICES, nth_move
from lab2048.game import random_move, spawns
from lab2048.game import randomness as chance
from tests import naive
from tests.conftest import WITH_JIT
from tests.game.test_randomness import seed_for

# every way through the kernels: square or not, lines with a table or without
COMMON = [(4, 4), (3, 3), (6, 2)] if WITH_JIT else [(2, 2), (3, 2)]


def play_one(rules, seed, index=0, start=None):
    """A game of the random player, one move at a time."""
    game = Game(rules, seed, index=index, start=start)
    while not game.over:
        game.play(random_move(game.board, game.own_word))
    return game


def check_against_single_games(rules, games, seed, start=None):
    results = random_games(rules, games, seed, start=start)
    for i in range(games):
        game = play_one(rules, seed, i, start)
        assert results.score[i] == game.score
        assert results.moves[i] == len(game.moves)
        assert results.max_tile[i] == game.board.max_tile
    return results


@pytest.mark.parametrize(
    ("rows", "cols"), [*COMMON[:2], *(pytest.param(*s, marks=pytest.mark.slow) for s in COMMON[2:])]
)
@pytest.mark.parametrize("p4", [0.1, 0.0, 1.0])
def test_games_are_those_of_single_play(rows, cols, p4):
    check_against_single_games(Rules(rows, cols, p4), 150 if WITH_JIT else 5, seed=11)


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "cols"), [s for s in naive.SHAPES if s not in COMMON])
def test_games_on_the_other_boards_are_those_of_single_play(rows, cols):
    check_against_single_games(Rules(rows, cols), 100 if WITH_JIT else 2, seed=12)


@pytest.mark.parametrize("player", [False, True])
def test_words_that_must_be_replaced_are_replaced(player, monkeypatch):
    """Seeds that meet a word with an empty upper half, which 3 moves or 7 cells reject.

    Its lower half 2**31 is the threshold of p4 = 0.5, where another word has to decide.
    """
    replaced = []
    again = chance.again
    monkeypatch.setattr(chance, "again", lambda w: replaced.append(w) or again(w))
    rules = Rules(3, 3, 0.5)
    for low in [2**31, *range(40 if WITH_JIT else 5)]:
        for t in (2, 3, 4, 5):
            seed = seed_for(low, t, player=player)
            game = play_one(rules, seed)
            results = random_games(rules, 70 if WITH_JIT else 1, seed)
            assert results.score[0] == game.score
            assert results.moves[0] == len(game.moves)
    assert len(replaced) > (20 if WITH_JIT else 2)
    assert player or 2**31 in replaced


def test_results_do_not_depend_on_threads_or_on_how_the_games_are_split():
    rules = Rules(*COMMON[0])
    games = 2000 if WITH_JIT else 12
    whole = random_games(rules, games, seed=3, threads=1)
    for threads in (2, 5):
        other = random_games(rules, games, seed=3, threads=threads)
        assert all((a == b).all() for a, b in zip(whole, other, strict=True))
    cut = games // 3
    parts = [random_games(rules, n, seed=3, first=f) for f, n in [(0, cut), (cut, games - cut)]]
    for column, (a, b) in zip(whole, zip(*parts, strict=True), strict=True):
        assert (column == np.concatenate([a, b])).all()


def test_progress_counts_every_game_and_few_games_are_fine():
    rules = Rules(*COMMON[0])
    for games in (0, 1, 65) if WITH_JIT else (0, 1):
        seen = []
        results = random_games(rules, games, progress=seen.append)
        assert sum(seen) == games == len(results.score)


def test_two_32768s_merge_in_bulk_too():
    start = Board.parse("32768 32768 . . / . . . . / . . . . / . . . .")
    results = check_against_single_games(Rules(4, 4), 6 if WITH_JIT else 1, 1, start)
    assert (results.max_tile == 65536).all()
    assert (results.score > 65536).all()


def test_games_may_begin_above_32768():
    start = Board.parse("65536 65536 . . / . . . . / . . . . / . . . .")
    results = check_against_single_games(Rules(4, 4), 3 if WITH_JIT else 1, 1, start)
    assert (results.max_tile == 131072).all()


def test_exact_games_are_not_begun_once_it_is_stopped():
    start = Board.parse("65536 . . . / . . . . / . . . . / . . . .")
    stop = threading.Event()
    out = np.zeros((100_000, 4), np.int64)
    stop.set()
    bulk._play_block(Rules(4, 4), 1, 0, start, out, stop)
    assert not out.any()
    stop.clear()
    bulk._play_block(Rules(4, 4), 1, 0, start, out[:1], stop)
    assert out[0].any()


def test_an_error_in_progress_stops_the_games():
    finished = []

    def stop(games):
        finished.append(games)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        random_games(Rules(*COMMON[0]), 40, threads=1, progress=stop)
    assert len(finished) == 1


def test_a_start_without_a_move_is_a_game_of_no_moves():
    for text, tile in [("2 4 2 / 4 2 4 / 2 4 2", 4), (". . . / . . . / . . .", 0)]:
        results = random_games(Rules(3, 3), 5, start=Board.parse(text))
        assert results.moves.tolist() == results.score.tolist() == [0] * 5
        assert results.max_tile.tolist() == [tile] * 5


def test_bad_arguments_are_refused():
    for games in (-1, 1.5, None, "3"):
        with pytest.raises(ValueError, match="games is a whole number"):
            random_games(Rules(4, 4), games)
    for first in (-1, 2**64):
        with pytest.raises(ValueError, match="first is a whole number"):
            random_games(Rules(4, 4), 1, first=first)
    with pytest.raises(ValueError, match="the last game"):
        random_games(Rules(4, 4), 10, first=2**64 - 5)
    for threads in (0, -1, 1.5):
        with pytest.raises(ValueError, match="threads are"):
            random_games(Rules(4, 4), 10, threads=threads)
    with pytest.raises(ValueError, match="a seed is a whole number"):
        random_games(Rules(4, 4), 1, seed=-5)
    with pytest.raises(ValueError, match="the board is 2x2, the rules are 4x4"):
        random_games(Rules(4, 4), 1, start=Board.parse("2 . / . ."))


def test_the_choice_tables_list_the_moves_of_a_mask():
    for mask in range(16):
        moves = [d for d in range(4) if mask >> d & 1]
        assert int(CHOICES[mask]) == len(moves)
        assert [int(nth_move(U(mask), U(k))) for k in range(len(moves))] == moves


if WITH_JIT:
    # five million games of another program's random player on 4x4, by their largest tile
    PUBLISHED = {8: 78, 16: 13_300, 32: 338_969, 64: 1_872_573, 128: 2_382_743, 256: 391_386}
    PUBLISHED |= {512: 951}

    def test_random_play_is_distributed_as_published():
        from scipy.stats import chi2_contingency

        games = 2_000_000
        results = random_games(Rules(4, 4), games, seed=4)
        tiles, counts = np.unique(results.max_tile, return_counts=True)
        found = dict(zip(tiles.tolist(), counts.tolist(), strict=True))
        assert set(found) <= set(PUBLISHED)
        table = [[found.get(tile, 0) for tile in PUBLISHED], list(PUBLISHED.values())]
        assert chi2_contingency(table).pvalue > 0.001
        # about 1,089 over a thousand games as published, whose standard error is 17
        assert abs(results.score.mean() - 1089) < 3 * 17

    def test_first_spawns_are_uniform_and_fours_have_their_chance():
        from scipy.stats import chisquare

        state = np.zeros((3, 300_000), np.uint64)
        games = np.arange(state.shape[1], dtype=np.uint64)
        four = np.array(spawns.four_threshold(0.1), np.uint64)
        everywhere = np.ones(state.shape[1], np.bool_)
        lanes.restart(state, everywhere, np.zeros_like(games), games, four, 3, 5)
        ranks = np.empty((state.shape[1], 15), np.uint8)
        tiles = np.empty(state.shape[1], np.int64)
        lanes.observe(state, ranks, np.empty((state.shape[1], 4), np.int8), tiles)
        assert (tiles == 1 << ranks.max(axis=1).astype(np.int64)).all()
        pairs = np.argsort(ranks == 0, axis=1, kind="stable")[:, :2]
        places = np.bincount(pairs[:, 0] * 15 + pairs[:, 1], minlength=225)
        assert (places > 0).sum() == 15 * 14 // 2
        assert chisquare(places[places > 0]).pvalue > 0.001
        twos, fours = int((ranks == 1).sum()), int((ranks == 2).sum())
        assert chisquare([twos, fours], [540_000, 60_000]).pvalue > 0.001
