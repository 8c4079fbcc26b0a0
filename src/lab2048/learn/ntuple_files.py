"""N-tuple networks on disk: one safetensors file with the weights, and metadata of their training.

Only visited weights are stored: `visited` has one bit per weight (compressed with zlib), and
`weights` the weights whose bit is set, in order. A network still in training by temporal coherence
also has `coherence`, three more numbers per weight. A *packed* network has `codes` instead of
`weights`: multiples of a step. docs/formats.md has the details.
"""

from __future__ import annotations

import lzma
import zlib
from collections.abc import Container, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lab2048.engine.arrays import Bytes, Counts, Flags
from lab2048.game import Rules
from lab2048.learn.network_files import (
    Facts,
    Shapes,
    check_memory,
    damage_told,
    read_tensors,
    write_tensors,
)
from lab2048.learn.ntuple import Network, Weights, new_weights

KIND = "ntuple"
FACTS = {
    "board": str, "p4": float, "tuples": list, "method": str, "rule": str, "order": str,
    "rate": float, "rates": list, "initial": float, "gamma": float, "epsilon": float, "seed": int,
    "games": int, "moves": int, "seconds": float, "phase": int, "reach": dict,
}  # fmt: skip
NUMBERS = ("weights", "coherence")
"""The tensors with one row per visited weight."""
PIECE = 1 << 20
"""Bytes of `visited` that are unpacked at a time."""
MEMORY = 1 << 25
"""Memory limit in bytes for decompressing `codes`; those written here need a third of it."""
TOO_MANY = "it has too few weights, or too many"


@dataclass(frozen=True, eq=False)
class Stored:
    """A network as it is on disk: its weights and metadata."""

    network: Network
    weights: Weights
    """With `stride` numbers per weight: 1, or 4 with those of temporal coherence."""
    stride: int
    facts: dict[str, Any]

    @property
    def rules(self) -> Rules:
        """The rules it was trained for."""
        return Rules(self.network.rows, self.network.cols, self.facts["p4"])

    def plain(self) -> Stored:
        """The network with its weights alone, which is what play needs."""
        if self.stride == 1:
            return self
        weights = np.ascontiguousarray(self.weights[:: self.stride])
        return Stored(self.network, weights, 1, self.facts)


# -- write ---------------------------------------------------------------------------------------


def write_weights(path: Path, stored: Stored) -> None:
    """Write a network to a file atomically."""
    records = stored.weights.reshape(-1, stored.stride)
    # a weight of an earlier phase may not have been visited in this one
    flags = (records[:, 0] != 0) | (records[:, -1] != 0)
    found = records[flags]
    if not np.isfinite(found).all():
        raise ValueError(f"{path} is not written: there are weights that are no numbers")
    tensors = {"visited": _bits(flags), "weights": np.ascontiguousarray(found[:, 0])}
    if stored.stride > 1:
        tensors["coherence"] = np.ascontiguousarray(found[:, 1:])
    write_tensors(path, KIND, stored.facts, tensors)


def write_packed(path: Path, stored: Stored, step: float, visits: int = 1) -> None:
    """Write a network to the smallest file that it can be played from; it cannot be resumed.

    Weights are rounded to multiples of `step`. Those visited fewer than `visits` times are left
    out; visits are only known if all training was by temporal coherence. With uniform rounding most
    multiples are small numbers, which compress well; the same number of levels fitted to the
    weights takes more space and has a larger error.
    """
    records = stored.weights.reshape(-1, stored.stride)
    rounded = np.round(records[:, 0] / step)
    if len(rounded) and np.abs(rounded).max() >= 1 << 15:
        raise ValueError(f"weights as large as {np.abs(records[:, 0]).max():g} need a larger step")
    flags = rounded != 0
    if visits > 1:
        # earlier phases do not count visits; after an optimistic start a weight of 0 is not neutral
        if stored.facts["method"] != "tc" or stored.stride == 1:
            raise ValueError("how often weights were visited is only known of what learns by tc")
        flags &= records[:, -1] >= visits
    planes = rounded[flags].astype("<i2").view(np.uint8).reshape(-1, 2).T
    codes = lzma.compress(planes.tobytes(), lzma.FORMAT_XZ, preset=6)
    facts = {**stored.facts, "packed": {"step": step, "visits": visits}}
    write_tensors(path, KIND, facts, {"visited": _bits(flags), "codes": _bytes(codes)})


