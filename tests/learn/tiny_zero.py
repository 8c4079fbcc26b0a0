"""Settings of a training by self-play that takes seconds."""

from __future__ import annotations

from lab2048.game import Rules
from lab2048.learn.zero_settings import ZeroSettings

TINY = {"games": 8, "buffer": 500, "batch": 16, "simulations": 4}


def tiny(rules=None, **more):
    return ZeroSettings.of(rules or Rules(2, 2), "tiny", **{**TINY, **more})
