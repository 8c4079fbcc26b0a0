"""Exact values of players, against a recursion over all boards and against each other."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from lab2048 import Rules
from lab2048.engine.packed import ages_of
from lab2048.players.custom import Custom
from lab2048.players.player import PlayerError
from lab2048.players.registry import make_player
from lab2048.solver import policy_walk
from lab2048.solver.exact_value import evaluate_policy
from lab2048.solver.job import make_table
from lab2048.solver.problem import Problem
from lab2048.solver.tables import open_table
from tests import naive_search
from tests.conftest import WITH_JIT

slow = pytest.mark.slow
POLICIES = {
    "random": naive_search.random_policy,
    "greedy": naive_search.greedy_policy,
    "corner": naive_search.corner_policy,
}

pytestmark = pytest.mark.slow  # much has to be compiled


@pytest.mark.parametrize("spec", [pytest.param("random", marks=slow), "greedy", "corner"])
@pytest.mark.parametrize(
    ("rows", "cols", "p4"),
    [
        pytest.param(2, 2, Fraction(1, 10), marks=slow),
        (3, 2, Fraction(1, 10)),
        pytest.param(3, 2, Fraction(0), marks=slow),
        pytest.param(3, 2, Fraction(1), marks=slow),
    ],
)
def test_the_value_of_a_simple_player(spec, rows, cols, p4):
    if not WITH_JIT and rows * cols > 4:
        pytest.skip("takes minutes without the JIT")
    player = make_player(spec, Rules(rows, cols, float(p4)))
    wanted = naive_search.policy_value(rows, cols, p4, POLICIES[spec])
    found = evaluate_policy(player)
    assert found.value == pytest.approx(float(wanted), abs=1e-9)
    assert sum(found.ends.values()) == pytest.approx(1, abs=1e-12)


@slow
def test_greedy_on_2x2_is_not_what_canonical_boards_would_say():
    assert round(evaluate_policy(make_player("greedy", Rules(2, 2))).value, 1) == 26.8


@slow
def test_symmetric_players_give_the_same_on_raw_boards():
    rules = Rules(3, 2)
    for spec in ("random", "greedy:ties=split", "expectimax:depth=2,ties=split"):
        player = make_player(spec, rules)
        assert player.symmetric
        raw = Custom(rules, lambda ranks, legal, p=player: p.probabilities(_packed(ranks)))
        one, other = evaluate_policy(player), evaluate_policy(raw)
        assert one.value == pytest.approx(other.value, abs=1e-9)
        assert one.boards < other.boards


def _packed(ranks):
    flat = ranks.reshape(len(ranks), -1).astype(np.uint64)
    return (flat << (np.arange(flat.shape[1], dtype=np.uint64) * np.uint64(4))).sum(axis=1)


def test_threads_make_no_difference(monkeypatch):
    monkeypatch.setattr(policy_walk, "PART", 256)
    player = make_player("corner", Rules(3, 2))
    found = [evaluate_policy(player, threads=threads) for threads in (1, 2, 5)]
    assert found[0] == found[1] == found[2]


@slow
def test_mean_score_and_regret_add_up_to_perfect_play(warm_home):
    """The identity at the heart of it: what a player scores, and what it gives away."""
    make_table(Problem.of("3x2"))
    with open_table("3x2") as table:
        for spec in ("corner", "greedy", "expectimax:depth=1", "optimal", "optimal:ties=split"):
            regret = 0.0

            def add(layer):
                nonlocal regret
                q = table.probe_many(layer.states).q
                best = np.nanmax(np.where(np.isnan(q), -np.inf, q), axis=1, keepdims=True)
                lost = np.where(np.isnan(q), 0.0, best - q) * layer.chances
                regret += float((lost.sum(axis=1) * layer.masses).sum())
                assert (ages_of(layer.states) == layer.age).all()

            found = evaluate_policy(make_player(spec, Rules(3, 2)), visit=add)
            assert found.value + regret == pytest.approx(table.start_value["start"], abs=1e-6)
            if spec.startswith("optimal"):
                assert regret == pytest.approx(0, abs=1e-6)


def test_who_cannot_tell_its_chances_is_refused():
    for spec in ("sparse", "montecarlo", "mcts", "expectimax:time=1ms"):
        with pytest.raises(PlayerError, match="not known"):
            evaluate_policy(make_player(spec, Rules(3, 2)))

    def drawn(ranks, legal):
        return legal.argmax(axis=1)

    drawn.draws = True
    with pytest.raises(PlayerError, match="draws by itself"):
        evaluate_policy(Custom(Rules(3, 2), drawn))


def test_a_board_too_large_is_refused():
    with pytest.raises(ValueError, match="boards that can be solved, not 4x4"):
        evaluate_policy(make_player("greedy", Rules(4, 4)))


def test_a_function_is_only_asked_where_there_is_something_to_decide():
    def first(ranks, legal):
        return [int(np.flatnonzero(row)[0]) for row in legal]

    found = evaluate_policy(Custom(Rules(3, 2), first)).value
    assert found == pytest.approx(evaluate_policy(Custom(Rules(3, 2), _first)).value)


def _first(ranks, legal):
    return legal.argmax(axis=1)


def test_a_search_that_cuts_off_is_not_asked_about_canonical_boards_only():
    assert make_player("expectimax:depth=4,ties=split", Rules(3, 2)).symmetric
    assert not make_player("expectimax:depth=4,ties=split,cutoff=0.05", Rules(3, 2)).symmetric


@slow
@pytest.mark.skipif(not WITH_JIT, reason="takes hours without the JIT")
def test_simple_players_on_3x3():
    """The mean scores of docs/results.md."""
    values = {"greedy": 366.3766, "corner": 334.5861}
    for spec, value in values.items():
        assert evaluate_policy(make_player(spec, Rules(3, 3))).value == pytest.approx(
            value, abs=1e-4
        )
