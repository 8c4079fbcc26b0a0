"""The networks of the supervised study."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from lab2048.game import Board, Rules
from lab2048.learn.encoding import ranks
from lab2048.learn.gradient import parameters, pick_device
from lab2048.learn.supervised_settings import SupervisedSettings
from tests.small_networks import random_grids

FOUR = Rules(4, 4)


SIZES = {"cnn4": 820_228, "cnn5": 818_074, "cnn5_sym": 875_794, "mlp4": 823_388, "mlp5": 3_807_236}


@pytest.mark.parametrize(("name", "size"), SIZES.items())
def test_networks_have_as_many_weights_as_in_the_study(name, size):
    model = SupervisedSettings(FOUR, name).build()
    assert parameters(model) == size
    assert model(torch.zeros((3, 16), dtype=torch.int32)).shape == (3, 4)


def test_the_board_of_the_study_as_planes():
    board = Board.parse("8192 32 32 4/16384 256 8 2/4096 512 2 ./2048 1024 . 2")
    model = SupervisedSettings(FOUR, "cnn4").build()
    found = model.planes(torch.from_numpy(ranks(np.array([board.packed], np.uint64), FOUR)))[0]
    assert found.shape == (16, 4, 4) and found.sum() == 16
    assert found[0].tolist() == [[0] * 4, [0] * 4, [0, 0, 0, 1], [0, 0, 1, 0]]
    assert found[5].tolist() == [[0, 1, 1, 0], [0] * 4, [0] * 4, [0] * 4]
    assert found[13, 0, 0] == found[14, 1, 0] == 1


def naive_convolution(x, weight, bias, zeros):
    """Cell by cell; x is of shape (channels, rows, cols)."""
    left, right, top, bottom = zeros
    x = np.pad(x, ((0, 0), (top, bottom), (left, right)))
    rows, cols = x.shape[1] - 1, x.shape[2] - 1
    out = np.empty((len(weight), rows, cols))
    for r in range(rows):
        for c in range(cols):
            out[:, r, c] = (weight * x[:, r : r + 2, c : c + 2]).sum(axis=(1, 2, 3)) + bias
    return out


@pytest.mark.parametrize("name", ["cnn4", "cnn5_sym"])
@pytest.mark.parametrize("rules", [FOUR, Rules(3, 2)])
def test_convolutions_see_what_is_above_and_left(name, rules):
    """In `cnn4` and `cnn5` zeros are put on the left and on the top only."""
    model = SupervisedSettings(rules, name, channels=5).build()
    board = np.array([Board.parse(random_grids(rules, 1)[0]).packed], np.uint64)
    one = ranks(board, rules)
    x = np.eye(model.planes.eye.shape[0])[one[0]].reshape(rules.rows, rules.cols, -1)
    x = x.transpose(2, 0, 1)
    zeros = (1, 1, 1, 1) if name == "cnn5_sym" else (1, 0, 1, 0)
    for layer in model.convolutions:
        weight, bias = layer.weight.detach().numpy(), layer.bias.detach().numpy()
        x = np.maximum(naive_convolution(x, weight, bias, zeros), 0)
    last = model.last.weight.detach().numpy() @ x.reshape(-1) + model.last.bias.detach().numpy()
    assert np.allclose(model(torch.from_numpy(one)).detach().numpy()[0], last, atol=1e-5)


def test_settings_that_make_no_sense():
    with pytest.raises(ValueError, match="there is no network 'cnn6'; did you mean cnn"):
        SupervisedSettings(FOUR, "cnn6")
    with pytest.raises(ValueError, match="mlp4 has no channels to choose"):
        SupervisedSettings(FOUR, "mlp4", channels=3)
    with pytest.raises(ValueError, match="there is no device 'nonsense' here"):
        pick_device("nonsense")
    with pytest.raises(ValueError, match="there is no device 'cuda:77' here"):
        pick_device("cuda:77")
