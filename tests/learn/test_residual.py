"""The network of the 2022 paper, and values as distributions over bins."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from lab2048.game import Game, Rules
from lab2048.learn.gradient import asked, inputs, parameters
from lab2048.learn.residual import Bins, frozen, largest_score
from lab2048.learn.zero_settings import PRESETS, ZeroSettings

CPU = torch.device("cpu")


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


@pytest.mark.slow
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
