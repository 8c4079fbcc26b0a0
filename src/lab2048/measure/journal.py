"""Finished games, and the journal from which an interrupted match resumes."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

from lab2048.engine.jit import kernel_digest
from lab2048.home import home, say
from lab2048.players.player import Player


@dataclass(frozen=True, slots=True)
class Played:
    """A finished game."""

    index: int
    score: int
    max_tile: int
    moves: bytes
    """The directions, one per byte."""


class Journal:
    """A file of finished games, one line with a checksum per game.

    Not SQLite, which would commit every game: fast players finish thousands per second, and here a
    torn line costs no more than its game.

    If the file cannot be written, one message says so; the match continues, and later games are not
    kept.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: FileIO | None = None
        with self._or_none():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("ab", buffering=0)

    def add(self, game: Played) -> None:
        """Append a game."""
        if self._file is not None:
            with self._or_none():
                self._file.write(b"\n" + _journal_line(game).encode())  # the last line may be torn

    def close(self) -> None:
        """Close the file; games added later are not written."""
        if self._file is not None:
            self._file.close()
            self._file = None

    @contextmanager
    def _or_none(self) -> Iterator[None]:
        """Report an `OSError`, and give up writing."""
        try:
            yield
        except OSError as error:
            say(f"cannot keep finished games in {self._path.parent}: {error.strerror}")
            self.close()


def journal_path(player: Player, seed: int) -> Path:
    """The file of the journal of a match; each version of lab2048 has its own."""
    rules = player.rules
    facts = f"{player.identity} {rules.name} {rules.p4!r} {seed} {kernel_digest()}"
    return home() / "matches" / f"{hashlib.sha256(facts.encode()).hexdigest()[:24]}.jsonl"


def _journal_line(game: Played) -> str:
    """A game as a line of a journal, which ends with a checksum."""
    facts = [game.index, game.score, game.max_tile, game.moves.hex()]
    return json.dumps([*facts, zlib.crc32(json.dumps(facts).encode())])


def read_journal(path: Path, games: int) -> dict[int, Played]:
    """The finished games in a journal; damaged lines are skipped, and their games played again."""
    found: dict[int, Played] = {}
    lines = path.read_text("utf-8", "replace").splitlines() if path.exists() else []
    for line in lines:
        try:
            index, score, max_tile, moves, _ = json.loads(line)
            game = Played(index, score, max_tile, bytes.fromhex(moves))
        except (ValueError, TypeError):
            continue
        if _journal_line(game) == line and index < games:
            found[index] = game
    return found
