"""How far a network is from perfect play, exactly, on a board that is solved."""

from __future__ import annotations

from typing import Any

import numpy as np

from lab2048.learn.play import NTuple
from lab2048.learn.training import Training
from lab2048.solve.policy import Layer, evaluate_policy
from lab2048.solve.table import Table

LIKELY = 1e-7
"""A board that fewer games come to is not compared: all of them together hardly count, and most
boards are such."""


def distance(training: Training, table: Table, threads: int | None = None) -> dict[str, Any]:
    """The exact mean score of what was learnt so far, its regret, and the errors of its values.

    The player makes the best move by the network, each of several equally good ones alike. Errors
    are of the value of the best move, compared with that of perfect play, on the boards that games
    of the player come to and as often as they do; those that are too rare to count are left out.
    """
    stored = training.stored()
    player = NTuple(stored.rules, given=stored, ties="split", downgrade="off")
    sums = np.zeros(3)

    def compare(layer: Layer) -> None:
        """Add up errors, and how many there are."""
        alive = layer.chances.any(axis=1) & (layer.masses >= LIKELY)
        states, masses = layer.states[alive], layer.masses[alive]
        if len(states):
            found = np.nanmax(player.values_many(states, np.zeros_like(states)), axis=1)
            error = found - table.probe_many(states, moves=False, threads=threads).value
            sums[:] += masses.sum(), (masses * error).sum(), (masses * np.abs(error)).sum()

    exact = evaluate_policy(player, threads=threads, visit=compare)
    best = table.start_value["start"]
    assert best is not None
    return {
        "exact": {
            "mean": exact.value,
            "regret": best - exact.value,
            "share": exact.value / best,
            "bias": float(sums[1] / sums[0]),
            "error": float(sums[2] / sums[0]),
            "compared": float(sums[0] / exact.moves),
            "reach": {str(tile): chance for tile, chance in exact.reach.items()},
        }
    }
