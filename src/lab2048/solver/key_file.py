"""The keys of a table on disk: states in compressed blocks, afterstates in four bytes each."""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lab2048.engine.arrays import Counts, Words
from lab2048.solver.table_files import (
    BLOCK_HEAD,
    BLOCK_KEYS,
    BLOCKS,
    KEYS,
    TableError,
    age_of,
    blocks_of,
    open_to_read,
    read_at,
)

PACKED_BYTES = (8 * BLOCK_KEYS) + (1 << 16)
"""No compressed block is larger: keys that do not compress are stored as they are."""


def _codec() -> Any:
    """The compression library, set to release the global lock so that threads run in parallel."""
    import blosc2  # type: ignore[import-untyped]

    blosc2.set_releasegil(True)
    return blosc2


def pack_block(keys: Words) -> bytes:
    """The keys of a block, compressed."""
    blosc2 = _codec()
    packed: bytes = blosc2.compress2(
        np.ascontiguousarray(keys, "<u8"),
        codec=blosc2.Codec.ZSTD,
        clevel=1,
        filters=[blosc2.Filter.SHUFFLE],
        typesize=8,
        blocksize=8 * BLOCK_KEYS,
        splitmode=blosc2.SplitMode.ALWAYS_SPLIT,
        nthreads=1,
    )
    return packed


def unpack_block(packed: bytes, wanted: int) -> Words | None:
    """The keys of a block; None unless it holds exactly `wanted` of them."""
    blosc2 = _codec()
    try:
        if blosc2.get_cbuffer_sizes(packed)[0] != 8 * wanted:  # untrusted size to be allocated
            return None
        return np.frombuffer(blosc2.decompress2(packed, nthreads=1), "<u8")
    except (RuntimeError, TypeError, ValueError):  # not what the codec wrote
        return None


class KeyFile:
    """The keys of a finished or unfinished table, layer by layer. Any thread may read."""

    def __init__(self, folder: Path, counts: Sequence[int]) -> None:
        self.counts = counts
        self.starts = np.cumsum([0, *map(blocks_of, counts)]).tolist()
        self.blocks = np.fromfile(folder / BLOCKS, BLOCK_HEAD, self.starts[-1])
        self._path = folder / KEYS
        self._file = open_to_read(self._path)

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def block(self, layer: int, number: int) -> Words:
        """The keys of one block of a layer."""
        head, what = self._head(layer, number)
        wanted = min(BLOCK_KEYS, self.counts[layer] - number * BLOCK_KEYS)
        return read_block(self._file, head, wanted, what)

    def _head(self, layer: int, number: int) -> tuple[Any, str]:
        """The record of a block, and how an error names it."""
        what = f"block {number} of age {age_of(layer)} in {self._path}"
        return self.blocks[self.starts[layer] + number], what

    def layer(self, layer: int) -> Words:
        """All keys of a layer."""
        return joined([self.block(layer, n) for n in range(self.blocks_in(layer))])

    def check(self, layer: int) -> None:
        """Compare the blocks of a layer with their checksums; a `TableError` if one is damaged."""
        for number in range(self.blocks_in(layer)):
            read_packed(self._file, *self._head(layer, number))

    def below(self, layer: int, key: int) -> int:
        """The number of keys of a layer below this one."""
        first = self.blocks["first"][self.starts[layer] : self.starts[layer + 1]]
        number = max(0, int(np.searchsorted(first, np.uint64(key))) - 1)
        keys = self.block(layer, number)
        return number * BLOCK_KEYS + int(np.searchsorted(keys, np.uint64(key)))

    def blocks_in(self, layer: int) -> int:
        """The number of blocks of a layer."""
        return blocks_of(self.counts[layer])


def read_block(file: int, head: Any, wanted: int, what: str) -> Words:
    """The `wanted` keys of a block; a `TableError` that names it if it is damaged."""
    keys = unpack_block(read_packed(file, head, what), wanted)
    if keys is None or keys[0] != head["first"]:
        raise TableError(f"{what} is damaged: it does not hold the keys it should")
    return keys


def read_packed(file: int, head: Any, what: str) -> bytes:
    """A block as it is stored, or a `TableError` if its checksum is wrong."""
    size, offset = int(head["size"]), int(head["offset"])
    # reading at an offset that no file can have would be another error
    packed = read_at(file, size, offset) if size <= PACKED_BYTES and offset < 1 << 62 else b""
    if len(packed) != size or zlib.crc32(packed) != head["crc"]:
        raise TableError(f"{what} is damaged: its checksum is wrong")
    return packed


def joined(pieces: list[Words]) -> Words:
    """The keys of several blocks, concatenated."""
    return np.concatenate([np.empty(0, np.uint64), *pieces])


def pack_afters(keys: Words) -> bytes:
    """Sorted keys in four bytes each: the number of keys per upper half, then the lower halves."""
    top = int(keys[-1] >> np.uint64(32)) + 1 if len(keys) else 0
    bounds = np.searchsorted(keys, np.arange(top + 1, dtype=np.uint64) << np.uint64(32))
    counts = np.diff(bounds).astype("<u4")
    return b"".join((np.uint32(top).tobytes(), counts.tobytes(), keys.astype("<u4").tobytes()))


class PackedAfters:
    """Reads keys that `pack_afters` packed, all or some of them."""

    def __init__(self, packed: Any) -> None:
        top = int(np.frombuffer(packed, "<u4", 1)[0])
        counts = np.frombuffer(packed, "<u4", top, 4)
        self._starts = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
        self._lower = np.frombuffer(packed, "<u4", -1, 4 + 4 * top)

    def __len__(self) -> int:
        return len(self._lower)

    def keys(self, begin: int = 0, end: int | None = None) -> Words:
        """The keys from one place up to another."""
        lower = self._lower[begin:end]
        counts = np.diff(self._starts.clip(begin, begin + len(lower)))
        upper = np.repeat(np.arange(len(counts), dtype=np.uint64) << np.uint64(32), counts)
        return np.asarray(upper | lower, np.uint64)

    def some(self, places: Counts) -> Words:
        """The keys at some places."""
        upper = np.searchsorted(self._starts, places, "right").astype(np.uint64) - np.uint64(1)
        return np.asarray(upper << np.uint64(32) | self._lower[places], np.uint64)

    def below(self, key: int) -> int:
        """The number of keys below this one."""
        upper = min(key >> 32, len(self._starts) - 1)
        begin, end = self._starts[[upper, min(upper + 1, len(self._starts) - 1)]].tolist()
        return int(begin + np.searchsorted(self._lower[begin:end], np.uint32(key & 0xFFFFFFFF)))
