"""Networks on disk: one safetensors file with the weights, and in its metadata all about them.

Only what was visited is stored: `visited` has a bit for each weight (compressed with zlib), and
`weights` those whose bit is set, in order. A network that is still learning by temporal coherence
also has `coherence`, the three other numbers of each. A *packed* network has `codes` in place of
`weights`: multiples of a step. docs/formats.md has the details.
"""

from __future__ import annotations

import errno
import json
import lzma
import re
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab2048.game import Rules
from lab2048.home import home, replacing
from lab2048.learn.ntuple import Network, Weights, new_weights

FORMAT = 1
SUFFIX = ".safetensors"
FILE = f"weights{SUFFIX}"
KEY, CRC = "lab2048", "crc32"
"""What is known about a network is in the file's metadata under these names: JSON, its checksum."""
FACTS = {
    "board": str, "p4": float, "tuples": list, "method": str, "rule": str, "order": str,
    "rate": float, "rates": list, "initial": float, "gamma": float, "epsilon": float, "seed": int,
    "games": int, "moves": int, "seconds": float, "phase": int, "reach": dict, "checksums": dict,
}  # fmt: skip

Tensors = dict[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Stored:
    """A network as it is on disk: its weights, and all that is known about it."""

    network: Network
    weights: Weights
    """With as many numbers for each as `stride` says: 1, or 4 if there is the coherence."""
    stride: int
    facts: dict[str, Any]

    @property
    def rules(self) -> Rules:
        """The rules it was trained for."""
        return Rules(self.network.rows, self.network.cols, self.facts["p4"])

    def plain(self) -> Stored:
        """The weights alone, as they are played with."""
        if self.stride == 1:
            return self
        weights = np.ascontiguousarray(self.weights[:: self.stride])
        return Stored(self.network, weights, 1, self.facts)


def networks_folder() -> Path:
    """The folder of all networks that were trained."""
    return home() / "networks"


def network_folder(name: str) -> Path:
    """The folder of a network that was trained, by its name."""
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._+-]{0,99}", name) or name.endswith(SUFFIX):
        raise ValueError(f"a network's name is of letters, digits and . _ + -, not {name[:40]!r}")
    return networks_folder() / name


# -- write ---------------------------------------------------------------------------------------


def write_weights(path: Path, stored: Stored) -> None:
    """Write a network to a file, all of it or nothing."""
    records = stored.weights.reshape(-1, stored.stride)
    # a weight of an earlier phase may not have been visited in this one
    flags = (records[:, 0] != 0) | (records[:, -1] != 0)
    found = records[flags]
    if not np.isfinite(found).all():
        raise ValueError(f"{path} is not written: there are weights that are no numbers")
    tensors = {"visited": _bits(flags), "weights": np.ascontiguousarray(found[:, 0])}
    if stored.stride > 1:
        tensors["coherence"] = np.ascontiguousarray(found[:, 1:])
    _write(path, stored, tensors, {})


def write_packed(path: Path, stored: Stored, step: float, visits: int = 1) -> None:
    """Write a network to a file that is as small as it gets, and cannot go on learning.

    Weights are rounded to multiples of `step`, and those that were visited less often left out,
    which is known of what learns by temporal coherence from the start. Rounded evenly, most are
    small numbers, which is what compresses well; as many levels chosen to fit the weights best take
    more room for a larger error.
    """
    records = stored.weights.reshape(-1, stored.stride)
    rounded = np.round(records[:, 0] / step)
    if len(rounded) and np.abs(rounded).max() >= 1 << 15:
        raise ValueError(f"weights as large as {np.abs(records[:, 0]).max():g} need a larger step")
    flags = rounded != 0
    if visits > 1:
        # visits of an earlier phase were not counted; and 0 is not what an optimist leaves out
        if stored.facts["method"] != "tc" or stored.stride == 1:
            raise ValueError("how often weights were visited is only known of what learns by tc")
        flags &= records[:, -1] >= visits
    planes = rounded[flags].astype("<i2").view(np.uint8).reshape(-1, 2).T
    codes = lzma.compress(planes.tobytes(), lzma.FORMAT_XZ, preset=6)
    packed = {"step": step, "visits": visits}
    _write(path, stored, {"visited": _bits(flags), "codes": _bytes(codes)}, {"packed": packed})


def _bytes(data: bytes) -> NDArray[np.uint8]:
    """Bytes as a tensor."""
    return np.frombuffer(data, np.uint8)


