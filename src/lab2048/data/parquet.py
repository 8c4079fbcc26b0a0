"""Parquet files of moves and labels: columns of numbers, written atomically, checked when read.

The metadata of such a file holds its kind, rules and more as JSON. Whatever is wrong with a file
from elsewhere is a `DataError` that names it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab2048.game import Rules
from lab2048.game.notation import short
from lab2048.game.record import arrow
from lab2048.home import replacing

Columns = dict[str, NDArray[Any]]

GROUP = 1 << 16
"""Number of rows in a row group that is written here."""
MOST = 1 << 26
"""Maximum number of rows in a row group that is read: a small file may claim any number."""
FORMAT, KEY = 1, b"lab2048"
MOVES, LABELS = "moves", "labels"
"""The kinds of Parquet files."""


class DataError(ValueError):
    """Move data that is invalid or damaged."""


def about_parquet(path: Path) -> dict[str, Any]:
    """The metadata of a Parquet file, and the sizes of its row groups as `groups`."""
    with _parquet_file(path) as file:
        facts = json.loads((file.schema_arrow.metadata or {}).get(KEY, b"{}"))
        counts = range(file.num_row_groups)
        groups = [file.metadata.row_group(each).num_rows for each in counts]
    return {**(facts if isinstance(facts, dict) else {}), "groups": groups}


def read_facts(path: Path, kind: str) -> dict[str, Any]:
    """The metadata of a Parquet file of a kind, its rules, and the sizes of its row groups."""
    facts = about_parquet(path)
    if facts.get("kind") != kind or facts.get("format") != FORMAT:
        raise DataError(f"{path} has no {kind} of lab2048")
    if max(facts["groups"], default=0) > MOST:
        raise DataError(f"{path} has a row group of more than {MOST:,} rows; write smaller ones")
    try:
        return {**facts, "rules": Rules.parse(facts["board"], facts["p4"])}
    except (KeyError, ValueError) as error:
        raise DataError(f"{path} does not say what its rules are: {error}") from None


@contextmanager
def _parquet_file(path: Path) -> Iterator[Any]:
    """An open Parquet file; whatever is wrong with it is a `DataError`."""
    pa, parquet = arrow()
    with path.open("rb") as file:
        try:
            yield parquet.ParquetFile(file)
        except DataError:
            raise
        except (pa.ArrowException, OSError, ValueError, RecursionError) as error:
            why = str(error).split("\n")[0][:200]
            raise DataError(f"{path} is damaged, or no Parquet file: {why}") from None


def read_group(path: Path, group: int, kinds: dict[str, str]) -> dict[str, NDArray[Any]]:
    """Some columns of a row group, of these types; a `DataError` if their values do not fit.

    Missing numbers become NaN in a column of real numbers, and are errors elsewhere.
    """
    with _parquet_file(path) as file:
        for name, kind in kinds.items():
            _check_column(path, file.schema_arrow, name, np.dtype(kind))
        table = file.read_row_group(group, columns=list(kinds))
        before = sum(file.metadata.row_group(each).num_rows for each in range(group))
        found = {}
        for name, kind in kinds.items():
            column, dtype = table[name], np.dtype(kind)
            if dtype.kind == "u":
                _check_range(path, column, name, int(np.iinfo(dtype).max), before)
            found[name] = np.array(column.to_numpy(), dtype)
    return found


def _check_column(path: Path, schema: Any, name: str, dtype: np.dtype[Any]) -> None:
    """Raise a `DataError` unless there is one column `name`, of whole or of real numbers."""
    pa, _ = arrow()
    if len(schema.get_all_field_indices(name)) != 1:
        raise DataError(f"{path} should have one column {name}")
    kind, whole = schema.field(name).type, dtype.kind == "u"
    if not (pa.types.is_integer(kind) if whole else pa.types.is_floating(kind)):
        wanted = "whole numbers" if whole else "real numbers"
        raise DataError(f"{path}: the column {name} should have {wanted}, not {short(str(kind))}")


def _check_range(path: Path, column: Any, name: str, most: int, before: int) -> None:
    """Raise a `DataError` that names the first row with a value missing or out of range."""
    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy())[0])
        raise DataError(f"{path}, row {before + row + 1}: there is no {name}")
    values = column.to_numpy()
    wrong = np.flatnonzero((values < 0) | (values > most))
    if len(wrong):
        row = int(wrong[0])
        raise DataError(f"{path}, row {before + row + 1}: {name} is out of range: {values[row]}")


def write_parquet(path: Path, parts: Iterable[Columns], facts: dict[str, Any]) -> int:
    """Write columns atomically to a Parquet file. Return the number of rows."""
    pa, parquet = arrow()
    writer, rows = None, 0
    with replacing(path) as temporary, ExitStack() as stack:
        for group in in_groups(parts):
            found = pa.table(group)
            if writer is None:
                about = {KEY: json.dumps({"format": FORMAT, **facts})}
                schema = found.schema.with_metadata(about)
                writer = stack.enter_context(parquet.ParquetWriter(temporary, schema))
            writer.write_table(found.replace_schema_metadata(None).cast(writer.schema))
            rows += len(found)
        if writer is None:
            raise DataError("there is nothing to write")
    return rows


def in_groups(parts: Iterable[Columns]) -> Iterator[Columns]:
    """Columns in groups of `GROUP` rows; the last may be smaller."""
    waiting: list[Columns] = []
    size = 0
    for part in parts:
        waiting.append(part)
        size += len(part["board"])
        if size >= GROUP:
            joined = {name: np.concatenate([each[name] for each in waiting]) for name in part}
            for begin in range(0, size - GROUP + 1, GROUP):
                yield {name: each[begin : begin + GROUP] for name, each in joined.items()}
            waiting = [{name: each[size - size % GROUP :] for name, each in joined.items()}]
            size %= GROUP
    if size:
        yield {name: np.concatenate([each[name] for each in waiting]) for name in waiting[0]}
