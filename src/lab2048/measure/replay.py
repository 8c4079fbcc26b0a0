"""Replay the games of a file, to verify what it says about them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from lab2048.game.record import Record, RecordError, Turn, read_records
from lab2048.tabular import Tabular


class Replayed(Tabular, Sequence[Record]):
    """The verified games of a file: each follows the rules and has the score that it claims.

    >>> from lab2048 import Game, Rules
    >>> Replayed([Record.of(Game(Rules(2, 2), seed=1), "me")]).rows()[0]["player"]
    'me'
    """

    def __init__(self, records: Sequence[Record]) -> None:
        self._records = records

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[Record]:
        return iter(self._records)

    def __getitem__(self, which: Any) -> Any:
        return self._records[which]

    @property
    def moves(self) -> int:
        """The number of moves of all games."""
        return sum(len(each.moves) for each in self)

    def as_json(self) -> dict[str, int]:
        """Return what `lab2048 replay --json` prints."""
        return {"games": len(self), "moves": self.moves}

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per game."""
        return [
            {
                "game": number,
                "player": each.player,
                "board": each.rules.name,
                "score": each.score,
                "max_tile": each.max_tile,
                "moves": len(each.moves),
            }
            for number, each in enumerate(self, 1)
        ]


def replay(path: Path | str, progress: Callable[[int], object] = lambda games: None) -> Replayed:
    """Replay the games of a file, and return them.

    A `ValueError` names the first game that breaks a rule or does not end as it claims. `progress`
    is called with the number of games replayed.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from lab2048 import evaluate, replay
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "games.jsonl"
    ...     _ = evaluate("greedy", "2x2", games=3, table=False).save_games(path)
    ...     print(len(replay(path)), "games")
    3 games
    """
    path = Path(path)
    found = []
    for number, record in enumerate(read_records(path), 1):
        turns_of(record, path, number)
        found.append(record)
        progress(number)
    if not found:
        raise ValueError(f"{path} has no games")
    return Replayed(found)


def read_game(path: Path | str, number: int = 1) -> Record:
    """Return one game of a file, counted from 1, after replaying it."""
    path = Path(path)
    found = list(islice(read_records(path), number - 1, number)) if number >= 1 else []
    if not found:
        raise ValueError(f"{path} has no game {number}")
    turns_of(found[0], path, number)
    return found[0]


def turns_of(record: Record, path: Path, number: int) -> list[Turn]:
    """Return the moves of a game, or raise a `ValueError` that says which game is at fault."""
    try:
        return list(record.turns())
    except RecordError as error:
        raise ValueError(f"{path}, game {number}: {error}") from None
