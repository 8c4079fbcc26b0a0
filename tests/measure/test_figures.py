"""Figures of games: means, rates, and what the moves have lost."""

from __future__ import annotations

import numpy as np
import pytest

from lab2048 import Game, Rules, evaluate
from lab2048.measure.arena import play_match
from lab2048.measure.figures import (
    against_table,
    compare,
    judge,
    measure,
    summarise,
)
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


@pytest.fixture(scope="module")
def table(made):
    with open_table(made) as found:
        yield found


@pytest.mark.slow
def test_every_move_is_judged_as_the_table_says(table):
    games = play_match(make_player("corner", RULES), 20, 1).games
    judged = judge(games, 1, table)
    place = 0
    for number, game in enumerate(games):
        plain = Game(RULES, 1, index=number)
        for move in game.moves:
            values = table.moves(plain.board)
            q = [value.q for value in values.values()]
            assert judged.board[place] == plain.board.packed
            assert judged.age[place] == plain.board.age
            assert judged.regret[place] == pytest.approx(values[move].regret, abs=1e-9)
            assert judged.gap[place] == pytest.approx(max(q) - min(q), abs=1e-9)
            assert judged.optimal[place] == values[move].optimal
            assert (judged.game[place], judged.move[place]) == (number, move)
            plain.play(move)
            place += 1
    assert place == len(judged.move)


@pytest.mark.slow
def test_figures_against_a_table(table):
    for spec in ("corner", "random"):
        player = make_player(spec, RULES)
        games = play_match(player, 2000, 1).games
        found = against_table(judge(games, 1, table), 2000, RULES)
        low, high = found["regret_per_game"]["ci95"]
        assert low < table.start_value["start"] - evaluate_policy(player).value < high
        for bins in (found["by_gap"], found["by_age"]):
            assert sum(part["moves"] for part in bins) == sum(len(game.moves) for game in games)
            assert sum(part["share"] for part in bins) == pytest.approx(1)
        apart = found["by_gap"][0]
        assert (apart["above"], apart["to"], apart["agreement"]) == (0, 0, 1)
        assert sum(p["moves"] for p in found["by_equal_count"]) + apart["moves"] == sum(
            p["moves"] for p in found["by_gap"]
        )
        worst = found["worst"]
        assert [each["regret"] for each in worst] == sorted(
            (each["regret"] for each in worst), reverse=True
        )
        value = table.moves(worst[0]["board"])[_direction(worst[0]["move"])]
        assert value.regret == pytest.approx(worst[0]["regret"])


def _direction(name):
    return ["up", "right", "down", "left"].index(name)


@pytest.mark.slow
def test_perfect_play_loses_nothing(table, warm_home):
    make_table(Problem.of("3x2"))
    for spec in ("optimal", "optimal:ties=split"):
        games = play_match(make_player(spec, RULES), 300, 1).games
        found = against_table(judge(games, 1, table), 300, RULES)
        assert found["regret_per_game"]["mean"] == 0 and found["agreement"] == 1
        assert found["worst"] == []


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
