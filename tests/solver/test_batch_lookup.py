"""Many boards at once have the answers of one after the other."""

from __future__ import annotations

import random

import numpy as np
import pytest

from lab2048.game import Board
from lab2048.solver.job import make_table
from lab2048.solver.problem import Problem
from lab2048.solver.tables import open_table
from tests.conftest import WITH_JIT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not WITH_JIT, reason="takes too long without the JIT"),
]


# -- many boards -------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"objective": "worst-case"}, {"gamma": 0.9}, {"p4": 1.0}])
def test_many_boards_at_once_have_the_same_answers(tmp_path, options):
    make_table(Problem.of("2x2", **options), tmp_path / "t")
    rng = random.Random(4)
    with open_table(tmp_path / "t", cache_bytes=4000) as table:
        keys = [int(key) for _, keys, _ in table.layers() for key in keys]
        boards = [Board.from_packed(key, 2, 2).image(rng.randrange(8)).packed for key in keys]
        boards += [0, 1, 0x1111, 0xFFFF, 0xABCD]  # the first is empty, the others may not be there
        rng.shuffle(boards)
        found = table.probe_many(boards)
        values_only = table.probe_many(boards, moves=False, threads=1)
        assert values_only.q is None
        assert np.array_equal(values_only.value, found.value, equal_nan=True)
        for board, value, q in zip(boards, found.value, found.q, strict=True):
            wanted = table.get(board)
            if wanted is None:
                assert np.isnan(value) and np.isnan(q).all()
                continue
            assert value == wanted
            moves = table.moves(board)
            for direction in range(4):
                if direction in moves:
                    assert q[direction] == pytest.approx(moves[direction].q, rel=1e-13)
                else:
                    assert np.isnan(q[direction])


def test_no_boards_at_all(made):
    with open_table(made) as table:
        found = table.probe_many([])
        assert found.value.shape == (0,) and found.q.shape == (0, 4)


# -- the command line ----------------------------------------------------------------------------


def test_packed_boards_that_are_none(made):
    with open_table(made) as table:
        found = table.probe_many([-1, 0x2200000313231, 0x110000])
        assert np.isnan(found.value[:2]).all() and np.isnan(found.q[:2]).all()
        assert table.probe_many([[0x11, 0x11]]).value.shape == (2,)
        for garbage in ([1.5], ["17"], [2**64], [True], [None]):
            with pytest.raises(ValueError, match="packed boards are whole numbers"):
                table.probe_many(garbage)
