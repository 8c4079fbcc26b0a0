"""Moves in shuffled epochs, from files that need not fit into memory."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from lab2048.data import move_text
from lab2048.data import moves as data
from lab2048.data.move_rows import Moves
from lab2048.data.move_text import TextFile
from tests.data.some_moves import FOUR, some_moves


def counted(batches):
    return Counter(
        (int(board), int(share.argmax()))
        for batch in batches
        for board, share in zip(*batch, strict=True)
    )


@pytest.mark.parametrize("pool", [150, 400, 1 << 22])
def test_every_move_is_in_an_epoch_once(tmp_path, monkeypatch, pool):
    monkeypatch.setattr(move_text, "PIECE", 1 << 11)
    moves = some_moves()
    data.write_moves(tmp_path / "a.txt", [Moves(*(each[:700] for each in moves))], FOUR, {})
    data.write_moves(tmp_path / "b.parquet", [Moves(*(each[700:] for each in moves))], FOUR, {})
    sources = [data.open_moves(tmp_path / name, FOUR) for name in ("a.txt", "b.parquet")]
    epochs = [list(data.shuffled(sources, 64, 1, epoch, pool)) for epoch in (0, 0, 1)]
    expected = Counter(zip(moves.boards.tolist(), moves.moves.tolist(), strict=True))
    assert all(counted(epoch) == expected for epoch in epochs)
    orders = [np.concatenate([batch.boards for batch in epoch]).tolist() for epoch in epochs]
    assert orders[0] == orders[1] != orders[2]
    assert [len(batch.boards) for batch in epochs[0]] == [64] * 15 + [40]
    ages = [bin(board).count("1") for board in orders[0]]
    if pool > 1000:
        assert abs(np.corrcoef(ages, range(1000))[0, 1]) < 0.15


def test_the_pool_bounds_what_is_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(move_text, "PIECE", 1 << 11)
    data.write_moves(tmp_path / "a.txt", [some_moves(size=2000)], FOUR, {})
    source = TextFile(tmp_path / "a.txt", FOUR)
    read = []
    real = source.read
    source.read = lambda piece: (read.append(len(real(piece).boards)), real(piece))[1]
    given = 0
    for batch in data.shuffled([source], 50, 1, 0, pool=200):
        assert sum(read) - given <= 200 + 60  # the last piece may go beyond it
        given += len(batch.boards)
    assert given == 2000
