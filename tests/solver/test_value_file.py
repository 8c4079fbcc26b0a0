"""How values are stored, rounded or not at all."""

from __future__ import annotations

import numpy as np
import pytest

from lab2048.solver.job import make_table
from lab2048.solver.problem import Problem
from lab2048.solver.table_files import TableError
from lab2048.solver.tables import open_table
from lab2048.solver.verify import verify
from tests.conftest import WITH_JIT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not WITH_JIT, reason="takes too long without the JIT"),
]


def test_float32_rounds_what_is_stored_and_nothing_else(made, tmp_path):
    make_table(Problem.of("3x2"), tmp_path / "t", values="float32")
    with open_table(made) as exact, open_table(tmp_path / "t") as rounded:
        for (_, keys, values), (_, same, stored) in zip(
            exact.layers(), rounded.layers(), strict=True
        ):
            assert (keys == same).all()
            assert (stored == values.astype(np.float32)).all()
        assert rounded.start_value == exact.start_value
        board = "2 2 / 4 . / . ."
        assert rounded.best(board) == exact.best(board)
        verify(rounded, full=True)
    assert (tmp_path / "t" / "values.bin").stat().st_size * 2 == (
        made / "values.bin"
    ).stat().st_size


def test_chances_too_small_to_be_stored_still_fit_their_moves(tmp_path):
    """float32 stores 1e-300 as 0; the moves of such a state have that chance."""
    problem = Problem.of("3x2", objective="reach:128", p4=1e-300)
    make_table(problem, tmp_path / "t", values="float32")
    with open_table(tmp_path / "t") as table:
        assert verify(table, full=True)["largest_residual"] > 0


def test_a_summary_keeps_nothing_large(made, tmp_path):
    found = make_table(Problem.of("3x2"), tmp_path / "t", keep="summary")
    whole = make_table(Problem.of("3x2"), made)
    assert {path.name for path in (tmp_path / "t").iterdir()} == {"manifest.json", "run.json"}
    for name in ("states", "afterstates", "terminals", "max_age", "value"):
        assert found[name] == whole[name]
    with pytest.raises(TableError, match="only a summary of t was kept"):
        open_table(tmp_path / "t")
    make_table(Problem.of("3x2"), tmp_path / "t")
    with open_table(tmp_path / "t") as table:
        assert table.states == 21_752
