"""A solved game to look things up in: the exact value of every state and of every move.

One board at a time needs no kernel: the blocks that hold it and what follows from it are decoded
and searched. Many at once are looked up in whole layers, on all cores (`lab2048.solve.lookup`).
"""

from __future__ import annotations

import os
import shutil
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lab2048.game import Board, Direction, Position, Rules, Spawn
from lab2048.home import locked
from lab2048.notation import checked_threads, short
from lab2048.solve.manifest import check_files, check_format, load_manifest
from lab2048.solve.problem import REACH, WORST_CASE, Problem
from lab2048.solve.store import (
    FORMAT,
    KINDS,
    LOCK,
    MANIFEST,
    PROGRESS,
    KeyFile,
    TableError,
    ValueFile,
    Words,
    age_of,
    default_folder,
    other_files,
    tables_folder,
)

K = TypeVar("K")
T = TypeVar("T")
Floats = NDArray[np.float64]

CACHE_BYTES = 1 << 30
"""How much memory decoded keys may take."""
TOLERANCE = {"float64": 1e-12, "float32": 2.4e-7}
"""Moves count as equally good if their q differ by no more than this, relative to the numbers that
were rounded (`Table.tolerance`): well above the roundings that are found (docs/formats.md)."""


class NotInTableError(KeyError, ValueError):
    """A board that the table does not have: of another size, or never reached in a game."""

    def __str__(self) -> str:
        return str(self.args[0])


class MoveValue(NamedTuple):
    """What a legal move is worth."""

    reward: int
    after_value: float
    """The value of the afterstate: the mean over spawns, or for the worst case the least."""
    q: float
    """Reward plus (discounted) after_value."""
    regret: float
    """How much less than the best move's q."""
    optimal: bool


class Probes(NamedTuple):
    """What `probe_many` finds, in the order of the boards; NaN where there is nothing to tell."""

    value: Floats
    """Of each board. NaN if the table does not have it."""
    q: Floats | None
    """Of each of the four moves of each board, if that was asked for. NaN if it is illegal."""


class Block(NamedTuple):
    """The keys of a block, and their values."""

    keys: Words
    values: NDArray[Any]


class Decoded(NamedTuple):
    """The keys of a layer, ready for `lab2048.solve.lookup`."""

    keys: Words
    starts: NDArray[np.uint32]
    values: NDArray[Any]


def find_table(problem: Problem) -> Path | None:
    """The folder of the finished table of a problem in the data folder, if there is one."""
    for kind in KINDS:
        folder = default_folder(problem, kind)
        manifest = load_manifest(folder)
        if (
            manifest is not None
            and manifest.get("format") == FORMAT
            and manifest.get("keep") == "table"
            and all(manifest.get(name) == value for name, value in problem.as_json().items())
        ):
            return folder
    return None


def open_table(
    source: Path | str | Rules | Problem,
    *,
    objective: str = "score",
    p4: float | None = None,
    gamma: float = 1.0,
    cache_bytes: int = CACHE_BYTES,
) -> Table:
    """Open the table in a folder, or that of a board in the data folder.

    The folder is a path, or a name out of `lab2048 table list`. A board is a `Rules` or a name such
    as `3x3`; only then do the other arguments say which table it is.
    """
    if isinstance(source, Path) or (isinstance(source, str) and os.path.exists(source)):
        return Table(Path(source), cache_bytes=cache_bytes)
    if isinstance(source, str) and (tables_folder() / source / MANIFEST).exists():
        return Table(tables_folder() / source, cache_bytes=cache_bytes)
    if isinstance(source, Problem):
        problem = source
    else:
        try:
            problem = Problem.of(source, p4=p4, objective=objective, gamma=gamma)
        except ValueError:
            if isinstance(source, str) and ("/" in source or os.sep in source):
                raise TableError(f"there is no table in {source}") from None
            raise
    folder = find_table(problem)
    if folder is None:
        raise TableError(f"there is no table {problem.name}; make it with: {command_for(problem)}")
    return Table(folder, cache_bytes=cache_bytes)


