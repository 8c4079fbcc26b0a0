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
import sys
import threading
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab2048.home import home, write_atomically
from lab2048.notation import short
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
    if found is not None and same and found["format"] < FORMAT:
        clear_away(folder)
        for name in (MANIFEST, KEYS, BLOCKS, VALUES, RUN):
            (folder / name).unlink(missing_ok=True)


def default_folder(problem: Problem, values: str = "float64") -> Path:
    """The folder of a table that nobody named one for."""
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


def unpack_block(packed: bytes, crc: int, what: str) -> Words:
    """The keys of a block, or a `TableError` that says which one is damaged."""
    if zlib.crc32(packed) != crc:
        raise TableError(f"{what} is damaged: its checksum is wrong")
    return np.frombuffer(_codec().decompress2(packed, nthreads=1), "<u8")


class KeyFile:
    """The keys of a table, or of one in the making, layer by layer. Any thread may read."""

    def __init__(self, folder: Path, counts: Sequence[int]) -> None:
        self.counts = counts
        self.starts = np.cumsum([0, *map(blocks_of, counts)]).tolist()
        self.blocks = np.fromfile(folder / BLOCKS, BLOCK_HEAD, self.starts[-1])
        self._path = folder / KEYS
        self._file = os.open(self._path, os.O_RDONLY | getattr(os, "O_BINARY", 0))

    def close(self) -> None:
        """Give the file back."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def block(self, layer: int, number: int) -> Words:
        """The keys of one block of a layer."""
        head = self.blocks[self.starts[layer] + number]
        what = f"block {number} of age {age_of(layer)} in {self._path}"
        wanted = min(BLOCK_KEYS, self.counts[layer] - number * BLOCK_KEYS)
        return read_block(self._file, head, wanted, what)

    def layer(self, layer: int) -> Words:
        """All keys of a layer."""
        return joined([self.block(layer, n) for n in range(self.blocks_in(layer))])

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
    """The keys of a block that has so many, or a `TableError` that says which one is damaged."""
    packed = read_at(file, int(head["size"]), int(head["offset"]))
    keys = unpack_block(packed, int(head["crc"]), what)
    if len(keys) != wanted or keys[0] != head["first"]:
        raise TableError(f"{what} is damaged: it does not hold the keys it should")
    return keys


def joined(pieces: list[Words]) -> Words:
    """The keys of several blocks."""
    return np.concatenate([np.empty(0, np.uint64), *pieces])


def age_of(layer: int) -> int:
    """The age of a layer's states; the first is layer 0."""
    return 4 + 2 * layer


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
    text = json.dumps(found, indent=1)
    sealed = {**found, "checksum": zlib.crc32(text.encode())}
    write_atomically(path, json.dumps(sealed, indent=1) + "\n")


def read_json(path: Path) -> dict[str, Any] | None:
    """The object that `write_json` wrote; None if there is no file, an error if it is damaged."""
    try:
        found = json.loads(path.read_text("utf-8"))
        checksum = found.pop("checksum")
        if checksum != zlib.crc32(json.dumps(found, indent=1).encode()):
            raise ValueError
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, AttributeError, TypeError):
        raise TableError(f"{path} is damaged; solve the table again in another folder") from None
    return found  # type: ignore[no-any-return]


def description(path: Path, manifest: dict[str, Any]) -> dict[str, Any]:
    """What is known about a finished table, and about the run that made it."""
    try:
        run = read_json(path / RUN) or {}
    except TableError:  # it is only about how the table was made
        run = {}
    names = ("board", "p4", "objective", "gamma", "states", "afterstates", "terminals", "max_age")
    return {
        **{name: manifest[name] for name in names},
        "value": manifest["value"],
        "values": manifest["values"],
        "seconds": run.get("seconds"),
        "threads": run.get("threads"),
        "peak_memory_bytes": run.get("peak_memory_bytes"),
        "table_bytes": sum(file["bytes"] for file in manifest["files"].values()),
        "keep": manifest["keep"],
        "table": str(path),
    }


def check_folder(path: Path) -> None:
    """A `TableError` if the folder is used for something else."""
    if path.exists() and not path.is_dir():
        raise TableError(f"{path} is a file; a table is a folder")
    if others := other_files(path):
        raise TableError(f"{path} holds other files, such as {others[0]}; choose a new folder")


def is_whole(folder: Path, manifest: dict[str, Any]) -> bool:
    """Whether all files of a finished table are there, as long as they should be."""
    try:
        return all(
            (folder / name).stat().st_size == facts["bytes"]
            and ("crc" not in facts or zlib.crc32((folder / name).read_bytes()) == facts["crc"])
            for name, facts in manifest["files"].items()
        )
    except FileNotFoundError:
        return False


def file_facts(path: Path, checksum: bool) -> dict[str, int]:
    """What a manifest says of a file. Of the large ones it is the blocks that have checksums."""
    facts = {"bytes": path.stat().st_size}
    return facts | {"crc": zlib.crc32(path.read_bytes())} if checksum else facts


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
