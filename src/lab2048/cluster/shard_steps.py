"""The tasks of a solve on a cluster: steps that read and write files.

A layer is divided into *shards*, ranges of its keys. A task reads files, does what a thread does on
one machine, with the same code, and writes files. Tasks are idempotent: one may run twice, even at
the same time, and leaves the same bytes. A file of its own is moved into place when it is complete;
into a common file it writes where no other task does.
"""

from __future__ import annotations

import os
import secrets
import zlib
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lab2048.engine.arrays import Buffer, Counts, Floats, Words
from lab2048.engine.jit import U
from lab2048.home import naming
from lab2048.solver.enumeration import NONE, Expander, Mover, moves_room, spawns_room
from lab2048.solver.induction import check_all_found, value_afters_kernel, value_states_kernel
from lab2048.solver.key_file import PackedAfters, pack_afters, pack_block, read_block
from lab2048.solver.keys import FIRST, LINE, Index, fill
from lab2048.solver.problem import Problem
from lab2048.solver.table_files import BLOCK_HEAD, BLOCK_KEYS

SAMPLES = 256
"""Number of keys sampled from a shard, to divide the next layer."""


# -- files ---------------------------------------------------------------------------------------


class Piece(NamedTuple):
    """A range of the keys in a file."""

    path: str
    begin: int
    end: int


def put(path: str, *parts: Any, spare: str | None = None) -> None:
    """Write a file atomically, without flushing it to the disk.

    A spare file is overwritten if it still exists: that is much faster than creating a new one.
    """
    temporary = f"{path}.{secrets.token_hex(4)}.part"
    try:
        with naming(Path(path)):
            if spare is not None:
                with suppress(FileNotFoundError):
                    os.rename(spare, temporary)
            file = os.open(temporary, os.O_WRONLY | os.O_CREAT, 0o644)
            try:
                for part in parts:
                    _write_all(file, part, None)
                os.ftruncate(file, os.lseek(file, 0, os.SEEK_CUR))
            finally:
                os.close(file)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def put_at(path: str, data: Any, offset: int, make: bool = False) -> None:
    """Write into a file at an offset in bytes; it has to exist unless `make` is set."""
    with naming(Path(path)):
        file = os.open(path, os.O_WRONLY | os.O_CREAT * make, 0o644)
        try:
            _write_all(file, data, offset)
        finally:
            os.close(file)


def _write_all(file: int, data: Any, offset: int | None) -> None:
    """Write all of the data, at the current position of the file or at an offset."""
    done, view = 0, memoryview(data)
    flat = view.cast("B") if view.nbytes else b""
    while done < len(flat):
        part = flat[done : done + (1 << 30)]
        done += os.write(file, part) if offset is None else os.pwrite(file, part, offset + done)


def load(pieces: Sequence[Piece], room: Buffer) -> tuple[Words, Counts]:
    """Load pieces; return their keys, and where the run of each piece begins and ends."""
    sizes = [piece.end - piece.begin for piece in pieces]
    ends = np.cumsum(sizes, dtype=np.int64)
    flat = room.take(int(ends[-1]) if sizes else 0)
    for piece, end in zip(pieces, ends.tolist(), strict=True):
        if piece.end > piece.begin:
            with open(piece.path, "rb", buffering=0) as file:
                file.seek(8 * piece.begin)
                _read_all(file, flat[end - (piece.end - piece.begin) : end])
    return flat, np.array([ends - sizes, ends], np.int64)


def _read_all(file: Any, words: Words) -> None:
    """Fill memory from a file."""
    done, into = 0, words.view(np.uint8)
    while done < len(into):
        count = file.readinto(into[done : done + (1 << 30)])
        if not count:
            raise OSError(f"{file.name} ends too early")
        done += count


def mapped(path: str) -> Words:
    """An index in a file, as memory that all workers of a machine share."""
    found = np.memmap(path, np.uint64, "c")
    return found.view(np.ndarray)


PACKING = Buffer(np.uint64)
"""The buffer for keys that are to be packed."""


