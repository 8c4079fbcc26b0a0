"""The files of a table in the making, and the record of how much of them counts."""

from __future__ import annotations

import os
import threading
import time
import zlib
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np

from lab2048.board import Words
from lab2048.solve.crew import Crew
from lab2048.solve.keys import Floats
from lab2048.solve.layers import Layer
from lab2048.solve.manifest import load_progress
from lab2048.solve.store import (
    BLOCK_HEAD,
    BLOCK_KEYS,
    BLOCKS,
    CARRY,
    FORMAT,
    KEYS,
    KINDS,
    PROGRESS,
    SCRATCH,
    VALUES,
    KeyFile,
    PackedAfters,
    TableError,
    ValueFile,
    blocks_of,
    open_to_read,
    pack_afters,
    pack_block,
    read_at,
    sync,
    write_json,
)

COMMIT_SECONDS = 3.0
"""How much work a crash may cost."""
FLUSH_BYTES = 1 << 26
"""The disk is given so much at a time, so that little is left to be written at the end."""
HARDLY_BEGUN = 2
"""A run that has written no more layers than this is not taken up: it begins again."""
AHEAD = 3
"""Layers that may be waiting to be written, or may have been read in advance."""


class Record:
    """How far the making of a table has come, as in `progress.json`."""

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
            "blocks_crc": 0,  # checksum of all of `blocks.bin` that counts
            "valued": 0,  # layers, from the oldest
            "crcs": [],  # checksum of each valued layer's values; None if they are not kept
            "carry": {},  # checksum of the values of each layer that is carried along
            "terminals": 0,
            "starts": {},  # the value of each start, by its key
            "seconds": {"enumerate": 0.0, "values": 0.0},
            "runs": 0,
        }
        self.data: dict[str, Any] = fresh if found is None else found
        self.data["runs"] += 1
        self._stage = ""
        self._clock = self._committed = time.perf_counter()

    def enter(self, stage: str) -> None:
        """Count the time for a stage from now on; that of the one before is counted."""
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
        """Have what is in the files count. They have to be on the disk."""
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
    """A layer that a crew compresses, block by block, along with other work."""

    def __init__(self, layer: Layer, crew: Crew) -> None:
        self.age = layer.age
        self.states = sum(map(len, layer.states))
        self.afters = sum(map(len, layer.afters))
        starts = range(0, self.states, BLOCK_KEYS)
        self._blocks = [crew.aside(_pack_piece, layer.states, start) for start in starts]
        self._packed_afters = crew.aside(_pack_all, layer.afters)

    def blocks(self) -> list[tuple[int, bytes]]:
        """The first key of each block, and the block."""
        return [block.result() for block in self._blocks]

    def packed_afters(self) -> bytes:
        """The afterstates."""
        return self._packed_afters.result()


def _pack_piece(parts: list[Words], start: int) -> tuple[int, bytes]:
    """The first key of a block of keys, and the block."""
    pieces, begin = [], 0
    for part in parts:
        pieces.append(part[max(0, start - begin) : max(0, start + BLOCK_KEYS - begin)])
        begin += len(part)
    keys = np.concatenate(pieces)
    return int(keys[0]), pack_block(keys)


def _pack_all(parts: list[Words]) -> bytes:
    """Afterstates as the scratch file has them."""
    return pack_afters(np.concatenate(parts))


class KeyWriter:
    """Adds layers to `keys.bin`, `blocks.bin` and the scratch file of afterstates."""

    def __init__(self, record: Record) -> None:
        self.record, data = record, record.data
        if len(data["states"]) <= HARDLY_BEGUN:
            data.update(states=[], afterstates=[], scratch=[], keys_bytes=0, blocks_crc=0)
        self._keys = self._open(KEYS, data["keys_bytes"])
        self._blocks = self._open(BLOCKS, BLOCK_HEAD.itemsize * sum(map(blocks_of, data["states"])))
        self._scratch = self._open(SCRATCH, sum(size for size, _ in data["scratch"]))

    def _open(self, name: str, size: int) -> BinaryIO:
        """A file to be added to; what is beyond the size that counts is cut off."""
        path = self.record.folder / name
        path.touch()
        if path.stat().st_size < size and name != SCRATCH:
            raise TableError(f"{path} ends too early; remove {path.parent} and solve it again")
        file = path.open("r+b")
        if path.stat().st_size != size:  # a file once cut to nothing is slow to close on Linux
            file.truncate(size)  # the scratch file may grow: that is noticed when it is read
        file.seek(size)
        return file

    def write(self, layer: Packed) -> None:
        """Add a layer."""
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
        self._scratch.flush()  # not to the disk: what is lost can be computed again
        for file in (self._keys, self._blocks):
            file.flush()
            os.fsync(file.fileno())
        self.record.commit()

    def close(self) -> None:
        """Give the files back."""
        for file in (self._keys, self._blocks, self._scratch):
            file.close()