def command_for(problem: Problem) -> str:
    """The command that solves a problem."""
    parts = ["lab2048 solve", problem.rules.name]
    if problem.goal != "score":
        parts.append(f"--objective {problem.goal}")
    if problem.rules.p4 != Rules(2, 2).p4:
        parts.append(f"--p4 {problem.rules.p4!r}")
    if problem.gamma != 1:
        parts.append(f"--gamma {problem.gamma!r}")
    return " ".join(parts)


class Table:
    """A finished table. Every method may be called from any thread.

    >>> with open_table("2x2") as table:  # doctest: +SKIP
    ...     table.best("2 2 / . .")
    """

    def __init__(self, folder: Path, *, cache_bytes: int = CACHE_BYTES) -> None:
        self.path = folder
        self.manifest = _checked_manifest(folder)
        self.problem = Problem.from_json(self.manifest)
        self.rules = self.problem.rules
        self.kind: str = self.manifest["values"]
        self.counts: list[int] = self.manifest["layers"]["states"]
        self.keys = KeyFile(folder, self.counts)
        # who lets go of a table without closing it gives its files back all the same
        weakref.finalize(self, self.keys.close)
        self._values = ValueFile(
            folder, self.kind, self.counts, self.manifest["layers"]["value_crcs"]
        )
        weakref.finalize(self, self._values.close)
        # below this, numbers are rounded more coarsely than `tolerance` allows for
        self._tiny = float(np.finfo(KINDS[self.kind]).tiny)
        self._blocks: Recent[tuple[int, int], Block] = Recent(cache_bytes // 4)
        self._layers: Recent[int, Decoded] = Recent(cache_bytes)

    def __enter__(self) -> Table:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Table({str(self.path)!r}, {self.states} states)"

    def __contains__(self, board: Position) -> bool:
        return self.get(board) is not None

    def close(self) -> None:
        """Give the files back; nothing can be looked up any more."""
        self.keys.close()
        self._blocks.clear()
        self._layers.clear()
        self._values.close()

    @property
    def states(self) -> int:
        """How many canonical states there are."""
        return int(self.manifest["states"])

    @property
    def start_value(self) -> dict[str, float | None]:
        """The value of a start drawn by the rules (`start`), and of each kind of start."""
        return dict(self.manifest["value"])

    # -- one board -------------------------------------------------------------------------------

    def value(self, board: Position) -> float:
        """The value of a state under optimal play, or a `NotInTableError`."""
        position = self._parse(board)
        found = self._find(position)
        if found is None:
            raise NotInTableError(self._why_not(position))
        return found

    def get(self, board: Position, default: T | None = None) -> float | T | None:
        """The value of a state, or the default if the table does not have it."""
        try:
            return self.value(board)
        except NotInTableError:
            return default

    def moves(self, board: Position) -> dict[Direction, MoveValue]:
        """What every legal move is worth, in the order of the directions.

        The best of them is what the state is worth, or else the table is damaged.
        """
        position = self._parse(board)
        value = self.value(position)
        made = {direction: position.move(direction) for direction in position.legal_moves}
        try:
            afters = {d: self.after_value(move.after) for d, move in made.items()}
        except NotInTableError:
            raise self.damaged("states that follow from others are missing") from None
        scored = 0 if self.problem.objective == REACH else 1
        gamma = self.problem.gamma
        q = {d: scored * move.reward + gamma * afters[d] for d, move in made.items()}
        best = max(q.values(), default=0.0)
        slack = float(self.tolerance(best))
        if not abs(value - best) <= slack + self._tiny and not self._is_won(position):
            raise self._not_best(position.packed, value, best)
        return {
            d: MoveValue(move.reward, afters[d], q[d], best - q[d], best - q[d] <= slack)
            for d, move in made.items()
        }

    def best(self, board: Position) -> tuple[Direction, ...]:
        """All optimal moves: those whose regret is within `tolerance`."""
        return tuple(d for d, move in self.moves(board).items() if move.optimal)

    @property
    def slack(self) -> tuple[float, float]:
        """What `tolerance` is made of: a factor, and the least value that it is applied to.

        float64 values of scores are differences of numbers in the thousands.
        """
        least = {REACH: 0.0}.get(self.problem.objective, 1024.0 if self.kind == "float64" else 1.0)
        return TOLERANCE[self.kind], least

    def damaged(self, what: str) -> TableError:
        """The error that says what is wrong, where, and what to do."""
        return TableError(f"{self.path} is damaged: {what}; remove it and solve the board again")

    def _not_best(self, board: int, value: float, best: float) -> TableError:
        """The error of a state whose value does not fit its moves."""
        return self.damaged(f"state {board:#x} is worth {value}, but its best move {best}")

    def tolerance(self, value: ArrayLike) -> Any:
        """How far the q of two moves may be apart that count as equally good; value is their q."""
        factor, least = self.slack
        return factor * np.maximum(np.abs(value), least)

    def spawns(self, after: Board) -> list[tuple[Spawn, float]]:
        """Every outcome of the spawn on an afterstate, with the value of the state it makes."""
        return [(spawn, self.value(spawn.board)) for spawn in self.rules.spawns(after)]

    def after_value(self, after: Board) -> float:
        """The value of an afterstate: the mean over spawns, or for the worst case the least."""
        if self._is_won(after):
            return 1.0
        outcomes = self.spawns(after)
        if self.problem.objective == WORST_CASE:
            return min(value for _, value in outcomes)
        return float(sum(spawn.probability * value for spawn, value in outcomes))

    def _parse(self, board: Position) -> Board:
        """A board in any form, of this table's size."""
        position = self.rules.position(board)
        if (position.rows, position.cols) != (self.rules.rows, self.rules.cols):
            raise NotInTableError(
                f"the table is of {self.rules.name}, the board is {position.rows}x{position.cols}"
            )
        return position

    def _is_won(self, board: Board) -> bool:
        """Whether the tile that was to be made is there; such boards are not in the files."""
        return self.problem.objective == REACH and board.max_tile >= self.problem.tile

    def _find(self, board: Board) -> float | None:
        """The value of a board; None if it is not there."""
        if self._is_won(board):
            return 1.0
        layer = (board.age - 4) // 2
        if not 0 <= layer < len(self.counts) or self.counts[layer] == 0:
            return None
        key = np.uint64(board.canonical().board.packed)
        begin, end = self.keys.starts[layer], self.keys.starts[layer + 1]
        number = int(self.keys.blocks["first"][begin:end].searchsorted(key, "right")) - 1
        if number < 0:
            return None
        keys, values = self._blocks.get((layer, number), lambda: self._block(layer, number))
        place = int(keys.searchsorted(key))
        if place == len(keys) or keys[place] != key:
            return None
        return float(values[place])

    def _block(self, layer: int, number: int) -> Block:
        """A block in memory."""
        return Block(self.keys.block(layer, number), self._values.block(layer, number))

    def _why_not(self, board: Board) -> str:
        """Why a board is not in the table."""
        return (
            f"{board} is not reachable on {self.rules.name} with p4 {self.rules.p4!r}: "
            "no game has the player to move there"
        )

    # -- many boards -----------------------------------------------------------------------------

    def probe_many(
        self, boards: ArrayLike, *, moves: bool = True, threads: int | None = None
    ) -> Probes:
        """The values of many packed boards and, unless `moves` is false, of all their moves.

        Boards that the table does not have, and illegal moves, get NaN. Layers are decoded when
        they are first needed and kept, up to `cache_bytes`.
        """
        from lab2048.solve.lookup import canonical_kernel

        packed = _packed(boards)
        workers = checked_threads(threads)
        outside = packed >> np.uint64(4 * self.rules.cells) != 0  # of no board of this size
        packed = np.where(outside, np.uint64(0), packed)
        self.compile()
        canonical, ages = np.empty_like(packed), np.empty(len(packed), np.int64)
        canonical_kernel(self.rules.rows, self.rules.cols)(packed, canonical, ages)
        # neighbours in a layer are looked up one after the other
        order = np.argsort((ages.astype(np.uint64) << np.uint64(4 * self.rules.cells)) | canonical)
        q = np.full((len(packed), 4), np.nan) if moves else None
        found = Probes(np.full(len(packed), np.nan), q)
        runs = np.split(order, np.flatnonzero(np.diff(ages[order])) + 1)

        def probe(run: NDArray[np.int64]) -> None:
            if len(run):
                self._probe_layer(int(ages[run[0]]), packed[run], canonical[run], run, found)

        with ThreadPoolExecutor(workers) as pool:
            for _ in pool.map(probe, runs):
                pass
        return found

    def compile(self) -> None:
        """Have every kernel of `probe_many` ready, before threads ask for it."""
        from lab2048.solve.lookup import (
            afters_kernel,
            canonical_kernel,
            spawned_kernel,
            values_kernel,
        )

        canonical_kernel(self.rules.rows, self.rules.cols)
        afters_kernel(self.rules.rows, self.rules.cols)
        spawned_kernel(self.rules.rows, self.rules.cols, self.kind)
        values_kernel(self.kind)

    def _probe_layer(
        self, age: int, boards: Words, keys: Words, run: NDArray[np.int64], found: Probes
    ) -> None:
        """Look up boards of one age, and put what is found where it belongs."""
        from lab2048.board import table as slides
        from lab2048.solve.keys import region_shift
        from lab2048.solve.lookup import afters_kernel, values_kernel

        rules, layer = self.rules, (age - 4) // 2
        values = np.full(len(run), np.nan)
        if age % 2 == 0 and 0 <= layer < len(self.counts):
            decoded = self._decoded(layer)
            values_kernel(self.kind)(keys, region_shift(rules.cells), *decoded, values)
        values[self._won(boards)] = 1.0
        found.value[run] = values
        if found.q is None:
            return
        afters, rewards = np.empty((len(run), 4), np.uint64), np.empty((len(run), 4))
        afters_kernel(rules.rows, rules.cols)(
            boards, slides(rules.cols), slides(rules.rows), afters, rewards
        )
        legal = np.flatnonzero(afters)
        after_values = np.full(afters.shape, np.nan)
        after_values.ravel()[legal] = self._after_values(layer, afters.ravel()[legal])
        after_values[self._won(afters)] = 1.0
        scored = 0 if self.problem.objective == REACH else 1
        q = scored * rewards + self.problem.gamma * after_values
        known = ~np.isnan(values)
        if np.isnan(after_values[known][afters[known] != 0]).any():
            raise self.damaged("states that follow from others are missing")
        q[~known] = np.nan
        self._check_best(boards, values, q)
        found.q[run] = q

    def _check_best(self, boards: Words, values: Floats, q: Floats) -> None:
        """A `TableError` if a value that is known is not the best q of its moves."""
        best = best_q(q)
        slack = self.tolerance(best) + self._tiny
        right = (np.abs(values - best) <= slack) | np.isnan(values) | self._won(boards)
        if not right.all():
            place = int(right.argmin())
            raise self._not_best(int(boards[place]), float(values[place]), float(best[place]))

    def _after_values(self, layer: int, afters: Words) -> Floats:
        """The values of canonical afterstates of one age; NaN if they are not known."""
        from lab2048.jit import U
        from lab2048.solve.lookup import spawned_kernel

        p4, worst = self.rules.p4, self.problem.objective == WORST_CASE
        spawned = spawned_kernel(self.rules.rows, self.rules.cols, self.kind)
        out = np.full(len(afters), np.inf if worst else 0.0)
        for rank, weight in ((1, 1 - p4), (2, p4)):
            if weight == 0:
                continue
            if 0 <= layer + rank < len(self.counts):
                decoded = self._decoded(layer + rank)
                spawned(afters, U(rank), -1.0 if worst else weight, *decoded, out)
            else:
                out[:] = np.nan
        return out

    def _won(self, boards: Words) -> NDArray[np.bool_]:
        """Which boards hold the tile that was to be made."""
        if self.problem.objective != REACH:
            return np.zeros(boards.shape, np.bool_)
        shifts = np.arange(self.rules.cells, dtype=np.uint64) * np.uint64(4)
        ranks = (boards[..., None] >> shifts) & np.uint64(15)
        return np.asarray((ranks >= self.problem.stop).any(axis=-1))

    def _decoded(self, layer: int) -> Decoded:
        """A layer in memory."""
        return self._layers.get(layer, lambda: self._decode(layer))

    def _decode(self, layer: int) -> Decoded:
        from lab2048.solve.keys import REGIONS, region_shift
        from lab2048.solve.lookup import find_starts

        keys = self.keys.layer(layer)
        starts = np.empty(REGIONS + 1, np.uint32)
        find_starts(keys, region_shift(self.rules.cells), starts)
        return Decoded(keys, starts, self.layer_values(layer))

    # -- whole layers ----------------------------------------------------------------------------

    def layer_values(self, layer: int) -> NDArray[Any]:
        """The values of a layer, in the order of its keys, as they are stored."""
        return self._values.layer(layer)

    def layers(self) -> Iterator[tuple[int, Words, NDArray[Any]]]:
        """The age, the sorted canonical keys and the values of every layer, youngest first."""
        for layer in range(len(self.counts)):
            yield age_of(layer), self.keys.layer(layer), self.layer_values(layer)


class Recent(Generic[K, T]):
    """What was made lately, up to so many bytes. Any thread may ask."""

    def __init__(self, room: int) -> None:
        self._room, self._used = room, 0
        self._kept: OrderedDict[K, T] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, name: K, make: Callable[[], T]) -> T:
        """The thing of a name; if it is not there it is made."""
        with self._lock:
            if name in self._kept:
                self._kept.move_to_end(name)
                return self._kept[name]
        made = make()
        with self._lock:
            if name not in self._kept:
                self._kept[name] = made
                self._used += _size(made)
            while self._used > self._room and len(self._kept) > 1:
                self._used -= _size(self._kept.popitem(last=False)[1])
        return made

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._kept.clear()
            self._used = 0


