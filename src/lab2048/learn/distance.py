"""How far a player is from perfect play on a solved board: exactly, or by judged games."""

from __future__ import annotations

from typing import Any

import numpy as np

from lab2048.measure.arena import play_games
from lab2048.measure.intervals import mean_interval
from lab2048.measure.regret import judge
from lab2048.players.player import Player
from lab2048.solver.exact_value import check_exact, evaluate_policy
from lab2048.solver.policy_walk import Layer
from lab2048.solver.problem import ON_THE_FLY
from lab2048.solver.table import Table

LIKELY = 1e-7
"""Values are not compared on boards that a game reaches with a smaller probability: most boards are
so rare, but together they hardly count."""
EXACT_CELLS = 10
"""On larger boards, games reach too many different boards to enumerate."""
GAMES = 500
"""The number of judged games per measurement."""


def exact_at_records(player: Player, boards: str) -> bool:
    """Return whether every record is measured exactly; `boards` is `Learner.exact_records`."""
    small = player.rules.cells <= ON_THE_FLY
    return (boards == "all" or (boards == "small" and small)) and has_known_chances(player)


def exact_at_end(player: Player) -> bool:
    """Return whether the exact value of a player can be computed within minutes."""
    return player.rules.cells <= EXACT_CELLS and has_known_chances(player)


def has_known_chances(player: Player) -> bool:
    """Return whether the probabilities of a player's moves are known."""
    try:
        check_exact(player)
    except ValueError:
        return False
    return True


def exactly(player: Player, table: Table, threads: int | None = None) -> dict[str, Any]:
    """Return the exact mean score of a player, its regret, and the errors of its values.

    If the player's values are expected scores, that of its best move is compared with the value of
    perfect play. Errors are averaged over the boards that its games reach, weighted by how often
    they do; boards too rare to count are left out.
    """
    sums = np.zeros(3)

    def compare(layer: Layer) -> None:
        """Add up the weights of boards, and their weighted errors."""
        alive = layer.chances.any(axis=1) & (layer.masses >= LIKELY)
        states, masses = layer.states[alive], layer.masses[alive]
        if len(states) and player.points:
            found = np.nanmax(player.values_many(states, np.zeros_like(states)), axis=1)
            error = found - table.probe_many(states, moves=False, threads=threads).value
            sums[:] += masses.sum(), (masses * error).sum(), (masses * np.abs(error)).sum()

    exact = evaluate_policy(player, threads=threads, visit=compare)
    best = perfect_value(table)
    errors = {}
    if player.points:
        errors = {
            "bias": float(sums[1] / sums[0]),
            "error": float(sums[2] / sums[0]),
            "compared": float(sums[0] / exact.moves),
        }
    return {
        "mean": exact.value,
        "regret": best - exact.value,
        "share": exact.value / best,
        **errors,
        "reach": {str(tile): chance for tile, chance in exact.reach.items()},
    }


def by_games(player: Player, table: Table, threads: int | None = None) -> dict[str, Any]:
    """Return how well a player plays, by games whose moves are judged with a table.

    The mean is the value of perfect play minus the mean summed regret of the games. It varies far
    less than their mean score, which depends on luck.
    """
    playing = play_games(player, iter(range(GAMES)), 0, threads)
    games = sorted(playing, key=lambda game: game.index)
    judged = judge(games, 0, table, threads)
    lost = np.bincount(judged.game, judged.regret, len(games))
    best = perfect_value(table)
    low, high = mean_interval(lost) or (0.0, 0.0)
    return {
        "mean": best - float(lost.mean()),
        "ci95": [best - high, best - low],
        "regret_per_move": float(judged.regret.mean()),
        "agreement": float(judged.optimal.mean()),
    }


def perfect_value(table: Table) -> float:
    """Return the value of perfect play from the start."""
    found = table.start_value["start"]
    assert found is not None
    return found
