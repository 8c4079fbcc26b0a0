"""Moves as Parquet: written, read, and refused row by row."""

from __future__ import annotations

import json

import numpy as np
import pytest

from lab2048.data import moves as data
from lab2048.data import parquet
from lab2048.data.move_rows import Moves
from lab2048.data.moves import ParquetFile
from lab2048.data.parquet import DataError
from lab2048.game import Rules
from tests.data.some_moves import FOUR, SMALL, some_moves

# -- Parquet -----------------------------------------------------------------------------------


def test_parquet_is_read_as_it_was_written(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "GROUP", 128)
    moves = some_moves()
    parts = [Moves(*(each[a:b] for each in moves)) for a, b in [(0, 300), (300, 310), (310, 1000)]]
    path = tmp_path / "a.parquet"
    assert data.write_moves(path, parts, FOUR, {"player": "greedy"}) == 1000
    source = data.open_moves(path, FOUR)
    assert len(source) == 8 and not data.is_labels(path)
    found = [source.read(k) for k in range(8)]
    assert [len(each.boards) for each in found] == [128] * 7 + [104]
    for k in range(3):
        assert np.concatenate([each[k] for each in found]).tolist() == moves[k].tolist()
    with pytest.raises(DataError, match="has moves on 4x4, not 3x3"):
        ParquetFile(path, Rules(3, 3))


@pytest.mark.parametrize("column", range(3))
def test_a_row_that_is_wrong_is_named(tmp_path, monkeypatch, column):
    monkeypatch.setattr(parquet, "GROUP", 128)
    moves = some_moves(SMALL)
    moves[column][200] = [1 << 40, 7, 9][column]
    data.write_moves(tmp_path / "a.parquet", [moves], SMALL, {})
    with pytest.raises(DataError, match=r"a.parquet, row 201: board 0x.*is no move on 3x2"):
        data.summarise(data.open_moves(tmp_path / "a.parquet", SMALL))


@pytest.fixture
def odd_file(tmp_path):
    """A function that writes a Parquet file of one move on 2x2, some of it changed."""
    import pyarrow as pa
    from pyarrow import parquet

    def write(about=None, **columns):
        usual = {"board": pa.array([0x11], pa.uint64()), "move": pa.array([3]), "cell": [1]}
        table = pa.table({k: v for k, v in (usual | columns).items() if v is not None})
        facts = {"format": 1, "kind": "moves", "board": "2x2", "p4": 0.1}
        text = json.dumps(facts) if about is None else about
        parquet.write_table(
            table.replace_schema_metadata({"lab2048": text}), tmp_path / "a.parquet"
        )
        return data.open_moves(tmp_path / "a.parquet", Rules(2, 2))

    return write


ODD_COLUMNS = {
    "row 1: move is out of range: 259": {"move": [259]},
    "row 1: move is out of range: -1": {"move": [-1]},
    "row 1: cell is out of range: 264": {"cell": [264]},
    "row 1: board is out of range: -5": {"board": [-5]},
    "the column board should have whole numbers, not 'double'": {"board": [17.7]},
    "the column cell should have whole numbers, not 'double'": {"cell": [1.0]},
    "the column move should have whole numbers, not 'bool'": {"move": [True]},
    "the column move should have whole numbers, not 'string'": {"move": ["3"]},
    "row 2: there is no move": {"board": [17, 17], "move": [3, None], "cell": [1, 1]},
    "should have one column cell": {"cell": None},
}


@pytest.mark.parametrize(("why", "columns"), ODD_COLUMNS.items())
def test_numbers_that_are_none_of_a_move(odd_file, why, columns):
    assert odd_file().read(0).moves.tolist() == [3]
    with pytest.raises(DataError, match=f"a.parquet.*{why}"):
        odd_file(**columns).read(0)


@pytest.mark.parametrize(
    ("about", "why"),
    [
        ("[1]", "has no moves of lab2048"),
        ("null", "has no moves of lab2048"),
        ("[" * 100_000, "is damaged, or no Parquet file"),
        ('{"format": 1, "kind": "moves"}', "does not say what its rules are: 'board'"),
        ('{"format": 1, "kind": "moves", "board": 5, "p4": 0}', "a board size is written ROWSxC"),
        ('{"format": 1, "kind": "moves", "board": "2x2", "p4": []}', "p4, the chance of a 4"),
    ],
)
def test_metadata_that_says_nothing(odd_file, about, why):
    with pytest.raises(DataError, match=f"a.parquet.*{why}"):
        odd_file(about)


def test_a_row_group_is_not_read_beyond_a_bound(odd_file, monkeypatch):
    monkeypatch.setattr(parquet, "MOST", 1)
    with pytest.raises(DataError, match="has a row group of more than 1 rows"):
        odd_file(board=[17, 17], move=[3, 3], cell=[1, 1])


def test_files_that_are_no_moves(tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    path = tmp_path / "a.parquet"
    path.write_bytes(b"PAR1 nonsense")
    with pytest.raises(DataError, match="is damaged, or no Parquet file"):
        data.open_moves(path, FOUR)
    parquet.write_table(pa.table({"a": [1]}), path)
    with pytest.raises(DataError, match="has no moves of lab2048"):
        data.open_moves(path, FOUR)
    data.write_moves(path, [some_moves(size=100)], FOUR, {})
    whole = path.read_bytes()
    path.write_bytes(whole[:4] + bytes(200) + whole[204:])
    with pytest.raises(DataError, match=r"a.parquet"):
        data.summarise(data.open_moves(path, FOUR))
    with pytest.raises(FileNotFoundError):
        data.open_moves(tmp_path / "b.txt", FOUR)
    with pytest.raises(DataError, match=r"a \.txt or a \.parquet file, not x\.csv"):
        data.check_file(tmp_path / "x.csv")


# -- perfect labels ----------------------------------------------------------------------------
