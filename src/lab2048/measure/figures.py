"""From games to figures: means with intervals, tiles reached, the distance from perfect play."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lab2048.engine.arrays import Counts
from lab2048.measure.arena import Play, play_games, play_match
from lab2048.measure.intervals import mean_interval, share_interval
from lab2048.measure.journal import Played
from lab2048.measure.regret import against_table, judge
from lab2048.players.player import Player
from lab2048.solver.exact_value import check_exact, evaluate_policy
from lab2048.solver.policy_walk import Layer
from lab2048.solver.problem import Problem
from lab2048.solver.table import Table
from lab2048.solver.tables import check_answers

Progress = Callable[[str, int, int | None], object]


# -- everything about a player -------------------------------------------------------------------


class Measured(NamedTuple):
    """The figures of a player, and the games they come from."""

    figures: dict[str, Any]
    games: list[Played]


def measure(  # noqa: PLR0913
    player: Player,
    games: int = 100,
    seed: int = 1,
    *,
    table: Table | None = None,
    exact: bool = False,
    threads: int | None = None,
    journal: Path | None = None,
    progress: Progress = lambda what, done, total: None,
    play: Play = play_games,
) -> Measured:
    """Play games of a player and measure them; against perfect play, if there is a table.

    `exact` asks for the exact mean score as well. `journal` and `play` are those of `play_match`.
    `progress` is called with the name of the current step, the amount done, and the total.
    """
    if table is not None:
        check_answers(table, Problem.of(player.rules))
    if exact:
        check_exact(player)

    def note(done: int) -> None:
        progress(player.spec, done, games)

    match = play_match(
        player, games, seed, threads=threads, journal=journal, progress=note, play=play
    )
    figures: dict[str, Any] = {
        "player": player.spec,
        "board": player.rules.name,
        "p4": player.rules.p4,
        "games": len(match.games),
        "seed": int(seed),
        **summarise(match.games),
        "moves_per_second": match.moves_per_second,
        "timed": player.timed,
        "exact": _exactly(player, table, threads, progress) if exact else None,
        "optimal": None,
    }
    if table is not None:
        judged = judge(match.games, seed, table, threads)
        figures["optimal"] = against_table(judged, games, player.rules)
    return Measured(figures, match.games)


def _exactly(
    player: Player, table: Table | None, threads: int | None, progress: Progress
) -> dict[str, Any]:
    """The exact figures of a player."""

    def note(layer: Layer) -> None:
        progress(f"{player.spec}, exactly: age {layer.age}", 0, None)

    found = evaluate_policy(player, threads=threads, visit=note)
    found.optimal_value = None if table is None else table.start_value["start"]
    return found.as_json()


# -- games ---------------------------------------------------------------------------------------


def summarise(games: Sequence[Played]) -> dict[str, Any]:
    """Scores, tiles and moves of games."""
    scores = np.array([game.score for game in games], np.float64)
    tiles = np.array([game.max_tile for game in games])
    n = len(games)
    return {
        "score": {
            "mean": float(scores.mean()),
            "ci95": mean_interval(scores),
            "sd": float(scores.std(ddof=1)) if n > 1 else None,
            "median": float(np.median(scores)),
            "min": int(scores.min()),
            "max": int(scores.max()),
        },
        "max_tile": {"mean": float(tiles.mean()), "ci95": mean_interval(tiles)},
        "moves": {"mean": float(np.mean([len(game.moves) for game in games]))},
        "reach": {str(tile): _share(int((tiles >= tile).sum()), n) for tile in _reached(tiles)},
    }


def _share(successes: int, trials: int) -> dict[str, Any]:
    return {"rate": successes / trials, "ci95": share_interval(successes, trials)}


def _reached(tiles: Counts) -> list[int]:
    """Every tile from the lowest maximum tile of the games to the highest."""
    low, high = int(tiles.min()), int(tiles.max())
    return [1 << rank for rank in range(low.bit_length() - 1, high.bit_length())]


def reach_rate(figures: Mapping[str, Any], tile: int) -> float:
    """The share of games that made a tile; `reach` starts at one that every game made."""
    reach = figures["reach"]
    if str(tile) in reach:
        return float(reach[str(tile)]["rate"])
    return float(tile < min(map(int, reach)))


WHY_LOSSES_EXCEED = (
    "A sampled loss may exceed what perfect play scores: each move's loss is an expected value and "
    "games are samples, so that mean score and mean loss add up to it only in the long run"
)
"""Footnote of tables with losses estimated from games."""


def order(figures: Mapping[str, Any]) -> float:
    """Sort key, best player first: minus the exact mean where it is known, else minus the mean."""
    exact = figures["exact"]
    return -float(exact["value"] if exact else figures["score"]["mean"])


def compare(games: Sequence[Played], others: Sequence[Played]) -> dict[str, Any]:
    """The difference in score of two players, game by game with the same seeds."""
    scores = {game.index: game.score for game in others}
    differences = [game.score - scores[game.index] for game in games if game.index in scores]
    return {"mean": float(np.mean(differences)), "ci95": mean_interval(differences)}
