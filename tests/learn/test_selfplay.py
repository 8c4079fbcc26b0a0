"""Games of self-play, and what there is to learn from them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from lab2048.data.batches import soft_shares
from lab2048.engine.batch import next_words
from lab2048.game import Board, Game, Rules
from lab2048.learn.encoding import upright
from lab2048.learn.gradient import asked
from lab2048.learn.residual import frozen
from lab2048.learn.selfplay import (
    SelfPlay,
    Steps,
    choose,
    lessons_of,
    returns,
    untried,
)
from lab2048.players.ties import legal_moves
from tests.learn.tiny_zero import tiny

CPU = torch.device("cpu")


def test_moves_are_drawn_by_visits_and_temperature():
    ranking = np.tile([[6.3, 0.0, 3.2, 1.1]], (20_000, 1))
    draws = (np.arange(20_000) + 0.5) / 20_000
    for temperature, shares in [(1.0, [6, 0, 3, 1]), (0.5, [36, 0, 9, 1])]:
        counts = np.bincount(choose(ranking, temperature, draws), minlength=4)
        assert np.allclose(counts / 20_000, np.array(shares) / sum(shares), atol=1e-4)
    assert (choose(ranking, 0.0, draws) == 0).all()
    assert choose(np.array([[0.0, 2.1, 2.2, 0.0]]), 0.0, draws[:1]) == 2
    assert choose(np.array([[0.0, 3.0, 0.0, 0.0]]), 1.0, np.zeros(1)) == 1


def test_the_policy_learns_what_moves_lose():
    none = np.nan
    means = np.array([[500, 480, none, none], [100, 90, none, 40], [7, none, none, none]])
    legal = np.array([[1, 1, 1, 0], [1, 1, 1, 1], [1, 0, 0, 0]], bool)
    shares = soft_shares(untried(means, legal, 10.0), 10.0)
    expected = np.exp([[0, -2, -4, -np.inf], [0, -1, -6, -6], [0, -np.inf, -np.inf, -np.inf]])
    assert np.allclose(shares, expected / expected.sum(axis=1, keepdims=True), rtol=1e-5)
    far = soft_shares(np.array([[1e30, 0.0, -np.inf, none]]), 1.0)[0]
    assert 0 < far[1] == far[2] < 1e-15 and far[3] == 0


@pytest.mark.slow
@pytest.mark.parametrize("soft", [0.0, 0.5])
def test_lessons_of_the_policy_are_visits_or_what_is_lost(soft):
    settings = tiny(Rules(3, 2), soft=soft, noise=0.0)
    worker = SelfPlay(settings, 5, 1)
    worker.usual = 30.0
    network = asked(frozen(settings.build()), settings.rules, CPU)
    boards, words = worker.state[0].copy(), np.empty(5, np.uint64)
    next_words(worker.state[3].copy(), words)
    found = worker.searches.search(boards, words, network)
    step = worker._move(network, 1.0, np.random.default_rng(1))
    expected = found.visits / found.visits.sum(axis=1, keepdims=True)
    if soft:
        q = untried(found.means, legal_moves(boards, settings.rules), 15.0)
        expected = soft_shares(q, 15.0)
    assert np.allclose(step.policy, expected)


def naive_returns(values, rewards, luck, over, trace):
    """Of one game after the other, from the definition."""
    steps, games = values.shape
    found = np.zeros((steps, games))
    for game in range(games):
        for t in range(steps):
            total, weight, gone = 0.0, 1.0, 0.0
            for k in range(t, steps):
                if over[k, game]:
                    total += weight * (gone + rewards[k, game] - luck[k, game])
                    break
                if k == steps - 1:
                    total += weight * (gone + values[k, game])
                    break
                gone += rewards[k, game] - luck[k, game]
                total += weight * (1 - trace) * (gone + values[k + 1, game])
                weight *= trace
            found[t, game] = total
    return found


@pytest.mark.parametrize("trace", [0.0, 0.7, 1.0])
def test_returns(trace):
    rng = np.random.default_rng(0)
    values, rewards = rng.random((12, 5)), rng.integers(0, 9, (12, 5))
    over, luck = rng.random((12, 5)) < 0.2, rng.normal(size=(12, 5))
    none = np.zeros((12, 5))
    steps = Steps(none, none, values, none, rewards, luck, over)
    expected = naive_returns(values, rewards, luck, over, trace)
    assert np.allclose(returns(steps, trace), expected)


def played(settings, moves, seed=1):
    """The steps of games with a network that knows nothing."""
    network = asked(frozen(settings.build()), settings.rules, CPU)
    worker = SelfPlay(settings, settings.games, seed)
    parts = []
    for _ in range(moves):
        worker.last = []
        worker.play(network, 1, 1.0)
        parts.append(worker.last[0])
    return worker, parts


@pytest.mark.slow
def test_games_of_self_play_are_games():
    settings = tiny(Rules(3, 2))
    worker, parts = played(settings, 60)
    for game in range(settings.games):
        number, again = game, Game(settings.rules, 1, index=game)
        for step in parts:
            assert again.board.packed == int(step.boards[game])
            before = again.score
            again.play(int(step.moves[game]))
            assert again.score - before == step.rewards[game] and again.over == step.over[game]
            assert abs(step.policy[game].sum() - 1) < 1e-6
            assert not step.policy[game][
                ~legal_moves(step.boards[game : game + 1], settings.rules)[0]
            ].any()
            if again.over:
                number = None
                break
        if number is None:
            continue
        assert (
            int(worker.state[0, game]) == again.board.packed and worker.scores[game] == again.score
        )


@pytest.mark.slow
def test_luck_is_what_a_spawn_changes_and_nothing_on_average():
    rules = Rules(3, 2, 0.3)
    settings = tiny(rules)
    model = settings.build().eval()
    network = asked(frozen(model), rules, CPU)
    worker = SelfPlay(settings, 8, 1)
    worker.searches.scale = 40.0
    rng = np.random.default_rng(0)
    for _ in range(60):
        game = Game(rules, 5, index=int(rng.integers(1000)))
        for _ in range(rng.integers(1, 15)):
            if not game.over:
                game.play(rng.choice(game.board.legal_moves))
        if game.over:
            continue
        after = game.board.move(game.board.legal_moves[0]).after
        spawns = rules.spawns(after)
        followed = np.array([each.board.packed for each in spawns], np.uint64)
        found = worker.luck(np.full(len(spawns), after.packed, np.uint64), followed, network)
        values = 40.0 * network(upright(followed, rules)[0])[1][:, 0]
        values = [
            v if each.board.legal_moves else 0.0 for v, each in zip(values, spawns, strict=True)
        ]
        chances = np.array([each.probability for each in spawns])
        assert abs(chances @ found) < 1e-4
        assert np.allclose(found, values - chances @ np.array(values), atol=1e-4)


def outcomes(board, policy):
    """What moves lead to, whichever image of the board it is, and their shares."""
    moves = [(board.move(d), float(policy[d])) for d in range(4)]
    return sorted((str(m.after.canonical().board), share) for m, share in moves if m.legal)


@pytest.mark.slow
def test_lessons_are_upright_and_complete():
    settings = tiny(Rules(3, 2), horizon=5)
    _, parts = played(settings, 20)
    steps = Steps(*(np.stack(each) for each in zip(*parts, strict=True)))
    lessons = lessons_of(steps, settings)
    ready = [
        (t, game)
        for t in range(20)
        for game in range(settings.games)
        if t < 15 or steps.over[t:, game].any()
    ]
    assert len(lessons.states) == len(ready) >= 15 * settings.games
    expected = returns(steps, settings.trace)
    for k, (t, game) in enumerate(ready):
        board = Board.from_packed(int(steps.boards[t, game]), 3, 2)
        after = board.move(int(steps.moves[t, game])).after
        for found, right in ((lessons.states[k], board), (lessons.afters[k], after)):
            assert upright(np.array([found]), settings.rules)[0][0] == found
            assert Board.from_packed(int(found), 3, 2).canonical().board == right.canonical().board
        assert lessons.worths[k] == pytest.approx(expected[t, game], rel=1e-5)
        rest = expected[t, game] - steps.rewards[t, game]
        assert lessons.after_worths[k] == pytest.approx(rest, rel=1e-5, abs=1e-4)
        there = Board.from_packed(int(lessons.states[k]), 3, 2)
        assert outcomes(there, lessons.policy[k]) == outcomes(board, steps.policy[t, game])


@pytest.mark.slow
def test_every_move_is_learnt_from_once():
    settings = tiny(horizon=7)
    network = asked(frozen(settings.build()), settings.rules, CPU)
    worker = SelfPlay(settings, settings.games, 1)
    learnt = 0
    for moves in (3, 5, 1, 20, 2, 9, 4):
        before = len(worker.last)
        learnt += len(worker.play(network, moves, 1.0).states)
        assert len(worker.last) == min(7, before + moves)
    over = np.stack([step.over for step in worker.last])
    waiting = sum(not over[t:, game].any() for t in range(7) for game in range(settings.games))
    assert 0 < waiting < 7 * settings.games
    assert learnt + waiting == 44 * settings.games
