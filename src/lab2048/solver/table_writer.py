"""The files of a table in the making, and the record of how much of them is valid."""

from __future__ import annotations

import os
import time
import zlib
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np

from lab2048.engine.arrays import Words
from lab2048.solver.enumeration import Layer
from lab2048.solver.key_file import KeyFile, PackedAfters, pack_afters, pack_block
from lab2048.solver.manifest import load_progress
from lab2048.solver.table_files import (
    BLOCK_HEAD,
    BLOCK_KEYS,
    BLOCKS,
    FORMAT,
    KEYS,
    PROGRESS,
    SCRATCH,
    TableError,
    blocks_of,
    open_to_read,
    read_at,
    write_json,
)
from lab2048.solver.threads import WorkerThreads

COMMIT_SECONDS = 3.0
"""The time between commits: about how much work a crash may cost."""
HARDLY_BEGUN = 2
"""A run that has written no more layers than this is not resumed but begun again."""
AHEAD = 3
"""The most layers that may wait to be written, or be read in advance."""


class Record:
    """The progress of a table in the making: the contents of `progress.json`."""

    def __init__(self, folder: Path, identity: dict[str, Any]) -> None:
        self.folder = folder
        found = load_progress(folder)
        fresh = {
            "format": FORMAT,
            **identity,
            "enumerated": False,
            "states": [],  # of each layer
            "afterstates": [],
            "scratch": [],  # size and checksum of each layer's afterstates
            "keys_bytes": 0,
            "blocks_crc": 0,  # checksum of the valid part of `blocks.bin`
            "valued": 0,  # layers, from the oldest
            "crcs": [],  # checksum of each valued layer's values; None if they are not kept
            "carry": {},  # checksum of the values of each layer that is carried along
            "terminals": 0,
            "starts": {},  # the value of each start, by its key
            "seconds": {"enumerate": 0.0, "values": 0.0},
            "runs": 0,
        }
        self.data: dict[str, Any] = fresh if found is None else found
        self.is_new = found is None
        self.data["runs"] += 1
        self._stage = ""
        self._clock = self._committed = time.perf_counter()

    def enter(self, stage: str) -> None:
        """Stop the clock of the previous stage, and start that of this one."""
        if self._stage:
            self._tick()
        self._clock = time.perf_counter()
        self._stage = stage

    def _tick(self) -> None:
        now = time.perf_counter()
        self.data["seconds"][self._stage] += now - self._clock
        self._clock = now

    @property
    def is_due(self) -> bool:
        """Whether it is time to commit."""
        return time.perf_counter() - self._committed > COMMIT_SECONDS

    def commit(self) -> None:
        """Commit: mark what is in the files, which must have been synced, as valid."""
        self._tick()
        write_json(self.folder / PROGRESS, self.data)
        self._committed = time.perf_counter()


class Packed(Protocol):
    """A layer that is being compressed."""

    age: int
    states: int
    afters: int

    def blocks(self) -> list[tuple[int, bytes]]:
        """The first key of each block, and the block."""

    def packed_afters(self) -> bytes:
        """The afterstates."""


class PackedLayer:
    """A layer that worker threads compress, block by block, along with other work."""

    def __init__(self, layer: Layer, threads: WorkerThreads) -> None:
        self.age = layer.age
        self.states = sum(map(len, layer.states))
        self.afters = sum(map(len, layer.afters))
        starts = range(0, self.states, BLOCK_KEYS)
        self._blocks = [threads.aside(_pack_piece, layer.states, start) for start in starts]
        self._packed_afters = threads.aside(_pack_all, layer.afters)

    def blocks(self) -> list[tuple[int, bytes]]:
        """The first key of each block, and the block."""
        return [block.result() for block in self._blocks]

    def packed_afters(self) -> bytes:
        """The afterstates."""
        return self._packed_afters.result()


def _pack_piece(parts: list[Words], start: int) -> tuple[int, bytes]:
    """Compress the block of keys that begins at `start`; return its first key and the block."""
    pieces, begin = [], 0
    for part in parts:
        pieces.append(part[max(0, start - begin) : max(0, start + BLOCK_KEYS - begin)])
        begin += len(part)
    keys = np.concatenate(pieces)
    return int(keys[0]), pack_block(keys)


def _pack_all(parts: list[Words]) -> bytes:
    """Afterstates as packed for the scratch file."""
    return pack_afters(np.concatenate(parts))


