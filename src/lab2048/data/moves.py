"""Games as move data: boards with the move that a player made, to learn from.

Two kinds of files hold moves, both with one move per row:

- text, as in the supervised study: `r e0 e1 ... : dir pos`, with the rank of every cell row by row,
  the direction, and a cell;
- Parquet, with the columns `board` (packed), `move` and `cell`, and the rules in its metadata.

The study does not say whether the cell is that of the last tile before the move or of the next one
after it. If it is the one before, there is a 2 or a 4 on it; if it is the one after, it is empty
once the board has slid. So the whole file shows which it is. Files written here hold the one after.

`move_text` and `parquet` read and write these files.

A third kind is in `labels`: boards with the value of every move.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from lab2048.data.batches import Batch
from lab2048.data.move_rows import Moves, may_be
from lab2048.data.move_text import TextFile, to_text
from lab2048.data.parquet import (
    LABELS,
    MOVES,
    Columns,
    DataError,
    about_parquet,
    read_facts,
    read_group,
    write_parquet,
)
from lab2048.engine.arrays import ranks_of
from lab2048.game import MAX_PACKED_RANK, Game, Rules
from lab2048.game.notation import short, whole
from lab2048.game.record import arrow
from lab2048.home import check_target, replacing
from lab2048.measure.arena import Play, play_games, retrace
from lab2048.measure.journal import Played
from lab2048.players.player import Player
from lab2048.tabular import SingleRow

POOL = 1 << 22
"""Number of moves in memory, from which batches are drawn at random."""
FIRST = 8
"""Games played first, to estimate their length."""
ROUND = 1 << 24
"""Maximum number of moves per round of games, as estimated."""

BEFORE, AFTER, EITHER = "before", "after", "either"
"""Which spawn the cell of a move is that of: before the move, after it, or not known."""


# -- files ---------------------------------------------------------------------------------------


class Source(Protocol):
    """A file of move data, read piece by piece."""

    path: Path
    rules: Rules

    def __len__(self) -> int:
        """The number of pieces."""

    def read(self, piece: int) -> Moves:
        """The moves of a piece, or a `DataError` that says which is wrong."""


class ParquetFile:
    """Move data as Parquet, whose pieces are its row groups."""

    def __init__(self, path: Path, rules: Rules | None = None) -> None:
        self.path = path
        self._facts = read_facts(path, MOVES)
        self.rules = self._facts["rules"]
        if rules is not None and rules.name != self.rules.name:
            raise DataError(f"{path} has moves on {self.rules.name}, not {rules.name}")

    def __len__(self) -> int:
        return len(self._facts["groups"])

    def read(self, piece: int) -> Moves:
        """The moves of a piece, or a `DataError` that names the row that is wrong."""
        columns = read_group(self.path, piece, {"board": "u8", "move": "u1", "cell": "u1"})
        found = Moves(columns["board"], columns["move"], columns["cell"])
        inside = (found.moves < 4) & (found.cells < self.rules.cells)
        inside &= found.boards >> np.uint64(4 * self.rules.cells) == 0
        wrong = np.flatnonzero(~inside)
        if not len(wrong):
            wrong = np.flatnonzero(may_be(found, self.rules) == 0)
        if len(wrong):
            row = int(wrong[0])
            number = sum(self._facts["groups"][:piece]) + row + 1
            raise DataError(
                f"{self.path}, row {number}: board {found.boards[row]:#x}, move "
                f"{found.moves[row]}, cell {found.cells[row]} is no move on {self.rules.name}"
            )
        return found


def check_file(path: Path, force: bool = False) -> None:
    """Raise an error unless moves may be written to this file (`home.check_target`)."""
    if path.suffix not in (".txt", ".parquet"):
        raise DataError(f"moves are written to a .txt or a .parquet file, not {path.name[:40]}")
    if path.suffix == ".parquet":
        arrow()
    check_target(path, force=force)


def open_moves(path: Path, rules: Rules) -> Source:
    """Open a file of moves: Parquet if its name ends in .parquet, else text."""
    return ParquetFile(path, rules) if path.suffix == ".parquet" else TextFile(path, rules)


def is_labels(path: Path) -> bool:
    """Whether a file has labels, not moves."""
    return path.suffix == ".parquet" and about_parquet(path).get("kind") == LABELS


# -- summary -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Summary(SingleRow):
    """A summary of a file of moves."""

    moves: int
    cell: str
    """Which spawn the cells are those of: before the move, after it, or either."""
    largest: int
    """The largest tile."""
    directions: tuple[int, int, int, int]


def summarise(source: Source, progress: Callable[[int], object] = lambda piece: None) -> Summary:
    """Check and summarise a file; a `DataError` says where it is wrong."""
    directions, largest = np.zeros(4, np.int64), 0
    seen: dict[int, int] = {}  # for each `cell_may_be`, the first piece that has it
    for piece in range(len(source)):
        found = source.read(piece)
        directions += np.bincount(found.moves, minlength=4)
        for which in np.flatnonzero(np.bincount(may_be(found, source.rules), minlength=4)).tolist():
            seen.setdefault(which, piece)
        if len(found.boards):
            largest = max(largest, int(ranks_of(found.boards, source.rules.cells).max()))
        progress(piece + 1)
    if 1 in seen and 2 in seen:
        raise DataError(
            f"{source.path}: some cells can only be those of the tile before the move, others only "
            "of the one after it"
        )
    cell = BEFORE if 1 in seen else AFTER if 2 in seen else EITHER
    up, right, down, left = directions.tolist()
    return Summary(int(directions.sum()), cell, 1 << largest, (up, right, down, left))


# -- shuffled ------------------------------------------------------------------------------------


def shuffled(
    sources: Sequence[Source], size: int, seed: int, epoch: int, pool: int = POOL
) -> Iterator[Batch]:
    """Yield all moves of files in batches of `size`, in a random order set by seed and epoch.

    Pieces are read in random order into a pool, from which moves are drawn; half of it is used
    before more is read. Data that fits into the pool is shuffled uniformly.
    """
    draw = np.random.default_rng((seed, epoch))
    pieces = [(source, piece) for source in sources for piece in range(len(source))]
    order = draw.permutation(len(pieces)).tolist()
    boards, moves = np.empty(0, np.uint64), np.empty(0, np.uint8)
    while order or len(boards):
        new = []
        room = pool - len(boards)
        while order and room > 0:
            source, piece = pieces[order.pop()]
            new.append(source.read(piece))
            room -= len(new[-1].boards)
        boards = np.concatenate([boards, *(each.boards for each in new)])
        moves = np.concatenate([moves, *(each.moves for each in new)])
        mixed = draw.permutation(len(boards))
        boards, moves = boards[mixed], moves[mixed]
        used = len(boards) // 2 // size * size if order else len(boards)
        for begin in range(0, used, size):
            part = slice(begin, min(begin + size, used))
            yield Batch(boards[part], np.eye(4, dtype=np.float32)[moves[part]])
        boards, moves = boards[used:], moves[used:]


# -- made by a player ----------------------------------------------------------------------------


def moves_of(rules: Rules, seed: int, game: Played) -> Moves:
    """The moves of a game, up to the first tile above 32768, which does not fit."""
    made = np.frombuffer(game.moves, np.uint8)
    if game.max_tile <= 1 << MAX_PACKED_RANK:
        boards, spawns = retrace(rules, seed, game)
        return Moves(boards[:-1].copy(), made.copy(), (spawns[2:] >> np.uint64(2)).astype(np.uint8))
    again = Game(rules, seed, index=game.index)
    boards_list, cells = [], []
    for move in game.moves:
        board = again.board
        again.play(move)
        if again.board.max_tile > 1 << MAX_PACKED_RANK:
            break
        boards_list.append(board.packed)
        cells.append(again.spawns[-1][0])
    size = len(cells)
    return Moves(np.array(boards_list, np.uint64), made[:size].copy(), np.array(cells, np.uint8))


def make_moves(
    player: Player,
    size: int,
    seed: int,
    threads: int | None = None,
    progress: Callable[[int], object] = lambda moves: None,
    first: int | None = None,
    play: Play = play_games,
) -> Iterator[Moves]:
    """Yield `size` moves of a player's games 0, 1, ..., game by game; the last is cut short.

    With `first`, only this many moves of each game count. The number of games per round depends on
    how long those before were. `play` is that of `arena.play_match`.
    """
    check_first(first)
    left, done, made = size, 0, 0
    while left > 0:
        games = math.ceil(min(left, ROUND) * done / made) if done else FIRST
        numbers = iter(range(done, done + games))
        found = []
        with closing(play(player, numbers, seed, threads)) as playing:
            for game in playing:
                found.append(game)
                made += len(game.moves[:first])
                progress(min(made, size))
        done += games
        for game in sorted(found, key=lambda game: game.index):
            moves = moves_of(player.rules, seed, game)
            most = min(left, first if first is not None else left)
            if left > 0:
                yield Moves(moves.boards[:most], moves.moves[:most], moves.cells[:most])
            left -= len(moves.boards[:first])


def check_first(first: object) -> None:
    """Raise a `ValueError` unless `first`, the moves taken of each game, is None or at least 1."""
    if first is not None and (whole(first) or 0) < 1:
        raise ValueError(f"`first` is a whole number of at least 1, not {short(first)}")


def write_moves(path: Path, parts: Iterable[Moves], rules: Rules, facts: dict[str, Any]) -> int:
    """Write moves atomically to a text or Parquet file, by its name. Return their number."""
    if path.suffix == ".parquet":
        columns: Iterable[Columns] = (
            {"board": each.boards, "move": each.moves, "cell": each.cells} for each in parts
        )
        about = {"board": rules.name, "p4": rules.p4, **facts}
        return write_parquet(path, columns, {"kind": MOVES, **about})
    size = 0
    with replacing(path) as temporary, temporary.open("wb") as file:
        for each in parts:
            file.write(to_text(each, rules))
            size += len(each.boards)
    return size
