"""What neural learners have in common, with one that is none of the package's own."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import torch
from torch import nn

import lab2048 as lab
from lab2048.learn import registry
from lab2048.learn.gradient import NetworkWithAdam, inputs
from lab2048.learn.learner import GAME, Learner
from lab2048.learn.network_files import FILE
from lab2048.learn.neural import NeuralLearner
from lab2048.learn.neural_settings import NeuralSettings
from lab2048.learn.settings import setting
from lab2048.players.registry import PLAYERS


class Linear(nn.Module):
    """Four numbers for each board, by one layer."""

    def __init__(self, cells):
        super().__init__()
        self.layer = nn.Linear(cells, 4)

    def forward(self, ranks):
        return self.layer(ranks.float())


@dataclass(frozen=True)
class GuessSettings(NeuralSettings):
    rate: float = setting(0.01, "How fast to learn", low=0)

    board: ClassVar[str] = "2x2"

    def new_network(self):
        return Linear(self.rules.cells)


class Guess(NeuralLearner):
    """Learn to like one move on boards that it remembers."""

    settings_class = GuessSettings

    def __init__(self, settings, threads=None):
        super().__init__(settings, threads, clip=1.0)
        self.seen = np.array([0x1100], np.uint64)

    def step(self, goal):
        found = self.net.model(inputs(self.seen, self.settings.rules, self.net.device))
        self.loss = nn.functional.cross_entropy(found, torch.zeros(len(found), dtype=torch.long))
        self.net.step(self.loss, self.settings.rate)
        self.done += 1

    def record(self):
        return {"loss": self.loss.item()}

    def tensors(self):
        return super().tensors() | {f"{GAME}seen": self.seen}

    def resume(self, facts, tensors):
        super().resume(facts, tensors)
        self.seen = tensors[f"{GAME}seen"]


@pytest.fixture
def guess():
    """The learner, registered for the time being."""
    lab.register_learner("guess", Guess)
    yield registry.find_learner("guess").load()
    del registry._learners["guess"], PLAYERS["guess"]
    for module in ("lab2048.learn.train", "lab2048.learn.learnt_player"):
        vars(sys.modules.get(module, sys)).pop("guess", None)


def test_a_gradient_is_clipped():
    def moved(clip):
        torch.manual_seed(1)
        net = NetworkWithAdam(nn.Linear(2, 1), torch.device("cpu"), clip=clip)
        (1e6 * net.model.weight.sum()).backward()
        net.step(1e6 * net.model(torch.ones(1, 2)).sum(), 0.1)
        return sum(each.grad.norm().item() ** 2 for each in net.model.parameters()) ** 0.5

    assert moved(0.5) == pytest.approx(0.5, rel=1e-3) and moved(None) > 1e5


def test_a_network_goes_on_as_if_nothing_had_happened(tmp_path, guess):
    whole, part = (guess(GuessSettings(lab.Rules(2, 2)), 1) for _ in range(2))
    for learner, steps in ((whole, 5), (part, 2)):
        for _ in range(steps):
            learner.step(None)
    part.save(tmp_path / FILE)
    facts, tensors = guess.read(tmp_path / FILE)
    again = guess(guess.settings_class.from_facts(facts), 1)
    again.resume(facts, tensors)
    for _ in range(3):
        again.step(None)
    assert again.facts == whole.facts and again.facts["updates"] == 5 and again.size == 20
    for name, tensor in whole.tensors().items():
        assert np.array_equal(tensor, again.tensors()[name]), name


def test_weights_of_another_network_are_told(tmp_path, guess):
    learner = guess(GuessSettings(lab.Rules(2, 2)), 1)
    learner.net.model = Linear(6)
    learner.save(tmp_path / FILE)
    with pytest.raises(ValueError, match="its weights are those of another network"):
        guess.read(tmp_path / FILE)


def test_the_seed_decides_the_first_weights():
    first, again, other = (GuessSettings(lab.Rules(2, 2), seed=s).build() for s in (1, 1, 2))
    assert torch.equal(first.layer.weight, again.layer.weight)
    assert not torch.equal(first.layer.weight, other.layer.weight)


def test_it_plays_and_is_packed_without_what_only_training_needs(own_home, tmp_path, guess):
    run = lab.train.guess(steps=3, out="g")
    board, packed = "2 2 / 4 .", tmp_path / "g.safetensors"
    learner = guess(run.settings, 1)
    learner.resume(*guess.read(run.path / FILE))
    wanted = learner.player().values(board)
    assert lab.player("guess:g", "2x2").values(board) == wanted
    assert set(guess.read_to_play(run.path / FILE)[1]) == {
        "model.layer.weight",
        "model.layer.bias",
    }
    assert lab.pack_network("g", packed) == f"guess:{packed}"
    (run.path / FILE).unlink()
    assert lab.player(f"guess:{packed}", "2x2").values(board) == wanted


def test_a_player_that_needs_the_games_is_not_packed(own_home, tmp_path, guess, monkeypatch):
    lab.train.guess(steps=3, out="g")
    monkeypatch.setattr(Guess, "player_of", classmethod(Learner.player_of.__func__))
    with pytest.raises(ValueError, match=r"cannot be packed: .* needs the tensor 'game\.seen'"):
        lab.pack_network("g", tmp_path / "g.safetensors")


def test_a_network_that_is_asked_while_it_learns_goes_on_learning(guess):
    learner = Guess(GuessSettings(lab.Rules(2, 2)))
    modes = []
    learner.net.model.layer.register_forward_hook(lambda m, _, __: modes.append(m.training))
    assert learner.net.model.training
    learner.player().choose("2 2 / . .")
    assert modes == [False] and learner.net.model.training
