"""Spawns in plain Python: a 4 is drawn with exactly the chance p4."""

from __future__ import annotations

from fractions import Fraction

import pytest

from lab2048.game import spawns
from lab2048.game.randomness import again


@pytest.mark.parametrize("p4", [0.0, 0.1, 0.25, 1 / 3, 0.5, 0.9, 1.0, 2.0**-43])
def test_a_four_has_exactly_its_chance(p4):
    high, low = spawns.four_threshold(p4)
    assert Fraction((high << 64) + low, 1 << 96) == Fraction(p4)
    # of the 2**32 lower halves, `high` are fours at once, and one more with chance low / 2**64
    if high > 0:
        assert spawns.is_four(high - 1, (high, low))
        assert spawns.is_four(0xABC << 32 | high - 1, (high, low))
    if high < 2**32 - 1:
        assert not spawns.is_four(high + 1, (high, low))
    for upper in range(50):
        word = upper << 32 | high
        if high < 2**32:
            assert spawns.is_four(word, (high, low)) == (again(word) < low)
