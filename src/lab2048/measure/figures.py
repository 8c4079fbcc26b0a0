"""From games to figures: means with intervals, tiles reached, the distance from perfect play."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lab2048.engine.arrays import Counts, Flags, Floats, Words
from lab2048.engine.packed import ages_of
from lab2048.game import Board, Direction, Rules
from lab2048.measure.arena import Play, play_games, play_match, retrace
from lab2048.measure.intervals import clustered_interval, mean_interval, share_interval
from lab2048.measure.journal import Played
from lab2048.players.player import Player
from lab2048.solver.exact_value import check_exact, evaluate_policy
from lab2048.solver.policy_walk import Layer
from lab2048.solver.problem import Problem
from lab2048.solver.table import Table
from lab2048.solver.tables import check_answers

Progress = Callable[[str, int, int | None], object]

GAPS = (0.0, 500.0, 1000.0, 1500.0, np.inf)
"""The bins of d(s) in the 2022 paper."""
BINS = 10
"""Number of bins of equal count, and of bins by age."""
WORST = 5
"""Number of mistakes listed, the largest."""


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


# -- against a table -----------------------------------------------------------------------------


class Judged(NamedTuple):
    """Every move of some games, compared with perfect play."""

    game: Counts
    """The index of its game, from 0."""
    board: Words
    move: Counts
    age: Counts
    regret: Floats
    gap: Floats
    """Best less worst q of the legal moves."""
    optimal: Flags


def judge(games: Sequence[Played], seed: int, table: Table, threads: int | None = None) -> Judged:
    """Look up every move of games in a table."""
    boards = [retrace(table.rules, seed, game).boards[:-1] for game in games]
    board = np.concatenate(boards)
    move = np.frombuffer(b"".join(game.moves for game in games), np.uint8).astype(np.int64)
    q = table.probe_many(board, threads=threads).q
    assert q is not None
    best, least = np.nanmax(q, axis=1), np.nanmin(q, axis=1)
    regret = best - q[np.arange(len(q)), move]
    optimal = regret <= table.tolerance(best)
    return Judged(
        np.repeat(np.arange(len(games)), [len(each) for each in boards]),
        board,
        move,
        ages_of(board),
        np.where(optimal, 0.0, regret),
        np.where(best - least <= table.tolerance(best), 0.0, best - least),
        optimal,
    )


def against_table(judged: Judged, games: int, rules: Rules) -> dict[str, Any]:
    """Regret and agreement of judged games, overall and in bins."""
    per_game = np.bincount(judged.game, judged.regret, games)
    return {
        "regret_per_game": {"mean": float(per_game.mean()), "ci95": mean_interval(per_game)},
        "regret_per_move": float(judged.regret.mean()),
        "agreement": float(judged.optimal.mean()),
        "by_gap": _by_gap(judged),
        "by_equal_count": _by_bins(judged, judged.gap, _quantiles(judged.gap[judged.gap > 0])),
        "by_age": _by_bins(judged, judged.age.astype(float), _even(judged.age)),
        "worst": worst_moves(judged, rules),
    }


def _bin(judged: Judged, inside: Flags, low: float, high: float) -> dict[str, Any]:
    """The figures of the moves in a bin."""
    n = int(inside.sum())
    right = judged.optimal[inside]
    return {
        "above": low,
        "to": None if np.isinf(high) else high,
        "moves": n,
        "share": n / len(inside),
        "agreement": float(right.mean()) if n else None,
        "ci95": clustered_interval(judged.game[inside], right),
        "regret_per_move": float(judged.regret[inside].mean()) if n else None,
        "regret_share": float(judged.regret[inside].sum() / max(judged.regret.sum(), 1e-300)),
    }


def _by_gap(judged: Judged) -> list[dict[str, Any]]:
    """The bins of the 2022 paper, after one for positions where all moves are equally good."""
    bins = [_bin(judged, judged.gap == 0, 0.0, 0.0)]
    return bins + _by_bins(judged, judged.gap, np.array(GAPS))


def _by_bins(judged: Judged, by: Floats, ends: Floats) -> list[dict[str, Any]]:
    """The figures of the bins (low, high] between these edges."""
    pairs = zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)
    return [_bin(judged, (by > low) & (by <= high), low, high) for low, high in pairs]


def _quantiles(values: Floats) -> Floats:
    """The edges of bins that hold about equally many values."""
    if not len(values):
        return np.array([0.0, 0.0])
    inner = np.quantile(values, np.linspace(0, 1, BINS + 1)[1:])
    return np.unique(np.append(0.0, inner))


def _even(ages: Counts) -> Floats:
    """The edges of bins of equal width."""
    return np.linspace(0, int(ages.max(initial=BINS)), BINS + 1).round()


def worst_moves(judged: Judged, rules: Rules) -> list[dict[str, Any]]:
    """The largest mistakes, each board once."""
    found: dict[int, dict[str, Any]] = {}
    for place in np.argsort(-judged.regret, kind="stable").tolist():
        if len(found) == WORST or judged.regret[place] == 0:
            break
        key = int(judged.board[place])
        board = Board.from_packed(key, rules.rows, rules.cols)
        found.setdefault(
            key,
            {
                "board": str(board),
                "move": str(Direction(int(judged.move[place]))),
                "regret": float(judged.regret[place]),
                "index": int(judged.game[place]),
            },
        )
    return list(found.values())
