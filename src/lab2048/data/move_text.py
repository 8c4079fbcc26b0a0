"""Move data as text, in the form of the supervised study: `r e0 e1 ... : dir pos`.

Kernels read and write it: it is not CSV, and has millions of rows.
"""

from __future__ import annotations

import math
import re
from functools import partial
from pathlib import Path

import numpy as np

from lab2048.data.move_rows import Moves, may_be
from lab2048.data.parquet import DataError
from lab2048.engine.arrays import Bytes, Counts, Words
from lab2048.engine.jit import U, inline, kernel
from lab2048.engine.packed import rank_at
from lab2048.game import MAX_PACKED_RANK, Board, Rules

PIECE = 1 << 20
"""Bytes of text read at a time."""
LINE = 1 << 12
"""Maximum number of bytes in a line; a move takes about 60."""

SPACE, TAB, RETURN, NEWLINE, ZERO, NINE, COLON, LETTER = (np.uint8(ord(c)) for c in " \t\r\n09:r")


@inline("int64(uint8[::1], int64)")
def skip_blanks(text: Bytes, at: int) -> int:
    """The index of the next non-blank; a text ends with a newline, which is not a blank."""
    while text[at] in (SPACE, TAB, RETURN):
        at += 1
    return at


@kernel("UniTuple(int64, 2)(uint8[::1], int64, int64)")
def read_number(text: Bytes, at: int, most: int) -> tuple[int, int]:
    """A number from 0 to `most` after blanks, and where it ends: -1 if there is none."""
    at = skip_blanks(text, at)
    begin = at
    value = 0
    while ZERO <= text[at] <= NINE and value <= most:
        value = 10 * value + int(text[at] - ZERO)
        at += 1
    return value, at if at > begin and value <= most else -1


@kernel("int64(uint8[::1], int64, int64, uint64[::1])")
def read_line(text: Bytes, at: int, cells: int, found: Words) -> int:
    """Read board, direction and cell of a line. Return where the next begins, -1 if it is wrong."""
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


@kernel("int64(uint8[::1], int64, int64, uint64[::1], uint8[::1], uint8[::1], int64[::1])")
def parse_lines(
    text: Bytes, rows: int, cols: int, boards: Words, moves: Bytes, cells: Bytes, ends: Counts
) -> int:
    """Read all lines, and where each begins. Return their number.

    Reading stops at a wrong line: the last of `ends` is the end of what was read.
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


@kernel("int64(uint64[::1], uint8[::1], uint8[::1], int64, uint8[::1])")
def write_lines(boards: Words, moves: Bytes, cells: Bytes, size: int, out: Bytes) -> int:
    """Write moves as text. Return the number of bytes. Numbers have at most two digits."""
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
    """Why a line of text is not a move."""
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
    board = Board(tuple(ranks), rules.rows, rules.cols)
    if move not in board.legal_moves:
        return f"the move {move} is not legal on {board}"
    return f"cell {cell} of {board} has no new tile, and is not empty after the move {move}"


class TextFile:
    """Move data as text, in pieces of `PIECE` bytes; a piece has the lines that begin in it."""

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
        """The lines that begin in a piece, and the offset of the first."""
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
        """The error for the line at this offset, or after the blank lines there."""
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
