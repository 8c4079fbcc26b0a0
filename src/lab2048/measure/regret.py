"""Regret: what the moves of games gave away, by the table of their board.

A player's mean score and its mean summed regret add up to what perfect play scores. (The regret of
a player over all games, without playing any: `lab2048.solver.exact_value`.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lab2048.engine.arrays import Counts, Flags, Floats, Words
from lab2048.engine.packed import ages_of
from lab2048.game import Board, Direction, Rules
from lab2048.measure.arena import retrace
from lab2048.measure.intervals import clustered_interval, mean_interval
from lab2048.measure.journal import Played
from lab2048.solver.table import Table

GAPS = (0.0, 500.0, 1000.0, 1500.0, np.inf)
"""The bins of d(s) in the 2022 paper."""
BINS = 10
"""Number of bins of equal count, and of bins by age."""
WORST = 5
"""Number of mistakes listed, the largest."""


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
