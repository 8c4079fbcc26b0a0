"""The files of a table, and how they are written so that nothing is ever half there.

A table is a folder (docs/formats.md). While it is being made, `keys.bin` and `blocks.bin` grow at
their ends, `values.bin` fills from its end to its beginning, and `progress.json` says how much of
them counts. It is replaced, atomically, every few seconds, after the files have been brought to the
disk; what a crash leaves beyond it is written again, with the same bytes. `manifest.json` comes
last.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import sys
import threading
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab2048.home import home, write_atomically
from lab2048.notation import short, whole
from lab2048.solve.problem import Problem

Words = NDArray[np.uint64]

FORMAT = 2
BLOCK_KEYS = 1 << 16
"""Keys of a block. Like the codec's settings below, it is a constant of the format."""
BLOCK_HEAD = np.dtype([("first", "<u8"), ("offset", "<u8"), ("size", "<u4"), ("crc", "<u4")])
"""What `blocks.bin` says of a block: its first key, where it lies, how long it is, its checksum."""

KEYS, BLOCKS, VALUES = "keys.bin", "blocks.bin", "values.bin"
MANIFEST, RUN, PROGRESS = "manifest.json", "run.json", "progress.json"
SCRATCH, CARRY, LOCK, SHARDS = "afterstates.tmp", "carry-{}.tmp", "lock", "shards"
_OURS = re.compile(
    r"keys\.bin|blocks\.bin|values\.bin|afterstates\.tmp|carry-\d+\.tmp|lock|shards"
    r"|(manifest|run|progress)\.json(\.[0-9a-f]+\.part)?|carry-\d+\.tmp\.part"
)
"""The names of all files that a table ever has."""
KINDS: dict[str, np.dtype[Any]] = {"float64": np.dtype("<f8"), "float32": np.dtype("<f4")}
JSON_BYTES = 1 << 24
"""No small file of a table is larger: that of a board of 12 cells takes about 2 MB."""
PACKED_BYTES = (8 * BLOCK_KEYS) + (1 << 16)
"""No compressed block is larger: keys that do not compress are stored as they are."""
PIECE = 1 << 20
"""Bytes of values read at a time: few enough to stay in the processor's cache."""


class TableError(ValueError):
    """A table that is damaged, unfinished, or none at all."""


def tables_folder() -> Path:
    """Where tables are kept unless another place is named."""
    return home() / "tables"