def _bytes(data: bytes) -> Bytes:
    """Bytes as a tensor."""
    return np.frombuffer(data, np.uint8)


def _bits(flags: Flags) -> Bytes:
    """Flags, one bit each, compressed."""
    return _bytes(zlib.compress(np.packbits(flags, bitorder="little").tobytes(), 1))


# -- read ----------------------------------------------------------------------------------------


def read_weights(path: Path, learning: bool = False) -> Stored:
    """Read a network from a file; if `learning`, with all that resuming its training needs.

    The tuples bound the number of weights, and `visited` tells how many there are. No more than
    that is ever decompressed.
    """
    leave = () if learning else ("coherence",)
    facts, tensors = read_tensors(path, KIND, FACTS, leave, _check_shapes)
    with damage_told(path):
        network, size, stride = _sizes(facts, tensors)
        bits = np.frombuffer(
            _inflated(zlib.decompressobj(), tensors["visited"], -(-size // 8)), np.uint8
        )
        count = sum(map(len, _places(bits, size)))
        if "codes" in tensors:
            tensors["weights"] = _unpacked(tensors["codes"], count, facts["packed"]["step"])
        if {len(tensors[each]) for each in NUMBERS if each in tensors} != {count}:
            raise ValueError(TOO_MANY)
        if not all(np.isfinite(tensors[each]).all() for each in NUMBERS if each in tensors):
            raise ValueError("it has weights that are no numbers")
        weights = new_weights(network, stride, facts["rule"] == "q")
        records, done = weights.reshape(-1, stride), 0
        for places in _places(bits, size):
            part = slice(done, done + len(places))
            records[places, 0] = tensors["weights"][part]
            if stride > 1:
                records[places, 1:] = tensors["coherence"][part]
            done += len(places)
    return Stored(network, weights, stride, facts)


def _sizes(facts: Facts, names: Container[str]) -> tuple[Network, int, int]:
    """The network, its number of weights, and the numbers per weight in the file."""
    rules = Rules.parse(facts["board"], facts["p4"])
    network = Network.of(" ".join(facts["tuples"]), rules)
    size, stride = network.size * (4 if facts["rule"] == "q" else 1), 1 + 3 * ("coherence" in names)
    check_memory(4 * stride * size, "weights of these tuples")
    return network, size, stride


def _check_shapes(facts: Facts, shapes: Shapes) -> None:
    """Raise a `ValueError` if a tensor's name, type or shape is not that of an n-tuple network."""
    _, size, _ = _sizes(facts, shapes)
    for name, (kind, shape) in shapes.items():
        wanted = "U8" if name in ("visited", "codes") else "F32"
        row = (3,) if name == "coherence" else ()
        if name not in (*NUMBERS, "visited", "codes") or kind != wanted or shape[1:] != row:
            raise ValueError(f"its tensor {name[:40]!r} is not that of an n-tuple network")
        if name in NUMBERS and shape[0] > size:
            raise ValueError(TOO_MANY)


def _places(bits: Bytes, size: int) -> Iterator[Counts]:
    """Yield the indices of the weights whose bits are set, in pieces."""
    for begin in range(0, len(bits), PIECE):
        piece = np.unpackbits(bits[begin : begin + PIECE], bitorder="little")
        yield 8 * begin + np.flatnonzero(piece[: size - 8 * begin])


def _inflated(decompressor: Any, packed: Bytes, size: int) -> bytes:
    """Decompress data, which must have `size` bytes; no more than one extra byte is unpacked."""
    try:
        found: bytes = decompressor.decompress(packed.tobytes(), size + 1)
    except (zlib.error, lzma.LZMAError) as error:
        raise ValueError(f"it cannot be decompressed: {error}") from None
    if len(found) != size or not decompressor.eof:
        raise ValueError(TOO_MANY)
    return found


def _unpacked(codes: Bytes, count: int, step: float) -> Weights:
    """The weights of a packed network: the low bytes of all multiples, then the high bytes."""
    data = _inflated(lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MEMORY), codes, 2 * count)
    planes = np.frombuffer(data, np.uint8).reshape(2, -1)
    return np.ascontiguousarray(planes.T).view("<i2")[:, 0] * np.float32(step)


def read_about(path: Path) -> Facts:
    """Metadata of an n-tuple network, read without its weights."""
    return read_tensors(path, KIND, FACTS, (*NUMBERS, "visited", "codes"))[0]