def _check_keys(record: Record) -> None:
    """Cut off what does not count of the keys; a `TableError` if what does is not there."""
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
    """Reads layers again, afterstates too where the scratch file has them."""

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
        """The afterstates of a layer, unless they are lost."""
        size, crc = self._scratch[number]
        there = self._places[number + 1] <= os.fstat(self._file).st_size
        packed = read_at(self._file, size, self._places[number]) if there else b""
        kept = len(packed) == size and zlib.crc32(packed) == crc
        return PackedAfters(packed).keys() if kept else None

    def scratch_place(self, number: int) -> tuple[int, int]:
        """Where the afterstates of a layer begin in the scratch file, and how long they are."""
        return self._places[number], self._scratch[number][0]

    def close(self) -> None:
        """Give the files back."""
        os.close(self._file)
        self.keys.close()


class ValueWriter:
    """Writes the layers of `values.bin`, oldest first, and carries the last two along.

    A run that takes up the work needs these as they were computed. So they have files of their own
    where what is stored is rounded, or nothing is.
    """

    def __init__(self, record: Record, kind: str, keep: bool) -> None:
        self.record = record
        self._name, self._kind = kind, KINDS[kind]
        self._carries = not keep or kind != "float64"
        self._places = np.cumsum([0, *record.data["states"]]).tolist()
        self._carried: deque[tuple[int, Floats | int]] = deque(maxlen=2)
        self._file: BinaryIO | None = None
        self._unflushed = 0
        self._flushing: threading.Thread | None = None
        self._failed: OSError | None = None
        path = record.folder / VALUES
        path.touch()
        begun = record.data["valued"] > 0
        if not (begun and self._carry_is_sound() and self._are_kept(path, keep)):
            # of a summary that is now wanted as a table, or damaged: they are found again
            record.data.update(valued=0, crcs=[], carry={}, terminals=0, starts={})
        if keep:
            self._file = path.open("r+b", buffering=0)
            self._file.truncate(self._places[-1] * self._kind.itemsize)

    def _are_kept(self, path: Path, keep: bool) -> bool:
        """Whether the values that count are in the file, if they are to be kept."""
        if not keep:
            return True
        data = self.record.data
        if path.stat().st_size != self._kind.itemsize * self._places[-1]:
            return False
        left = len(data["states"]) - data["valued"]
        crcs = [None] * left + data["crcs"][::-1]
        values = ValueFile(self.record.folder, self._name, data["states"], crcs)
        try:
            for number in range(left, len(crcs)):
                values.check(number)
        except TableError:
            return False
        finally:
            values.close()
        return True

    def _carry_is_sound(self) -> bool:
        """Whether the values that were carried along are there."""
        data = self.record.data
        left = len(data["states"]) - data["valued"]
        wanted = range(left, min(left + 2, len(data["states"])))
        return not self._carries or all(map(self._is_carried, wanted))

    def _is_carried(self, number: int) -> bool:
        """Whether the values of a layer were carried along, and are what they were."""
        path, crcs = self._carry_path(number), self.record.data["carry"]
        kept = isinstance(crcs, dict) and str(number) in crcs and path.exists()
        return kept and zlib.crc32(path.read_bytes()) == crcs[str(number)]

    def carried(self, number: int) -> Floats:
        """The values of a layer, of the last two that were committed, as they were computed."""
        path, kind, first = self.places(number)[-1]
        size = self.record.data["states"][number]
        return np.fromfile(path, kind, size, offset=np.dtype(kind).itemsize * first)

    def places(self, number: int) -> list[tuple[str, str, int]]:
        """The files that keep the values of a layer, as what, and how many come before there.

        The last of them has them as float64.
        """
        path, carry = str(self.record.folder / VALUES), str(self._carry_path(number))
        places = [(path, self._kind.str, self._places[number])] if self._file else []
        return [*places, (carry, "<f8", 0)] if self._carries else places

    def _carry_path(self, number: int) -> Path:
        return self.record.folder / CARRY.format(number)

    def write(self, number: int, values: Floats, terminals: int, starts: dict[str, float]) -> None:
        """Write the values of a layer."""
        crc = None
        if self._file is not None:
            stored = memoryview(np.ascontiguousarray(values, self._kind).data).cast("B")
            crc = zlib.crc32(stored)
            _write_at(self._file, stored, self._places[number] * self._kind.itemsize)
            self._unflushed += len(stored)
        # only now, and all at once: the file may have refused
        self._note(number, values, crc, terminals, starts)
        if self.record.is_due:
            self.commit()
        elif self._unflushed > FLUSH_BYTES:
            self._flush_aside()

    def note_written(self, number: int, crcs: Sequence[int], terminals: int) -> None:
        """Take down that a layer is in all of its `places`, with these checksums."""
        self._note(number, crcs[-1], crcs[0] if self._file else None, terminals, {})

    def _note(
        self,
        number: int,
        carried: Floats | int,
        crc: int | None,
        terminals: int,
        starts: dict[str, float],
    ) -> None:
        """Take down that the values of a layer are written.

        What is carried along are its values, or their checksum if they are in their file already.
        """
        if self._carries:
            self._carried.append((number, carried))
        data = self.record.data
        data["valued"] += 1
        data["crcs"].append(crc)
        data["terminals"] = terminals
        data["starts"].update(starts)

    def _flush_aside(self) -> None:
        """Have the disk begin with what was written, while the work goes on."""
        if self._flushing is None or not self._flushing.is_alive():
            self._unflushed = 0
            self._flushing = threading.Thread(target=self._flush)
            self._flushing.start()

    def _sync(self) -> None:
        if self._file is not None:
            os.fsync(self._file.fileno())

    def _flush(self) -> None:
        try:
            self._sync()
        except OSError as error:  # the system tells of it only once
            self._failed = error

    def commit(self) -> None:
        """Commit: mark the written layers as valid."""
        self._finish_flushing()
        self._unflushed = 0
        data = self.record.data
        left = len(data["states"]) - data["valued"]
        carried = {str(number): self._carry(number, values) for number, values in self._carried}
        data["carry"] = {
            number: crc
            for number, crc in (data["carry"] | carried).items()
            if int(number) <= left + 1
        }
        self.record.commit()
        done_with = {CARRY.format(number) for number in range(left + 2, len(data["states"]))}
        for path in self.record.folder.glob(CARRY.format("*")):
            if path.name in done_with:  # those of younger layers are in the making
                path.unlink(missing_ok=True)

    def _carry(self, number: int, values: Floats | int) -> int:
        """Bring the values of a layer to the disk; their checksum."""
        path = self._carry_path(number)
        if isinstance(values, int):
            sync(path)
            return values
        if str(number) in self.record.data["carry"]:
            return int(self.record.data["carry"][str(number)])
        carry = values.astype("<f8", copy=False).tobytes()
        part = path.with_name(f"{path.name}.part")
        with part.open("wb") as file:
            file.write(carry)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
        return zlib.crc32(carry)

    def close(self) -> None:
        """Give the file back."""
        if self._flushing is not None:
            self._flushing.join()
        if self._file is not None:
            self._file.close()

    def finish(self) -> None:
        """Bring everything to the disk."""
        self._finish_flushing()

    def _finish_flushing(self) -> None:
        if self._flushing is not None:
            self._flushing.join()
        if self._failed is not None:
            raise self._failed
        self._sync()


def _write_at(file: BinaryIO, data: memoryview, offset: int) -> None:
    """Write all of the data at a place."""
    file.seek(offset)
    while len(data):
        data = data[file.write(data) :]
