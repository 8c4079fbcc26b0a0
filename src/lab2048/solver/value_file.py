"""The values of a table on disk."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab2048.engine.arrays import Bytes
from lab2048.solver.table_files import (
    BLOCK_KEYS,
    KINDS,
    VALUES,
    TableError,
    age_of,
    open_to_read,
    read_at,
)

PIECE = 1 << 20
"""Bytes of values read at a time: few enough to stay in the processor's cache."""


class ValueFile:
    """The values of a table, or of one in the making, layer by layer. Any thread may read.

    The file is read, not memory-mapped: if it is truncated meanwhile, that raises a `TableError`
    and does not kill the process.
    """

    def __init__(
        self, folder: Path, kind: str, counts: Sequence[int], crcs: Sequence[int | None]
    ) -> None:
        self._path, self._kind, self._crcs = folder / VALUES, KINDS[kind], crcs
        self._starts = (np.cumsum([0, *counts]) * self._kind.itemsize).tolist()
        self._file = open_to_read(self._path)
        self._sound: set[int] = set()
        self._seen = self._state()

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def layer(self, layer: int) -> NDArray[Any]:
        """All values of a layer, compared with their checksum each time."""
        values = np.empty(self._starts[layer + 1] - self._starts[layer], np.uint8)
        place = 0
        for piece in self._pieces(layer):
            values[place : place + len(piece)] = np.frombuffer(piece, np.uint8)
            place += len(piece)
        return self._numbers(layer, values)

    def block(self, layer: int, number: int) -> NDArray[Any]:
        """The values of a block of keys.

        Its layer is compared with the checksum on first use, and again after the file has changed.
        """
        if (state := self._state()) != self._seen:
            self._seen = state
            self._sound.clear()
        if layer not in self._sound:
            self.check(layer)
            self._sound.add(layer)
        size = BLOCK_KEYS * self._kind.itemsize
        begin = self._starts[layer] + number * size
        stored = self._read(layer, begin, min(size, self._starts[layer + 1] - begin))
        return self._numbers(layer, np.frombuffer(stored, np.uint8))

    def check(self, layer: int) -> None:
        """Compare a layer with its checksum; raise `TableError` if it is damaged."""
        for _ in self._pieces(layer):
            pass

    def _pieces(self, layer: int) -> Iterator[bytes]:
        """A layer as stored, in pieces; `TableError` at the end if its checksum is wrong."""
        crc, end = 0, self._starts[layer + 1]
        for begin in range(self._starts[layer], end, PIECE):
            piece = self._read(layer, begin, min(PIECE, end - begin))
            crc = zlib.crc32(piece, crc)
            yield piece
        if crc != self._crcs[layer]:
            raise self._damaged(layer, "their checksum is wrong")

    def _read(self, layer: int, begin: int, size: int) -> bytes:
        """A part of a layer as stored."""
        found = read_at(self._file, size, begin)
        if len(found) != size:
            raise self._damaged(layer, "the file ends too early")
        return found

    def _numbers(self, layer: int, stored: Bytes) -> NDArray[Any]:
        """Stored bytes as values; `TableError` if one is negative, infinite or NaN."""
        values = stored.view(self._kind)
        if not (values.min(initial=0) >= 0 and values.max(initial=0) < np.inf):
            raise self._damaged(layer, "some are negative, infinite or NaN")
        return values

    def _state(self) -> tuple[int, int]:
        """Modification time and size, which tell whether the file has changed."""
        found = os.fstat(self._file)
        return found.st_mtime_ns, found.st_size

    def _damaged(self, layer: int, why: str) -> TableError:
        """The error that says which values are damaged."""
        return TableError(f"the values of age {age_of(layer)} in {self._path} are damaged: {why}")