class KeyWriter:
    """Appends layers to `keys.bin`, `blocks.bin` and the scratch file of afterstates."""

    def __init__(self, record: Record) -> None:
        self.record, data = record, record.data
        if len(data["states"]) <= HARDLY_BEGUN:
            data.update(states=[], afterstates=[], scratch=[], keys_bytes=0, blocks_crc=0)
        self._keys = self._open(KEYS, data["keys_bytes"])
        self._blocks = self._open(BLOCKS, BLOCK_HEAD.itemsize * sum(map(blocks_of, data["states"])))
        self._scratch = self._open(SCRATCH, sum(size for size, _ in data["scratch"]))

    def _open(self, name: str, size: int) -> BinaryIO:
        """Open a file to append to, truncated to its valid size."""
        path = self.record.folder / name
        path.touch()
        if path.stat().st_size < size and name != SCRATCH:
            raise TableError(f"{path} ends too early; remove {path.parent} and solve it again")
        file = path.open("r+b")
        if path.stat().st_size != size:  # truncating to 0 makes a file slow to close on Linux
            file.truncate(size)  # may lengthen the scratch file; its checksums tell
        file.seek(size)
        return file

    def write(self, layer: Packed) -> None:
        """Append a layer."""
        data, blocks, afters = self.record.data, layer.blocks(), layer.packed_afters()
        heads = np.zeros(len(blocks), BLOCK_HEAD)
        sizes = np.array([len(packed) for _, packed in blocks], np.uint64)
        heads["first"] = [first for first, _ in blocks]
        heads["offset"] = np.cumsum(sizes) - sizes + np.uint64(data["keys_bytes"])
        heads["size"] = sizes
        heads["crc"] = [zlib.crc32(packed) for _, packed in blocks]
        self._keys.write(b"".join(packed for _, packed in blocks))
        self._blocks.write(heads.tobytes())
        self._scratch.write(afters)
        data["keys_bytes"] += int(sizes.sum())
        data["blocks_crc"] = zlib.crc32(heads.tobytes(), data["blocks_crc"])
        data["states"].append(layer.states)
        data["afterstates"].append(layer.afters)
        data["scratch"].append([len(afters), zlib.crc32(afters)])
        if self.record.is_due:
            self.commit()

    def commit(self) -> None:
        """Commit: mark the written layers as valid."""
        self._scratch.flush()  # not synced: what is lost can be computed again
        for file in (self._keys, self._blocks):
            file.flush()
            os.fsync(file.fileno())
        self.record.commit()

    def close(self) -> None:
        """Close the files."""
        for file in (self._keys, self._blocks, self._scratch):
            file.close()


def _check_keys(record: Record) -> None:
    """Truncate the files of keys to what is valid; `TableError` if too short or damaged."""
    blocks = BLOCK_HEAD.itemsize * sum(map(blocks_of, record.data["states"]))
    for name, size in ((KEYS, record.data["keys_bytes"]), (BLOCKS, blocks)):
        path = record.folder / name
        if not path.exists() or path.stat().st_size < size:
            raise TableError(f"{path} ends too early; remove {path.parent} and solve it again")
        os.truncate(path, size)
    if zlib.crc32((record.folder / BLOCKS).read_bytes()) != record.data["blocks_crc"]:
        damaged = record.folder / BLOCKS
        raise TableError(f"{damaged} is damaged; remove its folder and solve it again")


class LayerReader:
    """Reads layers back, with their afterstates as far as the scratch file has them."""

    def __init__(self, record: Record) -> None:
        data = record.data
        _check_keys(record)
        self.keys = KeyFile(record.folder, data["states"])
        self._scratch = data["scratch"]
        self._places = np.cumsum([0, *[size for size, _ in self._scratch]]).tolist()
        path = record.folder / SCRATCH
        path.touch()
        self._file = open_to_read(path)

    def afters(self, number: int) -> Words | None:
        """The afterstates of a layer; None if they are lost."""
        size, crc = self._scratch[number]
        there = self._places[number + 1] <= os.fstat(self._file).st_size
        packed = read_at(self._file, size, self._places[number]) if there else b""
        kept = len(packed) == size and zlib.crc32(packed) == crc
        return PackedAfters(packed).keys() if kept else None

    def scratch_place(self, number: int) -> tuple[int, int]:
        """The offset and size of a layer's afterstates in the scratch file."""
        return self._places[number], self._scratch[number][0]

    def close(self) -> None:
        """Close the files."""
        os.close(self._file)
        self.keys.close()
