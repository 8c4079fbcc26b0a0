"""From games to figures: means with intervals, tiles reached, and the distance from perfect play.

Intervals are of 95%: of means by the bootstrap, of shares by Wilson's formula.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lab2048.arena import Played, retrace
from lab2048.game import Board, Direction, Rules
from lab2048.solve.table import Table

Floats = NDArray[np.float64]

RESAMPLES = 2000
GAPS = (0.0, 500.0, 1000.0, 1500.0, np.inf)
"""The bins of d(s) in the 2022 paper."""
BINS = 10
"""Bins of equal count, and of age."""
WORST = 5
"""As many of the largest mistakes are told."""


# -- intervals -----------------------------------------------------------------------------------


def mean_interval(values: ArrayLike, seed: int = 0) -> list[float] | None:
    """The 95% interval of a mean, by the percentile bootstrap; None for less than two values."""
    data = np.asarray(values, np.float64)
    n = len(data)
    if n < 2:
        return None
    rng = np.random.default_rng(seed)
    means = np.empty(RESAMPLES)
    step = max(1, 2_000_000 // n)
    for begin in range(0, RESAMPLES, step):
        size = min(step, RESAMPLES - begin)
        means[begin : begin + size] = data[rng.integers(0, n, (size, n))].mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return [float(low), float(high)]


def share_interval(successes: int, trials: int) -> list[float]:
    """The 95% interval of a share (Wilson 1927)."""
    z = 1.959963984540054
    share = successes / trials
    centre = share + z * z / (2 * trials)
    half = z * np.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    scale = 1 + z * z / trials
    low = 0.0 if successes == 0 else float((centre - half) / scale)
    high = 1.0 if successes == trials else float((centre + half) / scale)
    return [low, high]


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


def _reached(tiles: NDArray[np.int64]) -> list[int]:
    """Every tile from the smallest largest tile of a game to the largest."""
    low, high = int(tiles.min()), int(tiles.max())
    return [1 << rank for rank in range(low.bit_length() - 1, high.bit_length())]


def compare(games: Sequence[Played], others: Sequence[Played]) -> dict[str, Any]:
    """The difference in score of two players, game by game with the same seeds."""
    scores = {game.index: game.score for game in others}
    differences = [game.score - scores[game.index] for game in games if game.index in scores]
    return {"mean": float(np.mean(differences)), "ci95": mean_interval(differences)}


# -- against a table -----------------------------------------------------------------------------


class Judged(NamedTuple):
    """Every move of some games, against perfect play."""

    game: NDArray[np.int64]
    """Whose it is, as a number from 0."""
    board: NDArray[np.uint64]
    move: NDArray[np.int64]
    age: NDArray[np.int64]
    regret: Floats
    gap: Floats
    """Best less worst q of the legal moves."""
    optimal: NDArray[np.bool_]


def judge(games: Sequence[Played], seed: int, table: Table) -> Judged:
    """Look up every move of games in a table."""
    boards = [retrace(table.rules, seed, game).boards[:-1] for game in games]
    board = np.concatenate(boards)
    move = np.frombuffer(b"".join(game.moves for game in games), np.uint8).astype(np.int64)
    q = table.probe_many(board).q
    assert q is not None
    best, least = np.nanmax(q, axis=1), np.nanmin(q, axis=1)
    regret = best - q[np.arange(len(q)), move]
    optimal = regret <= table.tolerance(best)
    return Judged(
        np.repeat(np.arange(len(games)), [len(each) for each in boards]),
        board,
        move,
        ages_of(board, table.rules),
        np.where(optimal, 0.0, regret),
        np.where(best - least <= table.tolerance(best), 0.0, best - least),
        optimal,
    )


def ages_of(boards: NDArray[np.uint64], rules: Rules) -> NDArray[np.int64]:
    """The sum of the tiles of packed boards."""
    shifts = np.arange(rules.cells, dtype=np.uint64) * np.uint64(4)
    ranks = (boards[:, None] >> shifts) & np.uint64(15)
    tiles = np.where(ranks > 0, np.left_shift(np.uint64(1), ranks), 0)
    return np.asarray(tiles.sum(axis=1), np.int64)


def against_table(judged: Judged, games: int, rules: Rules) -> dict[str, Any]:
    """Regret and agreement of games that were judged, together and in bins."""
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


def _bin(judged: Judged, inside: NDArray[np.bool_], low: float, high: float) -> dict[str, Any]:
    """What the moves of a bin have in common."""
    n = int(inside.sum())
    right = int(judged.optimal[inside].sum())
    return {
        "above": low,
        "to": None if np.isinf(high) else high,
        "moves": n,
        "share": n / len(inside),
        "agreement": right / n if n else None,
        "ci95": share_interval(right, n) if n else None,
        "regret_per_move": float(judged.regret[inside].mean()) if n else None,
        "regret_share": float(judged.regret[inside].sum() / max(judged.regret.sum(), 1e-300)),
    }


def _by_gap(judged: Judged) -> list[dict[str, Any]]:
    """The bins of the 2022 paper, after the moves of which none was worse than another."""
    bins = [_bin(judged, judged.gap == 0, 0.0, 0.0)]
    return bins + _by_bins(judged, judged.gap, np.array(GAPS))


def _by_bins(judged: Judged, by: Floats, ends: Floats) -> list[dict[str, Any]]:
    """Bins with these ends, each without its lower and with its upper one."""
    pairs = zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)
    return [_bin(judged, (by > low) & (by <= high), low, high) for low, high in pairs]


def _quantiles(values: Floats) -> Floats:
    """The ends of bins that hold about as many values each."""
    if not len(values):
        return np.array([0.0, 0.0])
    inner = np.quantile(values, np.linspace(0, 1, BINS + 1)[1:])
    return np.unique(np.append(0.0, inner))


def _even(ages: NDArray[np.int64]) -> Floats:
    """The ends of bins of the same width."""
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
                "game": int(judged.game[place]),
            },
        )
    return list(found.values())
