"""Self-play: what it learns from, how it goes on, and that it gets better."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch

from lab2048.data.batches import soft_shares
from lab2048.engine.batch import next_words
from lab2048.game import Board, Game, Rules
from lab2048.learn.encoding import upright
from lab2048.learn.gradient import asked, inputs, parameters
from lab2048.learn.network_files import FILE, network_folder, read_facts, write_tensors
from lab2048.learn.neural_players import Loaded, Zero
from lab2048.learn.replay_buffer import Replay
from lab2048.learn.residual import Bins, frozen, largest_score
from lab2048.learn.selfplay import (
    LESSON_COLUMNS,
    Lessons,
    SelfPlay,
    Steps,
    choose,
    lessons_of,
    returns,
    untried,
)
from lab2048.learn.zero import ZeroLearner
from lab2048.learn.zero_settings import PRESETS, ZeroSettings
from lab2048.measure.arena import play_games
from lab2048.players.registry import make_player
from lab2048.players.ties import legal_moves
from lab2048.solver.exact_value import evaluate_policy

slow = pytest.mark.slow
CPU = torch.device("cpu")
TINY = {"games": 8, "buffer": 500, "batch": 16, "simulations": 4}


def tiny(rules=None, **more):
    return ZeroSettings.of(rules or Rules(2, 2), "tiny", **{**TINY, **more})


# -- the network -------------------------------------------------------------------------------


def test_the_network_of_the_paper():
    """Ten blocks of two layers and the first one; a layer and a linear one for each head."""
    settings = ZeroSettings.of(Rules(3, 3), "paper")
    assert (settings.blocks, settings.channels, settings.rate) == (10, 128, 3e-4)
    model = settings.build()
    layer = 128 * 128 * 9 + 2 * 128
    first = 11 * 128 * 9 + 2 * 128
    heads = 2 * layer + (9 * 128 + 1) * (4 + 2 * 96)
    assert parameters(model) == first + 20 * layer + heads
    logits, worths = model(torch.zeros((5, 9), dtype=torch.int32))
    assert logits.shape == (5, 4) and worths.shape == (5, 2, 96)
    numbers = ZeroSettings.of(Rules(3, 3), "paper", bins=0).build()
    assert parameters(model) - parameters(numbers) == (9 * 128 + 1) * 2 * 95
    assert set(PRESETS) == {"tiny", "small", "paper", "zhou"}
    with pytest.raises(ValueError, match="there is no preset 'smal'; did you mean small"):
        ZeroSettings.of(Rules(3, 3), "smal")


@pytest.mark.parametrize("bins", [0, 96])
def test_a_frozen_network_says_the_same(bins):
    rules = Rules(3, 3)
    model = ZeroSettings.of(rules, "tiny", bins=bins).build()
    boards = np.array([Game(rules, 1, index=k).board.packed for k in range(50)], np.uint64)
    model.train()
    for _ in range(3):
        model(inputs(boards, rules, CPU))  # so that normalisation has something to merge
    model.eval()
    with torch.no_grad():
        logits, worths = model(inputs(boards, rules, CPU))
        expected = logits, model.values(worths)
    found = asked(frozen(model), rules, CPU)(boards)
    for one, other in zip(expected, found, strict=True):
        assert np.allclose(one.numpy(), other, atol=1e-5)


def test_bins_hold_any_value_and_its_mean():
    rules = Rules(3, 3)
    bins = Bins(96, largest_score(rules))
    right = torch.tensor([0.0, -9.0, 4.0, 60.0, 700.0, 2500.0, 9000.0, 12000.0])
    wanted = bins.wanted(right)
    assert torch.allclose(wanted.sum(1), torch.ones(len(right))) and (wanted >= 0).all()
    assert torch.allclose(bins(wanted.log()), right, atol=2.0, rtol=1e-3)
    beyond = bins(bins.wanted(torch.tensor([-1e9, 1e9])).log())
    assert -largest_score(rules) / 64 < beyond[0] < -200 and 16_000 < beyond[1] < 16_388
    logits = wanted.clamp(min=1e-9).log()
    assert bins.loss(logits, right) < bins.loss(logits.roll(1, 0), right) - 1


@slow
def test_a_network_of_bins_learns_the_mean_of_what_it_is_told():
    """Half of the time 100 and half of the time 900: 500, though neither is near."""
    bins = Bins(96, largest_score(Rules(3, 3)))
    logits = torch.zeros((1, 96), requires_grad=True)
    optimizer = torch.optim.Adam([logits], lr=0.1)
    told = torch.tensor([100.0, 900.0])
    for _ in range(600):
        optimizer.zero_grad()
        bins.loss(logits.expand(2, -1), told).backward()
        optimizer.step()
    assert bins(logits).item() == pytest.approx(500, abs=15)


def test_the_largest_score_is_that_of_a_full_chain():
    assert largest_score(Rules(2, 2)) == sum(4 * 2**k * (k + 1) for k in range(4))
    for rules in (Rules(2, 2), Rules(3, 3)):
        model = ZeroSettings.of(rules, "small").build().eval()
        with torch.no_grad():
            first = model.values(model(torch.zeros((1, rules.cells), dtype=torch.int32))[1])
        assert (first.abs() < 0.01 * largest_score(rules)).all()  # a new network expects little


# -- self-play ---------------------------------------------------------------------------------


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


@slow
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


@slow
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


@slow
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


@slow
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


@slow
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


def test_the_ring_keeps_the_last_positions():
    replay = Replay(10, LESSON_COLUMNS)
    for k in range(7):
        numbers = np.arange(3 * k, 3 * k + 3)
        policy = np.repeat(numbers[:, None], 4, axis=1).astype(np.float32)
        words, singles = numbers.astype(np.uint64), numbers.astype(np.float32)
        replay.add(Lessons(words, policy, singles, words, singles)._asdict())
    found = Lessons(**replay.sample(2000, np.random.default_rng(0)))
    assert set(found.states.tolist()) == set(range(11, 21))
    assert (found.states == found.worths).all() and (found.policy[:, 3] == found.worths).all()
    other = Replay(10, LESSON_COLUMNS)
    other.load(replay.tensors(), replay.following)
    again = other.sample(2000, np.random.default_rng(0))
    assert (again["states"] == found.states).all()


# -- training ----------------------------------------------------------------------------------


@slow
def test_what_is_stored_goes_on_as_if_nothing_had_happened(tmp_path):

    whole, part = (ZeroLearner(tiny(horizon=3), threads=2) for _ in range(2))
    for _ in range(5):
        whole.chunk(0.3)
    for _ in range(2):
        part.chunk(0.3)
    write_tensors(tmp_path / FILE, "zero", part.facts, part.tensors())
    again = ZeroLearner(part.settings, threads=2)
    again.resume(*ZeroLearner.read(tmp_path / FILE))
    for _ in range(3):
        again.chunk(0.3)
    assert again.facts | {"seconds": 0} == whole.facts | {"seconds": 0}
    for name, tensor in whole.tensors().items():
        assert np.array_equal(tensor, again.tensors()[name]), name


@slow
def test_values_mean_the_same_in_points_when_the_scale_changes():
    training = ZeroLearner(tiny(bins=0), threads=1)
    training.usual = 100.0
    training._rescale()
    boards = np.array([Game(Rules(2, 2), 1, index=k).board.packed for k in range(9)], np.uint64)
    before = training.network()(boards)[1] * training.scale
    training.usual = 120.0
    training._rescale()
    assert training.scale == pytest.approx(120.0)
    assert np.allclose(training.network()(boards)[1] * training.scale, before, rtol=1e-4)


@slow
@pytest.mark.parametrize("calls", [1, 17, 60])
def test_what_is_stopped_while_it_plays_is_as_before(monkeypatch, calls):
    training = ZeroLearner(tiny(horizon=3), threads=2)
    training.chunk(0.1)
    facts, tensors = training.facts, training.tensors()
    tensors = {name: tensor.copy() for name, tensor in tensors.items()}
    network, count = training.network(), [0]

    def counting(boards):
        count[0] += 1
        training.stopped = count[0] >= calls
        return network(boards)

    monkeypatch.setattr(training, "network", lambda: counting)
    part = training.chunk(0.1)
    assert part.moves == 0 and training.facts == facts
    assert all(np.array_equal(each, tensors[name]) for name, each in training.tensors().items())


@slow
def test_weights_that_are_taken_back_mean_the_same_in_points(monkeypatch):
    training = ZeroLearner(tiny(gate=1, bins=0), threads=1)
    monkeypatch.setattr(SelfPlay, "play_out", lambda self, network: [9])
    training.usual = 100.0
    training._rescale()
    boards = np.array([Game(Rules(2, 2), 1, index=k).board.packed for k in range(9)], np.uint64)
    training._keep_if_better()
    before = training.network()(boards)[1] * training.scale
    training.usual = 180.0
    training._rescale()
    training._keep_if_better()  # no better, so that the first weights come back
    assert training.scale == pytest.approx(180.0)
    assert np.allclose(training.network()(boards)[1] * training.scale, before, rtol=1e-4)


@slow
def test_weights_are_kept_only_if_the_median_is_better(monkeypatch):
    training = ZeroLearner(tiny(gate=1), threads=1)
    scores = iter([[10, 20, 30], [10, 15, 99], [10, 21, 22]])
    monkeypatch.setattr(SelfPlay, "play_out", lambda self, network: next(scores))
    kept = []
    for _ in range(3):
        training.chunk(0.0)
        kept.append(training.net.tensors()["model.moves.weight"].copy())
    assert training.best.median == 21 and training.best.scale == training.scale
    assert np.array_equal(kept[0], kept[1]) and not np.array_equal(kept[1], kept[2])


@slow
def test_zhou_plays_whole_games_without_drawing():
    settings = ZeroSettings.of(Rules(2, 2), "zhou", simulations=10, games=4, channels=8, blocks=1)
    assert (
        ZeroSettings.from_facts(json.loads(json.dumps(settings.facts, allow_nan=False))) == settings
    )
    assert (
        settings.at(0.0)[0] == 0.0
        and settings.trace == 1.0
        and PRESETS["zhou"]["simulations"] == 1600
    )
    worker = SelfPlay(settings, 4, 1)
    scores = worker.play_out(asked(frozen(settings.build()), settings.rules, CPU))
    assert len(scores) == 4 and min(scores) > 0


def exactly(training):
    """The exact mean score of the policy alone."""
    given = Loaded(training.network(), {"scale": training.scale})
    return evaluate_policy(Zero(training.settings.rules, given=given, simulations=0)).value


@slow
def test_self_play_gets_better():
    """On 2x2 perfect play is worth 66.1, and a network that knows nothing about half of it."""
    training = ZeroLearner(
        ZeroSettings.of(Rules(2, 2), "tiny", simulations=10, games=32), threads=1
    )
    before = exactly(training)
    for k in range(40):
        training.chunk(k / 40)
    after = exactly(training)
    assert before < 55 and after > 64


# -- the player --------------------------------------------------------------------------------


def stored(name, rules, **more):
    training = ZeroLearner(tiny(rules, **more), threads=1)
    training.scale = 50.0
    write_tensors(network_folder(name) / FILE, "zero", training.facts, training.tensors())
    return training


@slow
def test_a_network_is_played_with_the_settings_that_it_was_trained_with(own_home):
    rules = Rules(3, 2)
    training = stored("papers", rules, c1=1.25, c2=math.inf, backup="mean")
    boards = np.array([Game(rules, 1, index=k).board.packed for k in range(200)], np.uint64)
    player = make_player("zero:papers,simulations=12", rules)
    assert player.search_settings == {"c1": 1.25, "c2": math.inf, "backup": "mean"}
    assert player.spec == "zero:papers,simulations=12"
    given = Loaded(training.network(), {**training.facts, "c1": 0.2, "c2": 300.0, "backup": "best"})
    other = Zero(rules, given=given, simulations=12)
    told = Zero(rules, given=given, simulations=12, c1=1.25, c2=math.inf, backup="mean")
    found = player.values_many(boards, boards)
    assert np.array_equal(found, told.values_many(boards, boards), equal_nan=True)
    assert not np.array_equal(found, other.values_many(boards, boards), equal_nan=True)
    assert other.identity != told.identity
    half = make_player("zero:papers,simulations=12,c1=0.5", rules)
    assert half.search_settings == {"c1": 0.5, "c2": math.inf, "backup": "mean"}


@slow
def test_the_player_and_its_network(own_home):
    rules = Rules(3, 2)
    training = stored("a", rules)
    given = Loaded(training.network(), training.facts)
    boards = np.array([Game(rules, 1, index=k).board.packed for k in range(600)], np.uint64)
    for more in ("simulations=7", "simulations=0", "simulations=5,backup=mean"):
        player = make_player(f"zero:a,{more}", rules)
        options = dict(each.split("=") for each in more.split(","))
        options["simulations"] = int(options["simulations"])
        same = Zero(rules, given=given, **options)
        found = player.values_many(boards, boards)
        assert np.array_equal(found, same.values_many(boards, boards), equal_nan=True)
        assert (np.isnan(found) == ~legal_moves(boards, rules)).all()
        if options["simulations"]:
            assert (np.nansum(np.floor(found), axis=1) == options["simulations"]).all()
            assert player.draws and not player.symmetric
        else:
            assert np.allclose(np.nansum(found, axis=1), 1)
            assert player.symmetric and not player.draws
    with pytest.raises(ValueError, match="is not a supervised network"):
        make_player("supervised:a", rules)
    with pytest.raises(ValueError, match="there is no zero network for 2x5 in the package"):
        make_player("zero", Rules(2, 5))
    with pytest.raises(ValueError, match="the network a is for 3x2, the board is 4x4"):
        make_player("zero:a", Rules(4, 4))


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"blocks": 1_000_000}, "blocks is a number from 0 to 1000, not 1e"),
        ({"channels": 20_000}, "channels is a number from 1 to 4096, not 20000"),
        ({"channels": 4096}, "its weights are those of another network"),
        ({"bins": 10**12}, "bins is a number from 0 to 65536"),
        ({"blocks": True}, "it does not say what blocks is"),
        ({"buffer": 10**15}, "buffer is a number from 1 to"),
        ({"c2": "x"}, "it does not say what c2 is"),
        ({"reuse": float("nan")}, "reuse is a number from 0 to 1000, not nan"),
    ],
)
def test_a_network_is_as_large_as_its_file(own_home, monkeypatch, command, changed, why):
    """It is sketched and compared with the tensors in the file before it is made."""
    rules = Rules(2, 2)
    training = ZeroLearner(tiny(rules), threads=1)
    write_tensors(network_folder("a") / FILE, "zero", training.facts | changed, training.tensors())
    build = ZeroSettings.build

    def sketch(settings):
        assert torch.get_default_device().type == "meta"
        return build(settings)

    monkeypatch.setattr(ZeroSettings, "build", sketch)
    with pytest.raises(ValueError, match=f"is damaged: {why}"):
        make_player("zero:a", rules)
    code, _, error = command("train", "zero", "--out", "a", "--resume", "--moves", "10")
    assert code == 2 and why in error and len(error.splitlines()) == 1


@pytest.mark.parametrize(
    ("facts", "tensors", "why"),
    [
        ({"begun": []}, {}, "IndexError"),
        ({"following": 500}, {}, "there is no place 500 among 500 positions"),
        ({}, {"game.states": None}, "KeyError 'game.states'"),
        ({}, {"game.0.state": np.zeros((4, 9), np.uint64)}, "games are those of another training"),
        ({}, {"game.0.scores": np.zeros(8)}, "games are those of another training"),
        ({}, {"adam.moves.bias.exp_avg": np.zeros(1)}, "weights are those of another network"),
        ({"simulations": 100_000, "games": 1 << 20}, {}, "its games and positions take 107 TB of"),
    ],
)
def test_a_checkpoint_that_does_not_fit_is_told(own_home, command, facts, tensors, why):
    training = ZeroLearner(tiny(), threads=1)
    changed = {n: t for n, t in (training.tensors() | tensors).items() if t is not None}
    write_tensors(network_folder("a") / FILE, "zero", training.facts | facts, changed)
    code, _, error = command("train", "zero", "--out", "a", "--resume", "--moves", "10")
    assert code == 2 and why in error, error
    assert error.splitlines()[-1].startswith("lab2048: ")


@slow
def test_games_are_the_same_on_any_number_of_threads(own_home):
    rules = Rules(2, 2)
    stored("a", rules)
    player = make_player("zero:a,simulations=6", rules)
    one, two = (
        {game.index: game for game in play_games(player, iter(range(20)), 3, threads)}
        for threads in (1, 2)
    )
    assert one == two


@slow
def test_a_dead_end_has_no_values(own_home):
    rules = Rules(2, 2)
    stored("a", rules)
    dead = np.array([Board.parse("2 4/4 2").packed], np.uint64)
    for simulations in (0, 3):
        player = make_player(f"zero:a,simulations={simulations}", rules)
        assert np.isnan(player.values_many(dead, dead)).all()


# -- commands ----------------------------------------------------------------------------------


@slow
def test_train_and_evaluate(command, tmp_path, warm_home):
    picture = tmp_path / "a.svg"
    arguments = ["train", "zero", "--board", "2x2", "--preset", "tiny", "--simulations", "6"]
    arguments += ["--out", "a", "--threads", "1"]
    code, out, _ = command(
        *arguments,
        "--moves",
        "6k",
        "--parts",
        "2",
        "--against",
        "2x2",
        "--plot",
        str(picture),
        "--json",
    )
    found = json.loads(out)
    assert code == 0 and found["moves"] >= 6000 and len(found["log"]) >= 2
    assert 0 < found["log"][-1]["bare"]["agreement"] <= 1 and "<svg" in picture.read_text()
    assert found["exact"]["regret"] >= 0 and not any("exact" in each for each in found["log"])
    assert found["seconds_exact"] > 0
    code, _, error = command(*arguments, "--moves", "6k")
    assert code == 2 and "there is a network a already" in error
    resume = ["train", "zero", "--out", "a", "--resume", "--moves"]
    code, out, _ = command(*resume, "8k")
    assert code == 0 and read_facts(network_folder("a") / FILE)["moves"] >= 8000
    code, _, error = command(*resume, "8k")
    assert code == 0 and "there is nothing left to do" in error
    code, _, error = command(*resume, "9k", "--threads", "2")
    assert code == 2 and "a was begun with --threads 1" in error
    code, _, error = command(*resume, "9k", "--simulations", "7")
    assert code == 2 and "a was begun with --simulations 6, not 7" in error
    code, out, _ = command("train", "list")
    assert code == 0 and "tiny, 6 simulations" in out
    packed = tmp_path / "b.safetensors"
    assert command("train", "pack", "a", str(packed))[0] == 0
    players = ["zero:a,simulations=0", f"zero:{packed},simulations=0"]
    code, out, _ = command("evaluate", *players, "--board", "2x2", "--games", "30", "--json")
    results = json.loads(out)
    assert results[0]["score"] == results[1]["score"]


def test_bad_arguments_are_told_in_a_line(command, own_home):
    wrong = {
        (): "a training lasts for --moves, --steps or --minutes",
        ("--minutes", "-1"): "--minutes is a number above 0, not -1",
        ("--moves", "x"): "a number of moves is such as 5000",
        ("--moves", "1k", "--preset", "big"): "there is no preset 'big'",
        ("--moves", "1k", "--device", "cuda:9"): "there is no device 'cuda:9' here",
        ("--moves", "1k", "--resume"): "there is no network 3x3-zero to go on with",
        ("--moves", "1k", "--board", "9x9"): "9",
        ("--moves", "1k", "--rate", "nan"): "rate is a number from 1e-07 to 1, not nan",
        ("--moves", "1k", "--seed", "18446744073709551616"): "the seed of a training is a number",
    }
    for arguments, why in wrong.items():
        code, _, error = command("train", "zero", *arguments)
        assert code == 2 and why in error, (arguments, error)


@slow
def test_a_table_to_measure_against_has_to_be_there(command, own_home):
    code, _, error = command("train", "zero", "--moves", "1k", "--against", "3x3")
    assert code == 2 and "there is no table 3x3" in error


@slow
def test_bench_prints_every_figure(command, monkeypatch):
    from lab2048.bench import neural as bench_neural

    monkeypatch.setattr(bench_neural, "BOARD", Rules(2, 2))
    monkeypatch.setattr(bench_neural, "PRESETS", ("tiny",))
    monkeypatch.setattr(bench_neural, "VOTING", {"small": 4})
    monkeypatch.setattr(bench_neural, "GAMES", 20)
    monkeypatch.setattr(bench_neural, "REPEATS", 1)
    code, out, err = command("bench", "neural", "--json")
    assert code == 0, err
    found = json.loads(out)
    playing = found["self_play"]["tiny"]
    assert 1 < playing["mean_batch"] <= 64 and playing["moves_per_second"] > 1
    speed = playing["network_alone_evaluations_per_second"] / playing["evaluations_per_second"]
    assert playing["search_overhead"] == pytest.approx(speed - 1, abs=0.01)
    votes = found["voting"]["small"]
    assert votes["evaluations_per_second"] == pytest.approx(8 * votes["moves_per_second"], abs=8)