def best_q(q: Floats) -> Floats:
    """The best q of each board; 0 if no move is legal."""
    best = np.fmax(np.fmax(q[:, 0], q[:, 1]), np.fmax(q[:, 2], q[:, 3]))
    return np.where(np.isnan(best), 0.0, best)


def _packed(boards: ArrayLike) -> Words:
    """Packed boards as they are given; what is no board becomes one that is in no table."""
    try:
        given = np.asarray(boards)
    except (OverflowError, ValueError):
        given = np.empty(1, object)
    if given.size and given.dtype.kind not in "iu":
        raise ValueError(f"packed boards are whole numbers below 2**64, not {given.dtype}")
    given = np.ascontiguousarray(given).ravel()
    return np.where(given < 0, 0, given).astype(np.uint64)


def _size(thing: Any) -> int:
    """The bytes of decoded keys."""
    arrays = thing if isinstance(thing, tuple) else (thing,)
    return sum(array.nbytes for array in arrays)


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a finished table, or a `TableError`."""
    if not folder.is_dir():
        raise TableError(f"there is no table in {folder}")
    manifest = load_manifest(folder)
    if manifest is None:
        if (folder / PROGRESS).exists():
            raise TableError(f"the table in {folder} is unfinished; solve it again to finish it")
        raise TableError(f"{folder} is not a table: it has no {MANIFEST}")
    check_format(folder, manifest)
    return manifest


def _checked_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a finished table whose files are all there, or a `TableError`."""
    manifest = read_manifest(folder)
    if manifest["keep"] != "table":
        raise TableError(f"only a summary of {folder.name} was kept; solve it with --keep table")
    check_files(folder, manifest)
    return manifest


