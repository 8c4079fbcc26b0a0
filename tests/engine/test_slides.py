"""Tables of slides."""

from __future__ import annotations

from lab2048.engine.slides import pairs
from lab2048.engine.slides import table as slides


def test_slides_and_pairs_agree():
    for length in (2, 3, 4):
        lines = 16**length
        entries = pairs(length)
        assert (entries & 0xFFFF == slides(length)[:lines]).all()
        assert (entries >> 16 == slides(length)[lines : 2 * lines]).all()
