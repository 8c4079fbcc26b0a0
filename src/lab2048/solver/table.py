"""The table of a solved game: the exact value of every state and of every move.

To look up one board takes no kernel: the blocks that hold it and its successors are decoded and
searched. Many at once are looked up in whole layers, on all cores (`lab2048.solver.lookup`).
"""

from __future__ import annotations

import copy
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lab2048.engine.arrays import Words
from lab2048.formatting import size
from lab2048.game import Board, Direction, Position, Spawn
from lab2048.game.notation import checked_threads
from lab2048.solver.batch_lookup import Decoded, Probes, probe_many
from lab2048.solver.key_file import KeyFile
from lab2048.solver.manifest import checked_manifest, description
from lab2048.solver.objective import WON
from lab2048.solver.problem import Problem
from lab2048.solver.recently_used import Recent
from lab2048.solver.table_files import KINDS, TableError, age_of
from lab2048.solver.value_file import ValueFile
from lab2048.tabular import html_table

T = TypeVar("T")

CACHE_BYTES = 1 << 30
"""The default limit for decoded layers; decoded blocks may take a quarter of it on top."""
TOLERANCE = {"float64": 1e-12, "float32": 2.4e-7}
"""Moves count as equally good if their q differ by no more than this, relative to the numbers that
were rounded (`Table.tolerance`): well above the observed rounding errors (docs/formats.md)."""


class NotInTableError(KeyError, ValueError):
    """A board that the table does not have: of another size, or never reached in a game.

    >>> from lab2048 import solve
    >>> with solve("2x2") as table:
    ...     try:
    ...         table.value("2048 . / . .")
    ...     except NotInTableError as error:
    ...         print("not there")
    not there
    """

    def __str__(self) -> str:
        return str(self.args[0])


class NotDecodedError(LookupError):
    """A block that is not in memory, where no file may be read (`Table.in_memory`)."""


class MoveValue(NamedTuple):
    """The value of a legal move, and its parts."""

    reward: int
    after_value: float
    """The value of the afterstate: for the score the mean over spawns."""
    q: float
    """The value of the move: for the score reward + gamma * after_value."""
    regret: float
    """The best move's q minus this one's."""
    optimal: bool


class Block(NamedTuple):
    """The keys of a block, and their values."""

    keys: Words
    values: NDArray[Any]


