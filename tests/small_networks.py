"""Small networks for tests."""

from __future__ import annotations

import numpy as np

from lab2048.game import Rules
from lab2048.learn.ntuple import Network, new_weights
from lab2048.learn.ntuple_files import Stored
from lab2048.learn.ntuple_settings import NTupleSettings


def cells_of(network):
    return [[int(cell, 16) for cell in each] for each in network.tuples]


def entry(network, name):
    """Where a weight of a naive network is among those of the package."""
    number, way, tiles = name
    begin = way * network.size + sum(16 ** len(each) for each in network.tuples[:number])
    return begin + sum((tile.bit_length() - 1) << 4 * k for k, tile in enumerate(tiles) if tile)


def random_grids(rules, n, seed=0, largest=6):
    rng = np.random.default_rng(seed)
    ranks = rng.integers(0, largest, (n, rules.rows, rules.cols))
    return [[[1 << int(r) if r else 0 for r in row] for row in grid] for grid in ranks]


def small_settings(method="tc", seed=1, **more):
    rules = Rules(3, 3)
    return NTupleSettings(rules, Network.of("012 345 0134", rules), method, seed=seed, **more)


def stored_example(stride=4, seed=0, method="tc"):
    """A network as it may be in the middle of a training, without any kernel."""
    settings = small_settings(method)
    weights = new_weights(settings.network, stride).reshape(-1, stride)
    rng = np.random.default_rng(seed)
    some = rng.choice(len(weights), 5000, replace=False)
    weights[some] = rng.normal(0, 300, (5000, stride))
    weights[some, -1] = rng.integers(1, 100, 5000)
    facts = settings.facts | {"games": 10, "moves": 99, "seconds": 1.0, "phase": 0, "reach": {}}
    return Stored(settings.network, weights.reshape(-1), stride, facts)