def expanded(path: Path | str) -> Path:
    """A path with `~` spelt out, or a `ValueError` if there is no such user."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise ValueError(f"{path}: there is no such user") from None


def other_files(folder: Path) -> list[str]:
    """The names of files in a folder that are not of a table."""
    names = sorted(child.name for child in folder.iterdir()) if folder.is_dir() else []
    return [name for name in names if not _OURS.fullmatch(name)]


def clear_away(folder: Path) -> None:
    """Remove what was only of use while a table was being made."""
    for child in folder.iterdir():
        if _OURS.fullmatch(child.name) and child.suffix in (".tmp", ".part"):
            child.unlink(missing_ok=True)
    shutil.rmtree(folder / SHARDS, ignore_errors=True)
    (folder / PROGRESS).unlink(missing_ok=True)


def discard_older(folder: Path, identity: dict[str, Any]) -> None:
    """Remove what an older version made of the same table: nothing can read it any more."""
    found = read_json(folder / MANIFEST)
    if found is None:
        found = read_json(folder / PROGRESS)
    same = found is not None and all(found.get(name) == value for name, value in identity.items())
    if found is not None and same and is_older(found):
        clear_away(folder)
        for name in (MANIFEST, KEYS, BLOCKS, VALUES, RUN):
            (folder / name).unlink(missing_ok=True)


def is_older(found: dict[str, Any]) -> bool:
    """Whether an older version wrote a manifest, or a record of the work."""
    return (whole(found.get("format")) or FORMAT) < FORMAT


def default_folder(problem: Problem, values: str = "float64") -> Path:
    """The default folder of a table."""
    name = problem.name if values == "float64" else f"{problem.name}-{values}"
    return tables_folder() / name


# -- keys ----------------------------------------------------------------------------------------


def blocks_of(keys: int) -> int:
    """How many blocks so many keys of a layer make."""
    return -(-keys // BLOCK_KEYS)


def _codec() -> Any:
    """The compression library, set so that threads do not wait for one another."""
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
    """The keys of a block that has this number of them; None if it has not."""
    blosc2 = _codec()
    try:
        if blosc2.get_cbuffer_sizes(packed)[0] != 8 * wanted:  # not to be believed: it is allocated
            return None
        return np.frombuffer(blosc2.decompress2(packed, nthreads=1), "<u8")
    except (RuntimeError, TypeError, ValueError):  # not what the codec wrote
        return None


class KeyFile:
    """The keys of a table, or of one in the making, layer by layer. Any thread may read."""

    def __init__(self, folder: Path, counts: Sequence[int]) -> None:
        self.counts = counts
        self.starts = np.cumsum([0, *map(blocks_of, counts)]).tolist()
        self.blocks = np.fromfile(folder / BLOCKS, BLOCK_HEAD, self.starts[-1])
        self._path = folder / KEYS
        self._file = open_to_read(self._path)

    def close(self) -> None:
        """Give the file back."""
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
        """How many keys of a layer are below this one."""
        first = self.blocks["first"][self.starts[layer] : self.starts[layer + 1]]
        number = max(0, int(np.searchsorted(first, np.uint64(key))) - 1)
        keys = self.block(layer, number)
        return number * BLOCK_KEYS + int(np.searchsorted(keys, np.uint64(key)))

    def blocks_in(self, layer: int) -> int:
        """How many blocks a layer has."""
        return blocks_of(self.counts[layer])


def read_block(file: int, head: Any, wanted: int, what: str) -> Words:
    """The `wanted` keys of a block; a `TableError` that names it if it is damaged."""
    keys = unpack_block(read_packed(file, head, what), wanted)
    if keys is None or keys[0] != head["first"]:
        raise TableError(f"{what} is damaged: it does not hold the keys it should")
    return keys


def read_packed(file: int, head: Any, what: str) -> bytes:
    """A block as it is stored, or a `TableError` if that is not what was written."""
    size, offset = int(head["size"]), int(head["offset"])
    # a place beyond what any file has is no argument of a read
    packed = read_at(file, size, offset) if size <= PACKED_BYTES and offset < 1 << 62 else b""
    if len(packed) != size or zlib.crc32(packed) != head["crc"]:
        raise TableError(f"{what} is damaged: its checksum is wrong")
    return packed


def joined(pieces: list[Words]) -> Words:
    """The keys of several blocks."""
    return np.concatenate([np.empty(0, np.uint64), *pieces])


def age_of(layer: int) -> int:
    """The age of a layer's states; the first is layer 0."""
    return 4 + 2 * layer


