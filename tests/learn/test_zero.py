"""Self-play: what it learns from, how it goes on, and that it gets better."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from lab2048.game import Game, Rules
from lab2048.learn.gradient import asked
from lab2048.learn.network_files import FILE, write_tensors
from lab2048.learn.neural_players import Loaded, Zero
from lab2048.learn.residual import frozen
from lab2048.learn.selfplay import (
    SelfPlay,
)
from lab2048.learn.zero import ZeroLearner
from lab2048.learn.zero_settings import PRESETS, ZeroSettings
from lab2048.solver.exact_value import evaluate_policy
from tests.learn.tiny_zero import tiny

CPU = torch.device("cpu")


# -- training ----------------------------------------------------------------------------------


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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
