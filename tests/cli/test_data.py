"""The commands `data make`, `label`, `perfect` and `check`."""

from __future__ import annotations

import json

import numpy as np
import pytest

from lab2048.data import labels
from lab2048.data import moves as data
from lab2048.game import Rules
from lab2048.players.registry import make_player
from tests.data.some_moves import SMALL

# -- perfect labels ----------------------------------------------------------------------------


# -- commands ----------------------------------------------------------------------------------


def test_make_and_check(command, tmp_path, warm_home):
    for name in ("a.txt", "b.parquet"):
        path = str(tmp_path / name)
        code, out, _ = command(
            "data", "make", "--player", "greedy", "--moves", "2k", "--board", "3x2", "--out", path
        )
        assert code == 0 and "wrote 2,000 moves of greedy to" in out
        code, out, _ = command("data", "check", path, "--board", "3x2")
        assert code == 0 and "2,000 moves" in out and "of the tile after the move" in out
        code, out, _ = command("data", "check", path, "--board", "3x2", "--json")
        assert json.loads(out)[path]["moves"] == 2000
    one, other = (data.open_moves(tmp_path / name, SMALL) for name in ("a.txt", "b.parquet"))
    assert one.read(0).boards.tolist() == other.read(0).boards.tolist()
    code, _, error = command("data", "check", path)
    assert code == 2 and "has moves on 3x2, not 4x4" in error
    code, _, error = command("data", "make", "--moves", "x", "--out", str(tmp_path / "c.txt"))
    assert code == 2 and "a number of moves is written like 5000, 200k or 1M, not 'x'" in error


@pytest.mark.slow
def test_labels_by_command(command, tmp_path, warm_home):
    path = str(tmp_path / "a.parquet")
    arguments = [
        "--player",
        "greedy",
        "--moves",
        "300",
        "--random",
        "0.1",
        "--out",
        path,
        "--force",
    ]
    code, out, _ = command("data", "label", *arguments)
    assert code == 0 and "wrote 300 boards of greedy to" in out
    code, out, _ = command("data", "label", *arguments, "--board", "2x2", "--teacher", "optimal")
    assert code == 0 and "wrote 300 boards of greedy to" in out
    taught = labels.read_labels(tmp_path / "a.parquet", Rules(2, 2))
    right = make_player("optimal", Rules(2, 2)).values_many(
        taught.boards, np.zeros_like(taught.boards)
    )
    assert np.allclose(taught.q, right, equal_nan=True)
    code, out, _ = command(
        "data", "perfect", "--board", "2x2", "--out", path, "--likely", "0", "--force"
    )
    assert code == 0 and "states of optimal:ties=split to" in out
    code, _, error = command("data", "perfect", "--board", "2x2", "--out", str(tmp_path / "a.txt"))
    assert code == 2 and "labels go into a .parquet file, not a.txt" in error
    code, _, error = command("data", "perfect", "--board", "3x3", "--out", path, "--force")
    assert code == 2 and "there is no table 3x3-score; make it with: lab2048 solve 3x3" in error
    code, _, error = command(
        "data", "perfect", "--board", "2x2", "--player", "montecarlo", "--out", path, "--force"
    )
    assert code == 2 and "are not known: it draws" in error