class ValueFile:
    """The values of a table, or of one in the making, layer by layer. Any thread may read.

    The file is read, not mapped: when somebody cuts it off, that is an error of this table and not
    the end of the process.
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
        """Give the file back."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def layer(self, layer: int) -> NDArray[Any]:
        """All values of a layer. They are compared with their checksum each time."""
        values = np.empty(self._starts[layer + 1] - self._starts[layer], np.uint8)
        place = 0
        for piece in self._pieces(layer):
            values[place : place + len(piece)] = np.frombuffer(piece, np.uint8)
            place += len(piece)
        return self._numbers(layer, values)

    def block(self, layer: int, number: int) -> NDArray[Any]:
        """The values of a block of keys.

        Its layer is compared with the checksum when it is first used, and again after the file has
        changed.
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
        """Compare a layer with its checksum; a `TableError` if it is damaged."""
        for _ in self._pieces(layer):
            pass

    def _pieces(self, layer: int) -> Iterator[bytes]:
        """The values of a layer as they are stored; at the end a `TableError` if they are wrong."""
        crc, end = 0, self._starts[layer + 1]
        for begin in range(self._starts[layer], end, PIECE):
            piece = self._read(layer, begin, min(PIECE, end - begin))
            crc = zlib.crc32(piece, crc)
            yield piece
        if crc != self._crcs[layer]:
            raise self._damaged(layer, "their checksum is wrong")

    def _read(self, layer: int, begin: int, size: int) -> bytes:
        """A part of a layer as it is stored."""
        found = read_at(self._file, size, begin)
        if len(found) != size:
            raise self._damaged(layer, "the file ends too early")
        return found

    def _numbers(self, layer: int, stored: NDArray[np.uint8]) -> NDArray[Any]:
        """Values, or a `TableError` if some never were, though their checksum is right."""
        values = stored.view(self._kind)
        if not (values.min(initial=0) >= 0 and values.max(initial=0) < np.inf):
            raise self._damaged(layer, "not all of them are numbers from 0 up")
        return values

    def _state(self) -> tuple[int, int]:
        """What is different after the file has changed."""
        found = os.fstat(self._file)
        return found.st_mtime_ns, found.st_size

    def _damaged(self, layer: int, why: str) -> TableError:
        """The error that says which values are damaged."""
        return TableError(f"the values of age {age_of(layer)} in {self._path} are damaged: {why}")


def open_to_read(path: Path) -> int:
    """A handle of a file to read at places of."""
    return os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))


def read_at(file: int, size: int, offset: int) -> bytes:
    """A piece of an open file; less where the file ends."""
    if hasattr(os, "pread"):
        return os.pread(file, size, offset)
    with _seeking:  # Windows has no way to read at a place without going there
        os.lseek(file, offset, os.SEEK_SET)
        return os.read(file, size)


_seeking = threading.Lock()


# -- afterstates, while a table is being made ----------------------------------------------------


def pack_afters(keys: Words) -> bytes:
    """Sorted keys in four bytes each: how many have each upper half, and their lower halves."""
    top = int(keys[-1] >> np.uint64(32)) + 1 if len(keys) else 0
    bounds = np.searchsorted(keys, np.arange(top + 1, dtype=np.uint64) << np.uint64(32))
    counts = np.diff(bounds).astype("<u4")
    return b"".join((np.uint32(top).tobytes(), counts.tobytes(), keys.astype("<u4").tobytes()))


class PackedAfters:
    """Keys that `pack_afters` packed, all of them or some."""

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

    def some(self, places: NDArray[np.int64]) -> Words:
        """The keys at some places."""
        upper = np.searchsorted(self._starts, places, "right").astype(np.uint64) - np.uint64(1)
        return np.asarray(upper << np.uint64(32) | self._lower[places], np.uint64)

    def below(self, key: int) -> int:
        """How many keys are below this one."""
        upper = min(key >> 32, len(self._starts) - 1)
        begin, end = self._starts[[upper, min(upper + 1, len(self._starts) - 1)]].tolist()
        return int(begin + np.searchsorted(self._lower[begin:end], np.uint32(key & 0xFFFFFFFF)))


# -- small files ---------------------------------------------------------------------------------


def write_json(path: Path, found: dict[str, Any]) -> None:
    """Write a JSON object with a checksum of itself, atomically."""
    write_atomically(path, _sealed(found))


def _sealed(found: dict[str, Any]) -> str:
    """The text of a JSON object, with its checksum as the last field."""
    text = json.dumps(found, indent=1, allow_nan=False)
    return f'{text[:-2]},\n "checksum": {zlib.crc32(text.encode())}\n}}\n'


def read_json(path: Path) -> dict[str, Any] | None:
    """The object that `write_json` wrote; None if there is no file, an error if it is damaged.

    Every byte counts, white space too. Only the line ends may be those of another system.
    """
    try:
        text = _read_small(path).decode().replace("\r\n", "\n")
        found = json.loads(text)
        del found["checksum"]
        if text != _sealed(found):
            raise ValueError
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise TableError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        raise TableError(f"{path} is damaged; solve the table again in another folder") from None
    return found  # type: ignore[no-any-return]


def _read_small(path: Path) -> bytes:
    """All of a small file; a `ValueError` if it is a large one, a folder or a pipe."""
    # a pipe that nobody writes to would be waited for
    file = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0))
    try:
        facts = os.fstat(file)
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > JSON_BYTES:
            raise ValueError
        return read_at(file, facts.st_size, 0)
    finally:
        os.close(file)


def check_folder(path: Path) -> None:
    """A `TableError` if the folder is used for something else."""
    if path.exists() and not path.is_dir():
        raise TableError(f"{path} is a file; a table is a folder")
    if others := other_files(path):
        raise TableError(f"{path} holds other files, such as {others[0]}; choose a new folder")


def sync(path: Path) -> None:
    """Bring a folder's list of files, or a file, to the disk."""
    if sys.platform == "win32" and path.is_dir():
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def checked_kind(kind: object) -> str:
    """How values are stored, or a `ValueError`."""
    if kind not in KINDS:
        raise ValueError(f"values are stored as float64 or float32, not {short(kind)}")
    return str(kind)
