"""Games on disk: one JSON line per game, with all that is needed to replay it exactly.

    {"format": 1, "rules": {"rows": 4, "cols": 4, "p4": 0.1}, "player": "greedy", "seed": 1,
     "index": 0, "score": 1344, "max_tile": 128, "moves": "3023...", "spawns": "0132..."}

`moves` has one digit per move: 0 up, 1 right, 2 down, 3 left. `spawns` has two characters per tile,
its cell as a hexadecimal digit (row by row) and its rank, 1 or 2: first the two tiles of the start,
then one after each move. A replay needs nothing else; seed and index tell where the game came from.
A game from another position has that as `start`, one rank per cell, and no tiles of the start.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from lab2048.game import Board, Direction, Game, Rules
from lab2048.game.notation import DIGITS, short
from lab2048.home import check_target, replacing, write_atomically

FORMAT = 1
LARGEST = (1 << 63) - 1
"""The largest number that columns of games in Parquet hold."""


class RecordError(ValueError):
    """A game file, or a line of it, that cannot be read."""


class Turn(NamedTuple):
    """One move of a game: the board before it, its reward, the afterstate, and the next board."""

    board: Board
    move: Direction
    reward: int
    after: Board
    next: Board


@dataclass(frozen=True, slots=True)
class Record:
    """A recorded game.

    >>> game = Game(Rules(2, 2), seed=1)
    >>> _ = game.play(game.board.legal_moves[0])
    >>> record = Record.of(game, "me")
    >>> record == Record.from_json(record.to_json())
    True
    """

    rules: Rules
    player: str
    seed: int | None
    index: int
    score: int
    max_tile: int
    moves: str
    spawns: str
    start: Board | None = None
    """The starting position, unless the game began with two spawns on an empty board."""

    @classmethod
    def of(cls, game: Game, player: str) -> Record:
        """The record of a game."""
        moves, spawns = moves_text(game.moves), spawns_text(game.spawns)
        return cls(
            game.rules,
            player,
            game.seed,
            game.index,
            game.score,
            game.board.max_tile,
            moves,
            spawns,
            game.start,
        )

    def to_json(self) -> str:
        """The record as a line of JSON, without the newline."""
        rules = {"rows": self.rules.rows, "cols": self.rules.cols, "p4": self.rules.p4}
        facts: dict[str, Any] = {"format": FORMAT, "rules": rules}
        for name in NAMES:
            facts[name] = getattr(self, name)
        if self.start is not None:
            facts["start"] = self.start.hex
        return json.dumps(facts)

    @classmethod
    def from_json(cls, line: str) -> Record:
        """Parse a line, or raise a `RecordError`. Use `turns` to check the game by the rules."""
        try:
            facts = json.loads(line)
            if facts["format"] != FORMAT:
                raise RecordError(f"format {short(facts['format'])}; this is format {FORMAT}")
            rules = Rules(*(facts["rules"][name] for name in RULES))
            texts = [facts[name] for name in ("player", "moves", "spawns")]
            numbers = [facts[name] for name in ("index", "score", "max_tile")]
            "".join(map(str, texts)).encode()  # lone surrogates cannot be printed
            begun = facts.get("start")
            start = None if begun is None else Board.parse(begun, rules.name)
        except RecordError:
            raise
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise RecordError(f"not a game: {_reason(error)}") from None
        if not all(isinstance(text, str) for text in texts) or not all(
            isinstance(number, int) and not isinstance(number, bool) for number in numbers
        ):
            raise RecordError("not a game: a value is of the wrong kind")
        player, moves, spawns = texts
        index, score, max_tile = numbers
        seed = facts.get("seed")
        if seed is not None and (not isinstance(seed, int) or isinstance(seed, bool) or seed < 0):
            raise RecordError("not a game: the seed is not a whole number")
        if min(numbers) < 0:
            raise RecordError("not a game: a number is negative")
        if max(index, score, max_tile) > LARGEST or (seed or 0) >= 1 << 64:
            raise RecordError("not a game: a number is too large")
        return cls(rules, player, seed, index, score, max_tile, moves, spawns, start)

    def turns(self) -> Iterator[Turn]:
        """Replay the game, move by move; raise a `RecordError` where it breaks the rules."""
        first = 2 if self.start is None else 0
        if len(self.spawns) != 2 * (len(self.moves) + first):
            raise RecordError(
                f"{len(self.moves)} moves need {len(self.moves) + first} spawns, "
                f"not {len(self.spawns) / 2:g}"
            )
        board = self.start or Board((0,) * self.rules.cells, self.rules.rows, self.rules.cols)
        for number in range(first):
            board = self._spawn(board, number)
        score = 0
        for number, digit in enumerate(self.moves):
            if digit not in "0123":
                raise RecordError(f"move {number + 1} is {digit!r}, which is none of 0 to 3")
            direction = Direction(int(digit))
            legal, reward, after = board.move(direction)
            if not legal:
                raise RecordError(f"move {number + 1}, {direction}, is not legal on {board}")
            score += reward
            before, board = board, self._spawn(after, number + first)
            yield Turn(before, direction, reward, after, board)
        if (score, board.max_tile) != (self.score, self.max_tile):
            raise RecordError(
                f"the moves give score {score} and largest tile {board.max_tile}, "
                f"not {self.score} and {self.max_tile}"
            )

    def _spawn(self, board: Board, number: int) -> Board:
        """The board after spawn `number`."""
        text = self.spawns[2 * number : 2 * number + 2]
        try:
            cell, rank = DIGITS.index(text[0].lower()), DIGITS.index(text[1])
            if rank not in (1, 2) or self.rules.p4 == 2 - rank:  # p4 0 or 1 rules out a rank
                raise ValueError
            return board.place(cell, rank)
        except (ValueError, IndexError):
            raise RecordError(f"spawn {number + 1}, {text!r}, is not possible on {board}") from None


def moves_text(moves: Iterable[int]) -> str:
    """Moves as the text of a record, one digit each."""
    return "".join(str(int(move)) for move in moves)


def spawns_text(spawns: Iterable[tuple[int, int]]) -> str:
    """Spawns as the text of a record, cell and rank of each."""
    return "".join(f"{cell:x}{rank}" for cell, rank in spawns)


def _reason(error: Exception) -> str:
    """What is wrong with a line or a file, in a few words."""
    if isinstance(error, KeyError):
        return f"it has no {error.args[0]!r}"
    return str(error).split("\n")[0] or type(error).__name__


# -- files ---------------------------------------------------------------------------------------

NAMES = ("player", "seed", "index", "score", "max_tile", "moves", "spawns")
"""The fields of a record besides its rules and `start`."""
RULES = ("rows", "cols", "p4")
LINE = 1 << 20
"""Lines of this many characters are refused. A game, of at most 131,068 moves, has fewer."""
ROWS = 256
"""Games per batch when reading Parquet."""


def read_records(path: Path) -> Iterator[Record]:
    """Iterate over the games of a file; a `RecordError` names the line that cannot be read.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "games.jsonl"
    ...     write_records([Record.of(Game(Rules(2, 2), seed=1), "me")], path)
    ...     next(read_records(path)).rules.name
    '2x2'
    """
    lines = _parquet_lines(path) if path.suffix == ".parquet" else _text_lines(path)
    for number, line in lines:
        try:
            yield Record.from_json(line)
        except RecordError as error:
            raise RecordError(f"{path}, line {number}: {error}") from None


def _text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The non-empty lines of a file, with their numbers."""
    with path.open(encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(iter(partial(file.readline, LINE), ""), 1):
            if len(line) == LINE:
                raise RecordError(
                    f"{path}, line {number}: it has {LINE:,} characters or more, which no game has"
                )
            if line.strip():
                yield number, line


def _parquet_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The rows of a Parquet file as JSON lines, with their numbers."""
    with path.open("rb") as file:  # so that a missing file is an ordinary error
        for number, row in enumerate(_parquet_rows(path, file), 1):
            rules = {name: row.pop(name, None) for name in RULES}
            yield number, json.dumps({"format": FORMAT, "rules": rules, **row}, default=str)


def _parquet_rows(path: Path, file: BinaryIO) -> Iterator[dict[str, Any]]:
    """The rows of a Parquet file, ROWS in memory at a time; only the columns of a game."""
    pa, parquet = arrow()
    wanted = [*NAMES, *RULES, "start"]
    try:
        for batch in parquet.ParquetFile(file).iter_batches(ROWS, columns=wanted):
            yield from batch.to_pylist()
    except (pa.ArrowException, OSError, ValueError) as error:
        raise RecordError(f"{path}: {_reason(error)}") from None


def check_file(path: Path, force: bool = False) -> None:
    """Raise an error unless games may be written to this file (see `home.check_target`)."""
    if path.suffix not in (".jsonl", ".parquet"):
        raise RecordError(f"games are saved in a .jsonl or a .parquet file, not {path.name}")
    if path.suffix == ".parquet":
        arrow()
    check_target(path, force=force)


def write_records(records: Iterable[Record], path: Path) -> None:
    """Write games to a file: Parquet if its name ends in `.parquet`, else JSON lines.

    >>> from tempfile import TemporaryDirectory
    >>> game = Game(Rules(2, 2), seed=1)
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "games.jsonl"
    ...     write_records([Record.of(game, "me")], path)
    ...     [record.player for record in read_records(path)]
    ['me']
    """
    if path.suffix == ".parquet":
        _write_parquet(list(records), path)
    else:
        write_atomically(path, "".join(record.to_json() + "\n" for record in records))


def _write_parquet(records: list[Record], path: Path) -> None:
    """Write games as a Parquet table, one row each."""
    pa, parquet = arrow()
    columns: dict[str, list[Any]] = {n: [getattr(r, n) for r in records] for n in NAMES}
    for name in RULES:
        columns[name] = [getattr(record.rules, name) for record in records]
    columns["seed"] = pa.array(columns["seed"], pa.uint64())
    starts = [record.start and record.start.hex for record in records]
    columns["start"] = pa.array(starts, pa.string())
    with replacing(path) as temporary:
        parquet.write_table(pa.table(columns), temporary)


def arrow() -> tuple[Any, Any]:
    """Import pyarrow, or raise an `ImportError` that says what to install."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise ImportError("Parquet needs pyarrow: pip install 'lab2048[data]'") from None
    return pyarrow, parquet
