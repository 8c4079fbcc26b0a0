"""Games that were played, and the journal of a match: what it goes on from when it was stopped."""

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
    """A game that was played to its end."""

    index: int
    score: int
    max_tile: int
    moves: bytes
    """The directions, one a byte."""


class Journal:
    """A file that finished games are added to, a line with a checksum each.

    Not SQLite, which would commit every game: quick players finish thousands a second, and here a
    torn line costs no more than its game.

    If it cannot be written, that is said once; the match goes on, and cannot be taken up again.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: FileIO | None = None
        with self._or_none():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("ab", buffering=0)

    def add(self, game: Played) -> None:
        """Write a game down."""
        if self._file is not None:
            with self._or_none():
                self._file.write(b"\n" + _journal_line(game).encode())  # the last may be torn

    def close(self) -> None:
        """Nothing more will be written."""
        if self._file is not None:
            self._file.close()
            self._file = None

    @contextmanager
    def _or_none(self) -> Iterator[None]:
        """Give the file up if the disk does not take it."""
        try:
            yield
        except OSError as error:
            say(f"cannot keep finished games in {self._path.parent}: {error.strerror}")
            self.close()


def journal_path(player: Player, seed: int) -> Path:
    """Where the journal of a match is kept; another version of lab2048 has another."""
    rules = player.rules
    facts = f"{player.identity} {rules.name} {rules.p4!r} {seed} {kernel_digest()}"
    return home() / "matches" / f"{hashlib.sha256(facts.encode()).hexdigest()[:24]}.jsonl"


def _journal_line(game: Played) -> str:
    """A game as a line of a journal; a checksum is its end."""
    facts = [game.index, game.score, game.max_tile, game.moves.hex()]
    return json.dumps([*facts, zlib.crc32(json.dumps(facts).encode())])


def read_journal(path: Path, games: int) -> dict[int, Played]:
    """The games that were finished; what is damaged is left out, to be played again."""
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
