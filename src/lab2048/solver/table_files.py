"""The files of a table, and how they are written to survive a crash.

A table is a folder (docs/formats.md). While it is being made, `keys.bin` and `blocks.bin` grow at
their ends, `values.bin` is filled from its end to its beginning, and `progress.json` records how
much of them is valid. It is replaced atomically every few seconds, after the files have been synced
to disk; whatever a crash leaves beyond it is written again, with the same bytes. `manifest.json`
comes last.
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
"""Keys per block: a constant of the format, like the codec's settings (`pack_block`)."""
BLOCK_HEAD = np.dtype([("first", "<u8"), ("offset", "<u8"), ("size", "<u4"), ("crc", "<u4")])
"""The record of a block in `blocks.bin`: its first key, offset, size and checksum."""

KEYS, BLOCKS, VALUES = "keys.bin", "blocks.bin", "values.bin"
MANIFEST, RUN, PROGRESS = "manifest.json", "run.json", "progress.json"
SCRATCH, CARRY, LOCK, SHARDS = "afterstates.tmp", "carry-{}.tmp", "lock", "shards"
_OURS = re.compile(
    r"keys\.bin|blocks\.bin|values\.bin|afterstates\.tmp|carry-\d+\.tmp|lock|shards"
    r"|(manifest|run|progress)\.json(\.[0-9a-f]+\.part)?|carry-\d+\.tmp\.part"
)
"""Matches the name of every file that a table may have."""
KINDS: dict[str, np.dtype[Any]] = {"float64": np.dtype("<f8"), "float32": np.dtype("<f4")}
JSON_BYTES = 1 << 24
"""The largest size of a table's JSON files; on a board of 12 cells they take about 2 MB."""
AGAIN = "lab2048 solve --replace makes the table anew"
"""What error messages advise for a table that cannot be used."""


class TableError(ValueError):
    """A table that is damaged, unfinished or missing.

    >>> from lab2048 import open_table
    >>> try:
    ...     open_table("5x2", p4=0.123)
    ... except TableError as error:
    ...     print(error)
    there is no table 5x2-score-p4-0.123; make it with: lab2048 solve 5x2 --p4 0.123
    """


class OtherTableError(TableError):
    """A table that is not the one asked for: another problem, or other values."""


def tables_folder() -> Path:
    """The default folder of all tables."""
    return home() / "tables"


def expanded(path: Path | str) -> Path:
    """A path with `~` expanded; `ValueError` if there is no such user."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise ValueError(f"{path}: there is no such user") from None


def other_files(folder: Path) -> list[str]:
    """The names of files in a folder that do not belong to a table."""
    names = sorted(child.name for child in folder.iterdir()) if folder.is_dir() else []
    return [name for name in names if not _OURS.fullmatch(name)]


def files_of(folder: Path) -> list[Path]:
    """The files of a table in a folder."""
    return [child for child in folder.iterdir() if _OURS.fullmatch(child.name)]


def clear_away(folder: Path) -> None:
    """Remove the files that are needed only while a table is being made."""
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
    """The number of blocks that this number of keys takes."""
    return -(-keys // BLOCK_KEYS)


def age_of(layer: int) -> int:
    """The age of a layer's states; the first is layer 0."""
    return 4 + 2 * layer


def open_to_read(path: Path) -> int:
    """Open a file for `read_at`; return its descriptor."""
    return os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))


def read_at(file: int, size: int, offset: int) -> bytes:
    """Read `size` bytes of an open file at an offset; fewer if the file ends before."""
    if hasattr(os, "pread"):
        return os.pread(file, size, offset)
    with _seeking:  # without pread, as on Windows, threads share the file's position
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
    """The object that `write_json` wrote; None if there is no file, `TableError` if it is damaged.

    The checksum covers every byte. Only the line ends may be those of another system.
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
    """The contents of a small file; `ValueError` if it is too large, a folder or a pipe."""
    # without O_NONBLOCK, opening a pipe without a writer would block
    file = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0))
    try:
        facts = os.fstat(file)
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > JSON_BYTES:
            raise ValueError
        return read_at(file, facts.st_size, 0)
    finally:
        os.close(file)


def check_folder(path: Path) -> None:
    """Raise `TableError` if the path is a file, or a folder with files of another kind."""
    if path.exists() and not path.is_dir():
        raise TableError(f"{path} is a file; a table is a folder")
    if others := other_files(path):
        raise TableError(f"{path} holds other files, such as {others[0]}; choose a new folder")


def sync(path: Path) -> None:
    """Sync a file, or a folder's list of files, to disk."""
    if sys.platform == "win32" and path.is_dir():
        return
    # Windows syncs nothing that is open to read; folders cannot be opened to write
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def checked_kind(kind: object) -> str:
    """The type of stored values, a key of `KINDS`; otherwise `ValueError`."""
    if kind not in KINDS:
        raise ValueError(f"values are stored as float64 or float32, not {short(kind)}")
    return str(kind)


def checked_keep(keep: object) -> str:
    """What a solve keeps, `table` or `summary`; otherwise `ValueError`."""
    if keep not in ("table", "summary"):
        raise ValueError(f"keep is table or summary, not {short(keep)}")
    return str(keep)
