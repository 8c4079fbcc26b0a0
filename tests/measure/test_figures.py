"""Figures of games: means and rates."""

from __future__ import annotations

import numpy as np
import pytest

from lab2048 import Rules, evaluate
from lab2048.measure.arena import play_match
from lab2048.measure.figures import compare, measure, summarise
from lab2048.measure.replay import read_game
from lab2048.players.registry import make_player
from lab2048.solver.exact_value import evaluate_policy
from lab2048.solver.job import make_table
from lab2048.solver.problem import Problem
from lab2048.solver.tables import open_table

RULES = Rules(3, 2)


@pytest.mark.slow
def test_the_interval_of_a_sampled_mean_covers_the_exact_mean():
    for spec in ("random", "corner", "greedy"):
        player = make_player(spec, RULES)
        low, high = summarise(play_match(player, 2000, 5).games)["score"]["ci95"]
        assert low < evaluate_policy(player).value < high


@pytest.mark.slow
def test_a_table_of_another_game_is_refused(tmp_path):
    make_table(Problem.of("2x2", gamma=0.5), tmp_path / "table")
    player = make_player("corner", Rules(2, 2))
    with (
        open_table(tmp_path / "table") as other,
        pytest.raises(ValueError, match=r"is of 2x2-score-gamma-0\.5, what is asked for is 2x2"),
    ):
        measure(player, 5, table=other)


def test_a_summary_and_a_comparison():
    games = play_match(make_player("corner", RULES), 50, 1).games
    others = play_match(make_player("random", RULES), 50, 1).games
    found = summarise(games)
    scores = [game.score for game in games]
    assert found["score"]["mean"] == pytest.approx(np.mean(scores))
    assert (found["score"]["min"], found["score"]["max"]) == (min(scores), max(scores))
    rates = {int(tile): facts["rate"] for tile, facts in found["reach"].items()}
    assert rates == {tile: sum(game.max_tile >= tile for game in games) / 50 for tile in rates}
    assert max(rates) == max(game.max_tile for game in games)
    difference = compare(games, others)
    assert difference["mean"] == pytest.approx(
        np.mean(scores) - np.mean([game.score for game in others])
    )


def test_games_of_a_file_are_counted_from_one(tmp_path):
    path = tmp_path / "games.jsonl"
    evaluate("greedy", "2x2", games=2, table=False).save_games(path)
    assert read_game(path, 2).index == 1
    for number in (0, -1, 3):
        with pytest.raises(ValueError, match=f"has no game {number}"):
            read_game(path, number)


def test_a_function_is_not_found_by_its_name():
    def greedy(ranks, legal):
        return legal.argmax(axis=1)

    found = evaluate("greedy", "2x2", games=2, table=False)
    with pytest.raises(KeyError, match="greedy was not evaluated"):
        found[greedy]
