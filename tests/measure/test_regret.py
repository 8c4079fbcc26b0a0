"""Regret: what the moves of games have lost, by a table."""

from __future__ import annotations

import pytest

from lab2048 import Game, Rules
from lab2048.measure.arena import play_match
from lab2048.measure.regret import against_table, judge
from lab2048.players.registry import make_player
from lab2048.solver.exact_value import evaluate_policy
from lab2048.solver.job import make_table
from lab2048.solver.problem import Problem
from lab2048.solver.tables import open_table

RULES = Rules(3, 2)


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
