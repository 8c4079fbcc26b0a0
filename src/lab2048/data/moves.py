"""Games as move data: boards with the move that a player made, to learn from.

Two kinds of files hold moves, both of them one move a row:

- text, as in the supervised study: `r e0 e1 ... : dir pos`, with the rank of every cell row by row,
  the direction, and a cell;
- Parquet, with the columns `board` (packed), `move` and `cell`, and the rules in its metadata.

The study does not say whether the cell is that of the last tile before the move or of the next one
after it. If it is the one before, there is a 2 or a 4 on it; if it is the one after, it is empty
once the board has slid. So a look at the whole file tells. What is written here is the one after.

Kernels read and write the text: its rows are not those of CSV, and there are millions of them.

A third kind is in `labels`: boards with the value of every move.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from lab2048.data.batches import Batch
from lab2048.engine.arrays import Bytes, Words, ranks_of
from lab2048.engine.jit import U, inline, kernel
from lab2048.engine.packed import Table as Slides
from lab2048.engine.packed import rank_at, slide, table
from lab2048.game import MAX_PACKED_RANK, Board, Game, Rules
from lab2048.game.notation import short
from lab2048.game.record import arrow
from lab2048.home import check_target, replacing
from lab2048.measure.arena import Play, Played, play_games, retrace
from lab2048.players.player import Player

Places = NDArray[np.int64]
Columns = dict[str, NDArray[Any]]

PIECE = 1 << 20
"""Bytes of text that are read in one go."""
LINE = 1 << 12
"""Bytes of a line at most; a move takes about 60."""
GROUP = 1 << 16
"""Rows that are written, and read in one go, as a row group of Parquet."""
MOST = 1 << 26
"""Rows of a row group at most: others write larger ones, and a small file may claim any number."""
POOL = 1 << 22
"""Moves that are in memory at a time, to be drawn from at random."""
FIRST = 8
"""Games that are played to see how long they are."""
ROUND = 1 << 24
"""Moves that are asked for at a time."""

FORMAT, KEY = 1, b"lab2048"
MOVES, LABELS = "moves", "labels"
"""What Parquet files hold."""
BEFORE, AFTER, EITHER = "before", "after", "either"
"""Which tile the cell of a move is that of."""


class DataError(ValueError):
    """Move data that is not what it should be."""


class Moves(NamedTuple):
    """Moves of games."""

    boards: Words
    moves: Bytes
    cells: Bytes


# -- text ----------------------------------------------------------------------------------------

SPACE, TAB, RETURN, NEWLINE, ZERO, NINE, COLON, LETTER = (np.uint8(ord(c)) for c in " \t\r\n09:r")


@inline("int64(uint8[::1], int64)")
def skip_blanks(text: Bytes, at: int) -> int:
    """Go on to what is not blank; a text ends with a new line, which is not."""
    while text[at] in (SPACE, TAB, RETURN):
        at += 1
    return at


@kernel("UniTuple(int64, 2)(uint8[::1], int64, int64)")
def read_number(text: Bytes, at: int, most: int) -> tuple[int, int]:
    """A number from 0 to `most` behind blanks, and where it ends: -1 if there is none."""
    at = skip_blanks(text, at)
    begin = at
    value = 0
    while ZERO <= text[at] <= NINE and value <= most:
        value = 10 * value + int(text[at] - ZERO)
        at += 1
    return value, at if at > begin and value <= most else -1


@kernel("int64(uint8[::1], int64, int64, uint64[::1])")
def read_line(text: Bytes, at: int, cells: int, found: Words) -> int:
    """Read a line: board, direction and cell; where the next begins, -1 if this one is wrong."""
    at = skip_blanks(text, at)
    if text[at] != LETTER:
        return -1
    at += 1
    found[0] = U(0)
    for cell in range(cells):
        rank, at = read_number(text, at, 15)
        if at < 0:
            return -1
        found[0] |= U(rank) << U(4 * cell)
    at = skip_blanks(text, at)
    if text[at] != COLON:
        return -1
    direction, at = read_number(text, at + 1, 3)
    if at < 0:
        return -1
    cell, at = read_number(text, at, cells - 1)
    if at < 0:
        return -1
    found[1], found[2] = U(direction), U(cell)
    at = skip_blanks(text, at)
    return at + 1 if text[at] == NEWLINE else -1


@kernel("int64(uint64, uint64, uint64, uint32[::1], uint32[::1], int64, int64)")
def cell_may_be(
    board: U, move: U, cell: U, across: Slides, down: Slides, rows: int, cols: int
) -> int:
    """What the cell of a move may be: bit 0, the tile before it; bit 1, the one after.

    0 if it can be neither, or the move is illegal.
    """
    after = slide(board, move, across, down, rows, cols)
    if after == board:
        return 0
    before = rank_at(board, int(cell)) in (U(1), U(2))
    return int(before) + 2 * int(rank_at(after, int(cell)) == U(0))


@kernel("int64(uint8[::1], int64, int64, uint64[::1], uint8[::1], uint8[::1], int64[::1])")
def parse_lines(
    text: Bytes, rows: int, cols: int, boards: Words, moves: Bytes, cells: Bytes, ends: Places
) -> int:
    """Read all lines, and where each of them begins; how many there are.

    It ends at a line that is wrong: the last of `ends` is the end of what was read.
    """
    found = np.zeros(3, np.uint64)
    at = size = 0
    ends[0] = 0
    while at < len(text):
        begin = skip_blanks(text, at)
        if text[begin] == NEWLINE:
            at = begin + 1
            ends[size] = at
            continue
        at = read_line(text, at, rows * cols, found)
        if at < 0:
            break
        boards[size], moves[size], cells[size] = found[0], found[1], found[2]
        size += 1
        ends[size] = at
    return size


@kernel(
    "void(uint64[::1], uint8[::1], uint8[::1], uint32[::1], uint32[::1], int64, int64, uint8[::1])"
)
def check_moves(
    boards: Words,
    moves: Bytes,
    cells: Bytes,
    across: Slides,
    down: Slides,
    rows: int,
    cols: int,
    out: Bytes,
) -> None:
    """Write what the cell of every move may be."""
    for i in range(len(boards)):
        out[i] = cell_may_be(boards[i], U(moves[i]), U(cells[i]), across, down, rows, cols)


@kernel("int64(uint64[::1], uint8[::1], uint8[::1], int64, uint8[::1])")
def write_lines(boards: Words, moves: Bytes, cells: Bytes, size: int, out: Bytes) -> int:
    """Write moves as text; how many bytes that are. A number has two digits at most."""
    at = 0
    for i in range(len(boards)):
        out[at] = LETTER
        at += 1
        for place in range(size + 2):
            number = np.int64(moves[i]) if place == size else np.int64(cells[i])
            if place < size:
                number = np.int64(rank_at(boards[i], place))
            elif place == size:
                out[at], out[at + 1] = SPACE, COLON
                at += 2
            out[at] = SPACE
            at += 1
            if number > 9:
                out[at] = ZERO + np.uint8(number // 10)
                at += 1
            out[at] = ZERO + np.uint8(number % 10)
            at += 1
        out[at] = NEWLINE
        at += 1
    return at


def to_text(moves: Moves, rules: Rules) -> bytes:
    """Moves as lines of text."""
    out = np.empty(len(moves.boards) * (3 * rules.cells + 12), np.uint8)
    return out[: write_lines(*moves, rules.cells, out)].tobytes()


def what_is_wrong(line: str, rules: Rules) -> str:
    """Why a line of text is no move."""
    found = re.fullmatch(r"\s*r((?:\s+\d+)*)\s*:\s*(\d+)\s+(\d+)\s*", line, re.ASCII)
    if found is None:
        shape = f"a line is 'r', {rules.cells} ranks, ':', a direction and a cell"
        return f"{shape}, not {line.strip()[:60]!r}"
    ranks, move, cell = [int(each) for each in found[1].split()], int(found[2]), int(found[3])
    wrong = {
        f"a board of {rules.name} has {rules.cells} ranks, not {len(ranks)}": len(ranks)
        != rules.cells,
        f"ranks go up to {MAX_PACKED_RANK}": max(ranks, default=0) > MAX_PACKED_RANK,
        f"a direction is a number from 0 to 3, not {move}": move > 3,
        f"a cell is a number from 0 to {rules.cells - 1}, not {cell}": cell >= rules.cells,
    }
    for why, is_so in wrong.items():
        if is_so:
            return why
    packed = sum(rank << 4 * place for place, rank in enumerate(ranks))
    board = Board.from_packed(packed, rules.rows, rules.cols)
    if move not in board.legal_moves:
        return f"the move {move} is not legal on {board}"
    return f"cell {cell} of {board} has no new tile, and is not empty after the move {move}"


# -- files ---------------------------------------------------------------------------------------


class Source(Protocol):
    """A file of move data: pieces that can be read one by one."""

    path: Path
    rules: Rules

    def __len__(self) -> int:
        """How many pieces there are."""

    def read(self, piece: int) -> Moves:
        """The moves of a piece, or a `DataError` that says which is wrong."""


class TextFile:
    """Move data as text. Pieces are of the same length, and have the lines that begin in them."""

    def __init__(self, path: Path, rules: Rules) -> None:
        self.path, self.rules = path, rules
        self._size = path.stat().st_size

    def __len__(self) -> int:
        return math.ceil(self._size / PIECE)

    def read(self, piece: int) -> Moves:
        """The moves of a piece, or a `DataError` that names the line that is wrong."""
        text, begin = self._lines(piece)
        most = len(text) // (2 * self.rules.cells) + 1
        boards, ends = np.empty(most, np.uint64), np.empty(most + 1, np.int64)
        moves, cells = np.empty(most, np.uint8), np.empty(most, np.uint8)
        rows, cols = self.rules.rows, self.rules.cols
        data = np.frombuffer(bytearray(text), np.uint8)
        size = parse_lines(data, rows, cols, boards, moves, cells, ends)
        found = Moves(boards[:size], moves[:size], cells[:size])
        wrong = np.flatnonzero(may_be(found, self.rules) == 0)
        if len(wrong) or ends[size] < len(text):
            at = int(ends[wrong[0] if len(wrong) else size])
            raise self._error(begin + at, text[at:].lstrip().split(b"\n")[0])
        return found

    def _lines(self, piece: int) -> tuple[bytes, int]:
        """The lines that begin in a piece, and where the first does."""
        begin, end = piece * PIECE, min((piece + 1) * PIECE, self._size)
        with self.path.open("rb") as file:
            if begin:  # the line that begins before belongs to the piece before
                file.seek(begin - 1)
                before = file.readline(LINE)
                if len(before) == LINE:
                    raise self._error(begin - 1, before)
                begin += len(before) - 1
            text = file.read(max(0, end - begin))
            if text and not text.endswith(b"\n"):
                text += file.readline(LINE)
        if text and not text.endswith(b"\n"):
            text += b"\n"
        ends = np.flatnonzero(np.frombuffer(text, np.uint8) == NEWLINE)
        long = np.flatnonzero(np.diff(ends, prepend=-1) > LINE)
        if len(long):
            at = int(ends[long[0] - 1]) + 1 if long[0] else 0
            raise self._error(begin + at, text[at : at + LINE])
        return text, begin

    def _error(self, at: int, line: bytes) -> DataError:
        """What is wrong with a line, which begins somewhere or after blank lines."""
        with self.path.open("rb") as file:
            number = 1
            while at > 0:
                text = file.read(min(at, PIECE))
                number, at = number + text.count(b"\n"), at - len(text)
            for blank in iter(partial(file.readline, LINE), b""):
                if blank.strip() or len(blank) == LINE:
                    break
                number += 1
        why = f"it has more than {LINE:,} characters, and a move has about 60"
        if len(line) < LINE:
            why = what_is_wrong(line.decode("ascii", "replace"), self.rules)
        return DataError(f"{self.path}, line {number}: {why}")


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


def may_be(moves: Moves, rules: Rules) -> Bytes:
    """What the cell of each move may be (`cell_may_be`)."""
    out = np.empty(len(moves.boards), np.uint8)
    check_moves(*moves, table(rules.cols), table(rules.rows), rules.rows, rules.cols, out)
    return out


def check_file(path: Path, force: bool = False) -> None:
    """An error unless a command may put moves into this file (`home.check_target`)."""
    if path.suffix not in (".txt", ".parquet"):
        raise DataError(f"moves are written to a .txt or a .parquet file, not {path.name[:40]}")
    if path.suffix == ".parquet":
        arrow()
    check_target(path, force=force)


def open_moves(path: Path, rules: Rules) -> Source:
    """A file of moves, text or Parquet by its name."""
    return ParquetFile(path, rules) if path.suffix == ".parquet" else TextFile(path, rules)


def is_labels(path: Path) -> bool:
    """Whether a file has labels, not moves."""
    return path.suffix == ".parquet" and about_parquet(path).get("kind") == LABELS


def about_parquet(path: Path) -> dict[str, Any]:
    """What a Parquet file says about itself, and how long its row groups are."""
    with _parquet_file(path) as file:
        facts = json.loads((file.schema_arrow.metadata or {}).get(KEY, b"{}"))
        counts = range(file.num_row_groups)
        groups = [file.metadata.row_group(each).num_rows for each in counts]
    return {**(facts if isinstance(facts, dict) else {}), "groups": groups}


def read_facts(path: Path, kind: str) -> dict[str, Any]:
    """What a Parquet file of a kind says about itself, its rules, and the sizes of row groups."""
    facts = about_parquet(path)
    if facts.get("kind") != kind or facts.get("format") != FORMAT:
        raise DataError(f"{path} has no {kind} of lab2048")
    if max(facts["groups"], default=0) > MOST:
        raise DataError(f"{path} has a row group of more than {MOST:,} rows; write smaller ones")
    try:
        return {**facts, "rules": Rules.parse(facts["board"], facts["p4"])}
    except (KeyError, ValueError) as error:
        raise DataError(f"{path} does not say what its rules are: {error}") from None


@contextmanager
def _parquet_file(path: Path) -> Iterator[Any]:
    """An open Parquet file; whatever is wrong with it is a `DataError`."""
    pa, parquet = arrow()
    with path.open("rb") as file:
        try:
            yield parquet.ParquetFile(file)
        except DataError:
            raise
        except (pa.ArrowException, OSError, ValueError, RecursionError) as error:
            why = str(error).split("\n")[0][:200]
            raise DataError(f"{path} is damaged, or no Parquet file: {why}") from None


def read_group(path: Path, group: int, kinds: dict[str, str]) -> dict[str, NDArray[Any]]:
    """Some columns of a row group, of these types; a `DataError` if they cannot be that.

    A number that is missing is NaN in a column of real numbers, and nowhere else allowed.
    """
    with _parquet_file(path) as file:
        for name, kind in kinds.items():
            _check_column(path, file.schema_arrow, name, np.dtype(kind))
        table = file.read_row_group(group, columns=list(kinds))
        before = sum(file.metadata.row_group(each).num_rows for each in range(group))
        found = {}
        for name, kind in kinds.items():
            column, dtype = table[name], np.dtype(kind)
            if dtype.kind == "u":
                _check_range(path, column, name, int(np.iinfo(dtype).max), before)
            found[name] = np.array(column.to_numpy(), dtype)
    return found


def _check_column(path: Path, schema: Any, name: str, dtype: np.dtype[Any]) -> None:
    """A `DataError` unless there is one column of a name, and it has whole or real numbers."""
    pa, _ = arrow()
    if len(schema.get_all_field_indices(name)) != 1:
        raise DataError(f"{path} should have one column {name}")
    kind, whole = schema.field(name).type, dtype.kind == "u"
    if not (pa.types.is_integer(kind) if whole else pa.types.is_floating(kind)):
        wanted = "whole numbers" if whole else "real numbers"
        raise DataError(f"{path}: the column {name} should have {wanted}, not {short(str(kind))}")


def _check_range(path: Path, column: Any, name: str, most: int, before: int) -> None:
    """A `DataError` that names the first row of a column that is missing or out of range."""
    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy())[0])
        raise DataError(f"{path}, row {before + row + 1}: there is no {name}")
    values = column.to_numpy()
    wrong = np.flatnonzero((values < 0) | (values > most))
    if len(wrong):
        row = int(wrong[0])
        raise DataError(f"{path}, row {before + row + 1}: {name} is out of range: {values[row]}")


# -- look through --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Summary:
    """What there is in files of moves."""

    moves: int
    cell: str
    """Which tile cells are those of: the one before the move, after it, or it cannot be told."""
    largest: int
    """The largest tile."""
    directions: tuple[int, int, int, int]


def summarise(source: Source, progress: Callable[[int], object] = lambda piece: None) -> Summary:
    """Look through a file; a `DataError` says where it is wrong."""
    directions, largest = np.zeros(4, np.int64), 0
    seen: dict[int, int] = {}  # of what cells may be, the first piece where they are
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
    """All moves of files in batches of a size, in a random order that seed and epoch decide.

    Pieces are read in a random order into a pool, and moves drawn from it; half of it is used up
    before more is read. So what fits into the pool is shuffled evenly.
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
    """So many moves of games 0, 1, ... of a player, game by game; the last is cut short.

    With `first`, only so many moves of each game count. How many games are played at a time depends
    on how long those before them were. `play` is that of `arena.play_match`.
    """
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


