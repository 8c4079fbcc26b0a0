"""How far a player is from perfect play on a board that is solved: exactly, or by judged games."""

from __future__ import annotations

from typing import Any

import numpy as np

from lab2048.measure.arena import play_games
from lab2048.measure.figures import judge
from lab2048.measure.intervals import mean_interval
from lab2048.players.player import Player
from lab2048.solver.exact_value import check_exact, evaluate_policy
from lab2048.solver.policy_walk import Layer
from lab2048.solver.problem import ON_THE_FLY
from lab2048.solver.table import Table

LIKELY = 1e-7
"""A board that fewer games come to is not compared: all of them together hardly count, and most
boards are such."""
EXACT_CELLS = 10
"""Games on larger boards come to too many different boards to look at each of them."""
GAMES = 500
"""Games that tell how strong a player is in the course of a training."""


def exact_at_records(player: Player, boards: str) -> bool:
    """Return whether every record of a training is measured exactly (`Learner.exact_records`)."""
    small = player.rules.cells <= ON_THE_FLY
    return (boards == "all" or (boards == "small" and small)) and has_known_chances(player)


def exact_at_end(player: Player) -> bool:
    """Return whether the exact value of a player can be told within minutes."""
    return player.rules.cells <= EXACT_CELLS and has_known_chances(player)


def has_known_chances(player: Player) -> bool:
    """Return whether a player tells the chances of its moves: it draws nothing, or knows how."""
    try:
        check_exact(player)
    except ValueError:
        return False
    return True


def exactly(player: Player, table: Table, threads: int | None = None) -> dict[str, Any]:
    """Return the exact mean score of a player, its regret, and the errors of its values.

    Errors are of the value of the best move, if the player's values are expected scores. They are
    compared with those of perfect play on the boards that games of the player come to and as often
    as they do; those that are too rare to count are left out.
    """
    sums = np.zeros(3)

    def compare(layer: Layer) -> None:
        """Add up errors, and how many there are."""
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
    """Return how a player plays, by games whose moves are judged with a table.

    The mean is what perfect play is worth, less what the moves of the games have lost: scores of
    the same games differ far more by luck.
    """
    playing = play_games(player, iter(range(GAMES)), 0, threads)
    games = sorted(playing, key=lambda game: game.index)
    judged = judge(games, 0, table)
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
    """Return what perfect play is worth from the start."""
    found = table.start_value["start"]
    assert found is not None
    return found
