"""Networks on disk: safetensors files, with a description of the network in their metadata.

Every trained network has a folder named after it; some networks come with the package. Metadata
and tensors have checksums, so that a damaged file is reported, not played.
"""

from __future__ import annotations

import errno
import json
import os
import re
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lab2048.formatting import size
from lab2048.game import Rules
from lab2048.home import home, replacing
from lab2048.learn.registry import find_learner, is_learner, kind_of_network
from lab2048.learn.settings import Facts as Facts  # noqa: PLC0414
from lab2048.players.player import PlayerError
from lab2048.players.shipped import shipped

FORMAT = 1
SUFFIX = ".safetensors"
FILE = f"weights{SUFFIX}"
KEY, CRC = "lab2048", "crc32"
"""Keys of a file's metadata: the facts about the network as JSON, and the CRC-32 of that text."""
TRAINING = ("adam.", "game.")
"""Prefixes of the names of tensors that only training needs."""

Tensors = dict[str, NDArray[Any]]
Shapes = dict[str, tuple[str, tuple[int, ...]]]
"""The type of each tensor, as safetensors names it (such as F32), and its shape."""


def networks_folder() -> Path:
    """Return the folder of all trained networks."""
    return home() / "networks"


def network_folder(name: str) -> Path:
    """Return the folder of a trained network by its name."""
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._+-]{0,99}", name) or name.endswith(SUFFIX):
        raise ValueError(f"a network's name is of letters, digits and . _ + -, not {name[:40]!r}")
    return networks_folder() / name


def find_network(name: str, kind: str, board: str) -> Path:
    """Return the file of a network by path or name, or the package's own if `name` is empty."""
    if name:
        path = Path(name) if name.endswith(SUFFIX) else network_folder(name) / FILE
        if not path.exists():
            known = sorted(each.parent.name for each in networks_folder().glob(f"*/{FILE}"))
            there = f"there is {', '.join(known[:20])}" if known else "none was trained yet"
            raise ValueError(f"there is no network {name[:60]}; {there}")
        return path
    path = shipped(kind, board)
    if not path.exists():
        how = find_learner(kind).command(board)
        raise ValueError(
            f"there is no {kind} network for {board} in the package; train one with `{how}`, and "
            f"it plays as {kind}:NAME"
        )
    return path


class NetworkFile(NamedTuple):
    """The file of a network, and its modification time and inode, which tell when it changes."""

    path: Path
    changed: tuple[int, int]


def network_file(name: str, kind: str, rules: Rules) -> NetworkFile:
    """Return the file of a network (`find_network`) in its current version."""
    path = find_network(name, kind, rules.name)
    found = path.stat()
    return NetworkFile(path.resolve(), (found.st_mtime_ns, found.st_ino))


def check_board(name: str, facts: Facts, rules: Rules) -> None:
    """Raise a `PlayerError` if a network is for another board."""
    board = facts.get("board")
    if board != rules.name:
        raise PlayerError(f"the network {name} is for {board}, the board is {rules.name}")


def write_tensors(path: Path, kind: str, facts: Mapping[str, Any], tensors: Tensors) -> None:
    """Write a network atomically, with the facts about it as metadata."""
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    tensors = {name: np.asarray(tensor, order="C") for name, tensor in tensors.items()}
    sums = {name: zlib.crc32(tensor.data) for name, tensor in tensors.items()}
    about = {"format": FORMAT, "kind": kind, **facts, "checksums": sums}
    text = json.dumps(about, default=lambda number: number.item())  # those of NumPy
    with replacing(path) as temporary:
        temporary.touch()
        mode = temporary.stat().st_mode
        try:
            save_file(tensors, temporary, metadata={KEY: text, CRC: str(zlib.crc32(text.encode()))})
        except SafetensorError as error:  # raised for a full disk, too
            raise OSError(errno.EIO, str(error), str(path)) from error
        temporary.chmod(mode)  # safetensors makes it readable for the owner only


def read_tensors(
    path: Path,
    kind: str,
    needed: Mapping[str, type],
    leave: Collection[str] = (),
    check: Callable[[Facts, Shapes], object] = lambda facts, shapes: None,
) -> tuple[Facts, Tensors]:
    """Read the facts and the tensors of a network of a kind; it must have the `needed` facts.

    Tensors whose names begin with one of `leave` are not read. `check` is called before any tensor
    is read, and raises an error if their types or shapes contradict the facts.
    """
    with _opened(path) as file:
        facts = _facts(path, file.metadata() or {})
        if facts["kind"] != kind:
            raise ValueError(f"{path} is not {kind_of_network(kind)} of lab2048")
        for name, type_ in needed.items():
            if type(facts.get(name)) is not type_:
                raise ValueError(f"{path} is damaged: it does not say what {name} is")
        names = [each for each in file.keys() if not each.startswith(tuple(leave))]  # noqa: SIM118
        slices = {name: file.get_slice(name) for name in names}
        with damage_told(path):
            check(facts, {n: (s.get_dtype(), tuple(s.get_shape())) for n, s in slices.items()})
        tensors = {name: file.get_tensor(name) for name in slices}
    for name, tensor in tensors.items():
        if name not in facts["checksums"] or zlib.crc32(tensor.data) != facts["checksums"][name]:
            raise ValueError(f"{path} is damaged: the checksum of {name} is wrong")
    return facts, tensors


def read_facts(path: Path) -> Facts:
    """Read the facts about a network of any kind, without its weights."""
    with _opened(path) as file:
        return _facts(path, file.metadata() or {})


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Open a safetensors file; a `ValueError` if it is damaged or of another format."""
    from safetensors import SafetensorError, safe_open

    path.open("rb").close()  # raises an OSError that names the file
    try:
        with safe_open(path, "numpy") as file:
            yield file
    except (SafetensorError, json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{path} is damaged, or no safetensors file: {error}") from None


@contextmanager
def damage_told(what: object) -> Iterator[None]:
    """Turn errors that unexpected facts or tensors cause into a `ValueError` that names it."""
    try:
        yield
    except (KeyError, TypeError, IndexError, AttributeError, OverflowError) as error:
        raise ValueError(f"{what} is damaged: {type(error).__name__} {error}") from None
    except TooLargeError as error:
        raise TooLargeError(f"{what}: {error}") from None
    except ValueError as error:
        raise ValueError(f"{what} is damaged: {error}") from None


class TooLargeError(ValueError):
    """Something does not fit into memory."""


def check_memory(needed: int, what: str) -> None:
    """Raise a `TooLargeError` if something needs more memory than this machine has."""
    try:
        there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # Windows does not tell
        return
    if needed > there:
        raise TooLargeError(f"{what} take {size(needed)} of memory, and there is {size(there)}")


def _facts(path: Path, metadata: dict[str, str]) -> Facts:
    """Return the facts about a network from the metadata of its file."""
    text = metadata.get(KEY, "null")
    facts = json.loads(text)
    if not isinstance(facts, dict) or not is_learner(facts.get("kind")):
        raise ValueError(f"{path} is not a network of lab2048")
    if facts.get("format") != FORMAT:
        raise ValueError(f"{path} is of format {facts.get('format')}; {FORMAT} is known here")
    if metadata.get(CRC) != str(zlib.crc32(text.encode())):
        raise ValueError(f"{path} is damaged: the checksum of its metadata is wrong")
    if type(facts.get("checksums")) is not dict:
        raise ValueError(f"{path} is damaged: it does not say what checksums is")
    return facts