class Table:
    """A finished table. Every method may be called from any thread.

    >>> from lab2048 import solve
    >>> with solve("2x2") as table:
    ...     [str(move) for move in table.best("2 2 / . 4")]
    ['right', 'left']
    """

    def __init__(self, folder: Path, *, cache_bytes: int = CACHE_BYTES) -> None:
        self.path = folder
        self.manifest = checked_manifest(folder)
        self.problem = Problem.from_json(self.manifest)
        self.rules, self.objective = self.problem.rules, self.problem.objective
        self.kind: str = self.manifest["values"]
        self.counts: list[int] = self.manifest["layers"]["states"]
        self.keys = KeyFile(folder, self.counts)
        # closes the files of a table that is dropped without being closed
        weakref.finalize(self, self.keys.close)
        self._values = ValueFile(
            folder, self.kind, self.counts, self.manifest["layers"]["value_crcs"]
        )
        weakref.finalize(self, self._values.close)
        self.tiny = float(np.finfo(KINDS[self.kind]).tiny)
        """Below this, numbers are rounded more coarsely than `tolerance` allows for."""
        self._blocks: Recent[tuple[int, int], Block] = Recent(cache_bytes // 4)
        self._layers: Recent[int, Decoded] = Recent(cache_bytes)
        self._reads_files = True
        self._closed = False

    def __enter__(self) -> Table:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Table({str(self.path)!r}, {self.states} states)"

    def __contains__(self, board: Position) -> bool:
        return self.get(board) is not None

    def close(self) -> None:
        """Close the files; nothing can be looked up any more."""
        self._closed = True
        self.keys.close()
        self._blocks.clear()
        self._layers.clear()
        self._values.close()

    def in_memory(self) -> Table:
        """A view of the table for a thread that must not wait for files.

        It looks single boards up in the blocks that are in memory, and raises a `NotDecodedError`
        if a block would have to be read and decoded. It may be used as long as the table is open.
        """
        view = copy.copy(self)
        view._reads_files = False
        return view

    @property
    def states(self) -> int:
        """The number of canonical states."""
        return int(self.manifest["states"])

    @property
    def start_value(self) -> dict[str, float | None]:
        """The value of a start drawn by the rules (`start`), and of each kind of start."""
        return dict(self.manifest["value"])

    @property
    def facts(self) -> dict[str, Any]:
        """Metadata of the table, and of the run that made it."""
        return description(self.path, self.manifest)

    def _repr_html_(self) -> str:
        """The main facts, as a notebook shows them."""
        facts = self.facts
        rows = [
            ("objective", self.problem.goal),
            ("states", f"{facts['states']:,}"),
            ("value", f"{facts['value']['start']:,.4f}"),
            ("size", size(facts["table_bytes"])),
        ]
        return html_table([f"table {self.problem.name}", ""], rows)

    # -- one board -------------------------------------------------------------------------------

    def value(self, board: Position) -> float:
        """The value of a state under optimal play; `NotInTableError` if the table lacks it."""
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
        """The value of every legal move, in the order of the directions.

        Raises `TableError` if the best of them differs from the state's value: a damaged table.
        """
        position = self._parse(board)
        value = self.value(position)
        made = {direction: position.move(direction) for direction in position.legal_moves}
        try:
            afters = {d: self.after_value(move.after) for d, move in made.items()}
        except NotInTableError:
            raise self.damaged("states that follow from others are missing") from None
        q = {d: self.objective.q(move.reward, afters[d]) for d, move in made.items()}
        best = max(q.values(), default=0.0)
        slack = float(self.tolerance(best))
        if not abs(value - best) <= slack + self.tiny and not self.objective.is_won(position):
            raise self.not_best(position.packed, value, best)
        return {
            d: MoveValue(move.reward, afters[d], q[d], best - q[d], best - q[d] <= slack)
            for d, move in made.items()
        }

    def best(self, board: Position) -> tuple[Direction, ...]:
        """All optimal moves: those whose regret is within `tolerance`."""
        return tuple(d for d, move in self.moves(board).items() if move.optimal)

    @property
    def slack(self) -> tuple[float, float]:
        """The parameters of `tolerance`: a factor, and the least value that it is applied to."""
        return TOLERANCE[self.kind], self.objective.size_of_sums(self.kind)

    def damaged(self, what: str) -> TableError:
        """The error that says what is wrong, where, and what to do."""
        return TableError(f"{self.path} is damaged: {what}; remove it and solve the board again")

    def not_best(self, board: int, value: float, best: float) -> TableError:
        """The error for a state whose value is not that of its best move."""
        return self.damaged(f"state {board:#x} is worth {value}, but its best move {best}")

    def tolerance(self, value: ArrayLike) -> Any:
        """The largest difference between two q near a value that count as equally good."""
        factor, least = self.slack
        return factor * np.maximum(np.abs(value), least)

    def spawns(self, after: Board) -> list[tuple[Spawn, float]]:
        """Every outcome of the spawn on an afterstate, with the value of the state it makes."""
        return [(spawn, self.value(spawn.board)) for spawn in self.rules.spawns(after)]

    def after_value(self, after: Board) -> float:
        """The value of an afterstate, which the objective derives from those after the spawns."""
        if self.objective.is_won(after):
            return WON
        outcomes = self.spawns(after)
        mean = sum(spawn.probability * value for spawn, value in outcomes)
        return float(self.objective.fold(mean, min(value for _, value in outcomes)))

    def _parse(self, board: Position) -> Board:
        """Parse a board in any form; it must have this table's size."""
        position = self.rules.position(board)
        if (position.rows, position.cols) != (self.rules.rows, self.rules.cols):
            raise NotInTableError(
                f"the table is of {self.rules.name}, the board is {position.rows}x{position.cols}"
            )
        return position

    def _find(self, board: Board) -> float | None:
        """The value of a board; None if it is not there."""
        if self.objective.is_won(board):
            return WON
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
        """Read and decode a block."""
        if not self._reads_files:
            raise NotDecodedError(f"block {number} of layer {layer} is not in memory")
        self._check_open()
        return Block(self.keys.block(layer, number), self._values.block(layer, number))

    def _check_open(self) -> None:
        """Raise a `ValueError` if the files are closed."""
        if self._closed:
            raise ValueError(f"the table {self.path} is closed")

    def _why_not(self, board: Board) -> str:
        """Why a board is not in the table."""
        return (
            f"{board} is not reachable on {self.rules.name} with p4 {self.rules.p4!r}: "
            "it never occurs in a game with the player to move"
        )

    # -- many boards -----------------------------------------------------------------------------

    def probe_many(
        self, boards: ArrayLike, *, moves: bool = True, threads: int | None = None
    ) -> Probes:
        """The values of many packed boards and, unless `moves` is false, of all their moves.

        Boards that the table does not have, and illegal moves, get NaN. Layers are decoded when
        they are first needed and kept, up to `cache_bytes`.
        """
        self.compile()
        return probe_many(self, boards, moves, checked_threads(threads))

    def compile(self) -> None:
        """Compile every kernel of `probe_many`, before threads need them."""
        from lab2048.solver.lookup import (
            afters_kernel,
            canonical_kernel,
            spawned_kernel,
            values_kernel,
        )

        canonical_kernel(self.rules.rows, self.rules.cols)
        afters_kernel(self.rules.rows, self.rules.cols)
        spawned_kernel(self.rules.rows, self.rules.cols, self.kind)
        values_kernel(self.kind)

    def decoded(self, layer: int) -> Decoded:
        """A decoded layer, from the cache if it is there."""
        return self._layers.get(layer, lambda: self._decode(layer))

    def _decode(self, layer: int) -> Decoded:
        self._check_open()
        from lab2048.solver.keys import REGIONS, region_shift
        from lab2048.solver.lookup import find_starts

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
