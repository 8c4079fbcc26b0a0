"""What supervised learning is fed: boards, and how likely each move should be on them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lab2048.engine.arrays import Floats, Singles, Words

FAR = 40.0
"""A move loses at most this many units (`soft_shares`)."""


class Batch(NamedTuple):
    """Boards to learn from, and how likely each of the four moves should be on them."""

    boards: Words
    shares: Singles


def soft_shares(q: Floats, unit: float) -> Singles:
    """Shares of moves that fall by what they lose: a unit less is e times less. None of NaN.

    More than `FAR` units do not count, so that every legal move has a share.
    """
    lost = np.minimum((np.nanmax(q, axis=1, keepdims=True) - q) / unit, FAR)
    shares = np.nan_to_num(np.exp(-lost))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True), np.float32)