def _bits(flags: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Flags, a bit each, compressed."""
    return _bytes(zlib.compress(np.packbits(flags, bitorder="little").tobytes(), 1))


def _write(path: Path, stored: Stored, tensors: Tensors, more: dict[str, Any]) -> None:
    """Write tensors, with all about the network as their metadata."""
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    facts = {
        "format": FORMAT,
        "kind": "ntuple",
        **stored.facts,
        "checksums": {name: zlib.crc32(tensor.data) for name, tensor in tensors.items()},
        **more,
    }
    with replacing(path) as temporary:
        temporary.touch()
        mode = temporary.stat().st_mode
        try:
            text = json.dumps(facts)
            save_file(tensors, temporary, metadata={KEY: text, CRC: str(zlib.crc32(text.encode()))})
        except SafetensorError as error:  # which is what it makes of a full disk
            raise OSError(errno.EIO, str(error), str(path)) from error
        temporary.chmod(mode)  # safetensors lets nobody else read it


# -- read ----------------------------------------------------------------------------------------


def read_weights(path: Path, learning: bool = False) -> Stored:
    """A network from a file; with all that it takes to go on learning, if asked for."""
    try:
        facts, tensors = _read(path, {"coherence"} if not learning else set())
        rules = Rules.parse(facts["board"], facts["p4"])
        network = Network.of(" ".join(facts["tuples"]), rules)
        if "codes" in tensors:
            tensors["weights"] = _unpacked(tensors["codes"], facts["packed"]["step"])
        if not all(np.isfinite(tensors[each]).all() for each in tensors if each != "visited"):
            raise ValueError(f"{path} has weights that are no numbers")
        stride = 4 if "coherence" in tensors else 1
        weights = new_weights(network, stride, facts["rule"] == "q")
        records = weights.reshape(-1, stride)
        bits = np.frombuffer(zlib.decompress(tensors["visited"].tobytes()), np.uint8)
        flags = np.unpackbits(bits, count=len(records), bitorder="little").view(bool)
        counts = {len(tensors[each]) for each in ("weights", "coherence") if each in tensors}
        if 8 * len(bits) < len(records) or counts != {np.count_nonzero(flags)}:
            raise ValueError(f"{path} is damaged: it has too few weights, or too many")
        records[flags, 0] = tensors["weights"]
        if stride > 1:
            records[flags, 1:] = tensors["coherence"]
    except (KeyError, TypeError, IndexError, zlib.error, lzma.LZMAError) as error:
        raise ValueError(f"{path} is damaged: {type(error).__name__} {error}") from None
    return Stored(network, weights, stride, facts)


def _unpacked(codes: NDArray[np.uint8], step: float) -> Weights:
    """The weights of a packed network: low bytes of all multiples, then the high ones."""
    planes = np.frombuffer(lzma.decompress(codes.tobytes()), np.uint8).reshape(2, -1)
    return np.ascontiguousarray(planes.T).view("<i2")[:, 0] * np.float32(step)


def read_facts(path: Path) -> dict[str, Any]:
    """All that is known about a network, without its weights."""
    return _read(path, {"weights", "coherence", "visited", "codes"})[0]


def _read(path: Path, leave: set[str]) -> tuple[dict[str, Any], Tensors]:
    """What is known about a network, and its tensors but for some."""
    from safetensors import SafetensorError, safe_open

    path.open("rb").close()  # for what is wrong with that, in words
    try:
        with safe_open(path, "numpy") as file:
            facts = _facts(path, file.metadata() or {})
            tensors = {name: file.get_tensor(name) for name in set(file.keys()) - leave}
    except (SafetensorError, json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is damaged, or no safetensors file: {error}") from None
    for name, tensor in tensors.items():
        if name not in facts["checksums"] or zlib.crc32(tensor.data) != facts["checksums"][name]:
            raise ValueError(f"{path} is damaged: the checksum of {name} is wrong")
    return facts, tensors


def _facts(path: Path, metadata: dict[str, str]) -> dict[str, Any]:
    """What is known about a network, from the metadata of its file."""
    text = metadata.get(KEY, "null")
    facts = json.loads(text)
    if not isinstance(facts, dict) or facts.get("kind") != "ntuple":
        raise ValueError(f"{path} is not an n-tuple network of lab2048")
    if facts.get("format") != FORMAT:
        raise ValueError(f"{path} is of format {facts.get('format')}; {FORMAT} is known here")
    if metadata.get(CRC) != str(zlib.crc32(text.encode())):
        raise ValueError(f"{path} is damaged: the checksum of its metadata is wrong")
    for name, kind in FACTS.items():
        if type(facts.get(name)) is not kind:
            raise ValueError(f"{path} is damaged: it does not say what {name} is")
    return facts
