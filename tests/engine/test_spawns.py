"""Spawns as kernels, against those in plain Python."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lab2048 import Board
from lab2048.engine import spawns
from lab2048.engine.jit import U
from lab2048.game import spawns as plain
from lab2048.game.randomness import MASK64
from tests.conftest import grids


@given(
    grids(),
    st.integers(0, MASK64),
    st.sampled_from([0.0, 0.1, 0.5, 1.0]),
    st.booleans(),
    st.booleans(),
)
def test_spawns_agree_with_python(grid, word, p4, no_upper, at_threshold):
    threshold = plain.four_threshold(p4)
    if no_upper:
        word &= 0xFFFF_FFFF  # a word that some numbers of cells replace
    if at_threshold:
        word = word >> 32 << 32 | min(threshold[0], 0xFFFF_FFFF)  # one that needs a second word
    position = Board.parse(grid)
    if position.empty == 0:
        return
    which, rank = plain.draw_spawn(word, position.empty, threshold)
    cell = [cell for cell, r in enumerate(position.ranks) if r == 0][which]
    four = np.array(threshold, np.uint64)
    found, found_rank = spawns.spawn(
        U(position.packed), U(word), four, position.rows, position.cols
    )
    assert Board.from_packed(int(found), position.rows, position.cols) == position.place(cell, rank)
    assert int(found_rank) == rank