def write_moves(path: Path, parts: Iterable[Moves], rules: Rules, facts: dict[str, Any]) -> int:
    """Write moves to a file, text or Parquet by its name, all of them or nothing; how many."""
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


def write_parquet(path: Path, parts: Iterable[Columns], facts: dict[str, Any]) -> int:
    """Write columns to a Parquet file, all of it or nothing; how many rows there are."""
    pa, parquet = arrow()
    writer, rows = None, 0
    with replacing(path) as temporary, ExitStack() as stack:
        for group in in_groups(parts):
            found = pa.table(group)
            if writer is None:
                about = {KEY: json.dumps({"format": FORMAT, **facts})}
                schema = found.schema.with_metadata(about)
                writer = stack.enter_context(parquet.ParquetWriter(temporary, schema))
            writer.write_table(found.replace_schema_metadata(None).cast(writer.schema))
            rows += len(found)
        if writer is None:
            raise DataError("there is nothing to write")
    return rows


def in_groups(parts: Iterable[Columns]) -> Iterator[Columns]:
    """Columns in groups of the same number of rows."""
    waiting: list[Columns] = []
    size = 0
    for part in parts:
        waiting.append(part)
        size += len(part["board"])
        if size >= GROUP:
            joined = {name: np.concatenate([each[name] for each in waiting]) for name in part}
            for begin in range(0, size - GROUP + 1, GROUP):
                yield {name: each[begin : begin + GROUP] for name, each in joined.items()}
            waiting = [{name: each[size - size % GROUP :] for name, each in joined.items()}]
            size %= GROUP
    if size:
        yield {name: np.concatenate([each[name] for each in waiting]) for name in waiting[0]}