def list_tables() -> list[tuple[Path, dict[str, Any] | str]]:
    """Every table in the data folder: its folder, and its manifest or what is wrong with it.

    Whatever else is there does not get in the way. Names that cannot be printed are left out.
    """
    found: list[tuple[Path, dict[str, Any] | str]] = []
    folders = sorted(tables_folder().iterdir()) if tables_folder().is_dir() else []
    for folder in folders:
        if not folder.name.isprintable() or not os.path.isdir(folder):
            continue
        try:
            manifest = load_manifest(folder)
        except TableError:
            found.append((folder, "damaged"))
            continue
        if manifest is not None:
            older = manifest.get("format") != FORMAT
            found.append((folder, f"format {short(manifest.get('format'))}" if older else manifest))
        elif os.path.exists(folder / PROGRESS):
            found.append((folder, "unfinished"))
    return found


def remove_table(folder: Path) -> int:
    """Remove a table, finished or not; how many bytes that frees."""
    folder = folder.resolve()
    if not any(os.path.lexists(folder / name) for name in (MANIFEST, PROGRESS)):
        raise TableError(f"there is no table in {folder}")
    if others := other_files(folder):
        raise TableError(f"{folder} also holds {others[0]}, so it is not removed")
    with locked(folder / LOCK, f"the table in {folder}", TableError):
        size = sum(child.lstat().st_size for child in folder.iterdir())
        shutil.rmtree(folder)
    return size