class Desk:
    """The kernels and reusable buffers of a worker for one problem."""

    def __init__(self, problem: Problem) -> None:
        rules = problem.rules
        self.cells = rules.cells
        self.rule = np.array(problem.rule)
        self.expander, self.mover = Expander(problem), Mover(problem)
        self.value_afters = value_afters_kernel(rules.rows, rules.cols)
        self.value_states = value_states_kernel(rules.rows, rules.cols)
        self.keys, self.more, self.out = (Buffer(np.uint64) for _ in range(3))
        self.index = Index(rules.cells)

    def values(self, size: int) -> Floats:
        """A buffer for `size` values."""
        return self.out.take(size).view(np.float64)


@cache
def desk(problem: Problem) -> Desk:
    """The desk of this process; the first call compiles its kernels."""
    return Desk(problem)


def prepare(problem: Problem) -> None:
    """Task: compile kernels, before the clock starts."""
    desk(problem)


# -- keys ----------------------------------------------------------------------------------------


class Made(NamedTuple):
    """The result of a step on a shard."""

    keys: int
    """The number of keys in the shard."""
    sample: Words
    """An evenly spaced sample of them."""
    places: list[int]
    """The places of the cuts of the next step in the list written, with its begin and end."""


class Out(NamedTuple):
    """A file to write, and a spare one that may be overwritten for it."""

    path: str
    spare: str | None


def move(problem: Problem, pieces: Sequence[Piece], cuts: Words, states: Out, listed: Out) -> Made:
    """Task: merge a shard of the states, and list the afterstates that their moves lead to."""
    at = desk(problem)
    flat, runs = load(pieces, at.keys)
    out = at.out.take(moves_room(len(flat)))
    at.expander.forget()
    found, size = at.expander.move(flat, runs, out)
    return _written(found, out[:size], cuts, states, listed)


def spawn(
    problem: Problem,
    pieces: Sequence[Piece],
    younger: Sequence[Piece],
    cuts: Words,
    afters: Out,
    listed: Out,
) -> Made:
    """Task: merge a shard of the afterstates, and list the states that spawns lead to."""
    at = desk(problem)
    flat, runs = load(pieces, at.keys)
    before, _ = load(younger, at.more)
    out = at.out.take(spawns_room(len(flat) + len(before), at.cells))
    at.expander.forget()
    found, size = at.expander.spawn(flat, runs, before, out)
    return _written(found, out[:size], cuts, afters, listed)


def _written(keys: Words, more: Words, cuts: Words, shard: Out, listed: Out) -> Made:
    """Write a shard, and the list of what it leads to."""
    more.sort()
    put(shard.path, keys, spare=shard.spare)
    put(listed.path, more, spare=listed.spare)
    sample = keys[np.linspace(0, len(keys) - 1, min(SAMPLES, len(keys))).astype(np.int64)]
    places = np.searchsorted(more, cuts).tolist()
    return Made(len(keys), sample, [0, *places, len(more)])


def pack_blocks(pieces: Sequence[Piece], path: str) -> list[tuple[int, int]]:
    """Task: compress keys block by block; return the first key and the size of each block."""
    keys, _ = load(pieces, PACKING)
    lots = [keys[begin : begin + BLOCK_KEYS] for begin in range(0, len(keys), BLOCK_KEYS)]
    packed = [pack_block(lot) for lot in lots]
    put(path, *packed)
    return [(int(lot[0]), len(block)) for lot, block in zip(lots, packed, strict=True)]


def pack_all_afters(pieces: Sequence[Piece], path: str) -> None:
    """Task: pack the afterstates of a layer."""
    put(path, pack_afters(load(pieces, PACKING)[0]))


# -- values --------------------------------------------------------------------------------------


class States(NamedTuple):
    """A range of the states of a layer, in the file of keys."""

    path: str
    heads: bytes
    """The heads of the blocks that they are in."""
    sizes: list[int]
    """The number of keys in each of these blocks."""
    skip: int
    """The number of keys of the first block before the range."""
    begin: int
    end: int

    def load(self) -> Words:
        """The keys."""
        file = os.open(self.path, os.O_RDONLY)
        heads = np.frombuffer(self.heads, BLOCK_HEAD)
        try:
            blocks = [
                read_block(file, head, size, f"a block of {self.path}")
                for head, size in zip(heads, self.sizes, strict=True)
            ]
        finally:
            os.close(file)
        keys: Words = np.concatenate([NONE, *blocks])[self.skip :]
        return np.ascontiguousarray(keys[: self.end - self.begin])


