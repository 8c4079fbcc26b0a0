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
from pathlib import Path
from typing import Any

import numpy as np

from lab2048.game.notation import short
from lab2048.home import home, write_atomically
from lab2048.solver.problem import Problem

FORMAT = 2
BLOCK_KEYS = 1 << 16
"""Keys of a block: a constant of the format, like the codec's settings (`pack_block`)."""
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
AGAIN = "lab2048 solve --replace makes the table anew"
"""What to do about a table that cannot be used."""


class TableError(ValueError):
    """A table that is damaged, unfinished, or none at all.

    >>> from lab2048 import open_table
    >>> try:
    ...     open_table("5x2", p4=0.123)
    ... except TableError as error:
    ...     print(error)
    there is no table 5x2-score-p4-0.123; make it with: lab2048 solve 5x2 --p4 0.123
    """


class OtherTableError(TableError):
    """A table of something else than what was asked for."""


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


def files_of(folder: Path) -> list[Path]:
    """The files of a table in a folder."""
    return [child for child in folder.iterdir() if _OURS.fullmatch(child.name)]


def clear_away(folder: Path) -> None:
    """Remove what was only of use while a table was being made."""
    for child in folder.iterdir():
        if _OURS.fullmatch(child.name) and child.suffix in (".tmp", ".part"):
            child.unlink(missing_ok=True)
    shutil.rmtree(folder / SHARDS, ignore_errors=True)
    (folder / PROGRESS).unlink(missing_ok=True)


def default_folder(problem: Problem, values: str = "float64") -> Path:
    """The default folder of a table."""
    name = problem.name if values == "float64" else f"{problem.name}-{values}"
    return tables_folder() / name


# -- files in general --------------------------------------------------------------------------


def blocks_of(keys: int) -> int:
    """The number of blocks that the keys of a layer make."""
    return -(-keys // BLOCK_KEYS)


def age_of(layer: int) -> int:
    """The age of a layer's states; the first is layer 0."""
    return 4 + 2 * layer


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
        raise TableError(f"{path} is damaged; {AGAIN}") from None
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
