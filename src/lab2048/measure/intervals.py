"""95% intervals: of means, of shares of games, and of shares of moves that come from games.

Quantiles are SciPy's. The intervals are written out: `scipy.stats`, which has most of them, takes a
quarter of a second more to load, and its bootstrap would draw other resamples for the same seed.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from lab2048.engine.arrays import Counts, Flags

RESAMPLES = 2000
UPPER = 0.975
"""The quantile at the upper end of an interval of 95%."""


def mean_interval(values: ArrayLike, seed: int = 0) -> list[float] | None:
    """The 95% interval of a mean, by the percentile bootstrap; None for fewer than two values."""
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


def student_half_width(values: ArrayLike) -> float:
    """Half the 95% interval of a mean (Student's t); NaN for fewer than two values."""
    from scipy.special import stdtrit

    found = np.asarray(values, np.float64)
    n = len(found)
    if n < 2:
        return math.nan
    return float(stdtrit(n - 1, UPPER) * found.std(ddof=1) / math.sqrt(n))


def share_interval(successes: int, trials: int) -> list[float]:
    """The 95% interval of a share (Wilson 1927)."""
    z = _normal_quantile()
    share = successes / trials
    centre = share + z * z / (2 * trials)
    half = z * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    scale = 1 + z * z / trials
    low = 0.0 if successes == 0 else (centre - half) / scale
    high = 1.0 if successes == trials else (centre + half) / scale
    return [low, high]


def clustered_interval(group: Counts, right: Flags) -> list[float] | None:
    """The 95% interval of a share of moves, clustered by game.

    Moves of one game are correlated, so games are the units (a ratio of two means, linearised); if
    all or none are right it is Wilson's, with the number of games as the number of trials. None for
    fewer than two games.
    """
    trials = np.bincount(group)
    hits = np.bincount(group, right)[trials > 0]
    trials = trials[trials > 0]
    games, share = len(trials), float(hits.sum() / max(trials.sum(), 1))
    if games < 2:
        return None
    if share in (0.0, 1.0):
        return share_interval(round(share * games), games)
    squares = float(((hits - share * trials) ** 2).sum())
    half = _normal_quantile() * math.sqrt(squares * games / (games - 1)) / float(trials.sum())
    return [max(0.0, share - half), min(1.0, share + half)]


def _normal_quantile() -> float:
    """Half a normal 95% interval in standard deviations, 1.95996..."""
    from scipy.special import ndtri

    return float(ndtri(UPPER))