class Afters(NamedTuple):
    """A range of the afterstates of a layer, in the scratch file."""

    path: str
    offset: int
    size: int
    begin: int
    end: int

    def load(self) -> Words:
        """The keys."""
        packed = np.memmap(self.path, np.uint8, "r", self.offset, (self.size,))
        return PackedAfters(packed).keys(self.begin, self.end)


class Place(NamedTuple):
    """Where a shard goes in the index of its layer."""

    path: str
    word: int
    """The first word of its lines."""
    regions: tuple[int, int]
    """The regions whose keys it has: from the first up to, but without, the second."""


class Kept(NamedTuple):
    """A file that keeps the values of a layer, and their type."""

    path: str
    kind: str
    first: int
    """The number of values before those of the layer."""


class Valued(NamedTuple):
    """The result of valuing a shard, or a layer."""

    terminals: int
    crcs: list[int]
    """The checksum of the data written to each file."""


def value_afters(
    problem: Problem,
    afters: Afters,
    two: str,
    four: str,
    place: Place | None,
    kept: Sequence[Kept],
) -> None:
    """Task: value a shard of the afterstates."""
    at, keys = desk(problem), afters.load()
    values = at.values(len(keys))
    (begin,) = at.index.share_out([len(keys)])
    lost = at.value_afters(keys, mapped(two), mapped(four), at.rule, values, at.index.words, begin)
    check_all_found(lost)
    _keep(values, kept, afters.begin)
    _put_lines(at.index, place)


def value_states(
    problem: Problem, states: States, afters: str, place: Place | None, kept: Sequence[Kept]
) -> Valued:
    """Task: value a shard of the states."""
    at, keys = desk(problem), states.load()
    values = at.values(len(keys))
    (begin,) = at.index.share_out([len(keys)])
    lost, terminals = at.value_states(
        keys, *at.mover(keys), mapped(afters), at.rule, values, at.index.words, begin
    )
    check_all_found(lost)
    crcs = _keep(values, kept, states.begin)
    _put_lines(at.index, place)
    return Valued(terminals, crcs)


def fill_index(problem: Problem, keys: States | Afters, kept: Kept, place: Place) -> None:
    """Task: put keys, and their values (eight bytes each) from a file, into their layer's index."""
    at, found = desk(problem), keys.load()
    values = np.fromfile(kept.path, kept.kind, len(found), offset=8 * (kept.first + keys.begin))
    (begin,) = at.index.share_out([len(found)])
    fill(found, values, at.index.words, begin)
    _put_lines(at.index, place)


def is_sound(path: str, offset: int, size: int, crc: int) -> bool:
    """Task: whether a part of a file has this checksum."""
    with open(path, "rb") as file:
        file.seek(offset)
        found, left = 0, size
        while left > 0 and (data := file.read(min(left, 1 << 24))):
            found = zlib.crc32(data, found)
            left -= len(data)
    return left == 0 and found == crc


def _keep(values: Floats, kept: Sequence[Kept], begin: int) -> list[int]:
    """Write values to the files that keep them; return the checksum of each."""
    crcs = []
    for file in kept:
        stored = np.ascontiguousarray(values, file.kind)
        put_at(file.path, stored.data, stored.itemsize * (file.first + begin), make=True)
        crcs.append(zlib.crc32(stored.data))
    return crcs


def _put_lines(index: Index, place: Place | None) -> None:
    """Write the lines of a shard, and the heads of its regions, into the index of its layer."""
    if place is None:
        return
    first, end = place.regions
    heads = index.words[LINE + first : LINE + end]
    lines = int((heads & U(0xFFFFFFFF)).sum())
    put_at(place.path, index.words[FIRST : FIRST + LINE * lines], 8 * place.word)
    moved = np.where(heads > 0, heads + (U(place.word - FIRST) << U(32)), U(0))
    put_at(place.path, moved, 8 * (LINE + first))
