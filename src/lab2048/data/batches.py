"""Batches for supervised learning: boards, and the target probabilities of their moves."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lab2048.engine.arrays import Floats, Singles, Words

FAR = 40.0
"""Losses are capped at this many units (`soft_shares`)."""


class Batch(NamedTuple):
    """Boards to learn from, and the target probabilities of their four moves."""

    boards: Words
    shares: Singles


def soft_shares(q: Floats, unit: float) -> Singles:
    """Return the softmax of q / `unit` over the moves of each board; NaN gets no share.

    Losses are capped at `FAR` units, so that every legal move has a share.
    """
    lost = np.minimum((np.nanmax(q, axis=1, keepdims=True) - q) / unit, FAR)
    shares = np.nan_to_num(np.exp(-lost))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True), np.float32)
