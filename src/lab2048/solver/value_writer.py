"""The values of a table in the making."""

from __future__ import annotations

import os
import threading
import zlib
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np

from lab2048.engine.arrays import Floats
from lab2048.solver.table_files import CARRY, KINDS, VALUES, TableError, sync
from lab2048.solver.table_writer import Record
from lab2048.solver.value_file import ValueFile

FLUSH_BYTES = 1 << 26
"""Bytes after which files are flushed, so that little is left to be written at the end."""


class ValueWriter:
    """Writes the layers of `values.bin`, oldest first, and carries the last two along.

    A resumed run needs these two as computed. So they have files of their own (`CARRY`) if
    `values.bin` stores them rounded, or is not kept.
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
            # damaged, or of a summary that is now to be a table: compute all values again
            record.data.update(valued=0, crcs=[], carry={}, terminals=0, starts={})
        if keep:
            self._file = path.open("r+b", buffering=0)
            self._file.truncate(self._places[-1] * self._kind.itemsize)

    def _are_kept(self, path: Path, keep: bool) -> bool:
        """Whether the file holds all values recorded as valid, if they are to be kept."""
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
        """Whether the carried values that a resumed run needs are intact."""
        data = self.record.data
        left = len(data["states"]) - data["valued"]
        wanted = range(left, min(left + 2, len(data["states"])))
        return not self._carries or all(map(self._is_carried, wanted))

    def _is_carried(self, number: int) -> bool:
        """Whether the values of a layer were carried along and match their checksum."""
        path, crcs = self._carry_path(number), self.record.data["carry"]
        kept = isinstance(crcs, dict) and str(number) in crcs and path.exists()
        return kept and zlib.crc32(path.read_bytes()) == crcs[str(number)]

    def carried(self, number: int) -> Floats:
        """The values, as computed, of one of the last two layers that were committed."""
        path, kind, first = self.places(number)[-1]
        size = self.record.data["states"][number]
        return np.fromfile(path, kind, size, offset=np.dtype(kind).itemsize * first)

    def places(self, number: int) -> list[tuple[str, str, int]]:
        """The files that hold a layer's values: path, type, and number of values before it.

        The last of them stores float64.
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
        # only now, and all at once: the write may have failed
        self._note(number, values, crc, terminals, starts)
        if self.record.is_due:
            self.commit()
        elif self._unflushed > FLUSH_BYTES:
            self._flush_aside()

    def note_written(self, number: int, crcs: Sequence[int], terminals: int) -> None:
        """Record that a layer is in all of its `places`, with these checksums."""
        self._note(number, crcs[-1], crcs[0] if self._file else None, terminals, {})

    def _note(
        self,
        number: int,
        carried: Floats | int,
        crc: int | None,
        terminals: int,
        starts: dict[str, float],
    ) -> None:
        """Record that the values of a layer are written.

        `carried` is its values, or their checksum if they are in their own file already.
        """
        if self._carries:
            self._carried.append((number, carried))
        data = self.record.data
        data["valued"] += 1
        data["crcs"].append(crc)
        data["terminals"] = terminals
        data["starts"].update(starts)

    def _flush_aside(self) -> None:
        """Sync what was written to disk, in a background thread."""
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
        except OSError as error:  # the system reports it only once
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
            if path.name in done_with:  # those of younger layers are being written
                path.unlink(missing_ok=True)

    def _carry(self, number: int, values: Floats | int) -> int:
        """Store the carried values of a layer on disk; return their checksum."""
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
        """Close the file."""
        if self._flushing is not None:
            self._flushing.join()
        if self._file is not None:
            self._file.close()

    def finish(self) -> None:
        """Sync everything to disk."""
        self._finish_flushing()

    def _finish_flushing(self) -> None:
        if self._flushing is not None:
            self._flushing.join()
        if self._failed is not None:
            raise self._failed
        self._sync()


def _write_at(file: BinaryIO, data: memoryview, offset: int) -> None:
    """Write all of the data at an offset."""
    file.seek(offset)
    while len(data):
        data = data[file.write(data) :]
