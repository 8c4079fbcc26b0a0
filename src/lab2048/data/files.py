"""Files of moves and labels, made from games of players: one call each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab2048.data.labels import LIKELY, Astray, Judge, judged, write_labels, write_perfect
from lab2048.data.moves import (
    Summary,
    check_file,
    make_moves,
    open_moves,
    summarise,
    write_moves,
)
from lab2048.game import Rules
from lab2048.measure.arena import Play, play_games, prepare
from lab2048.players.registry import PlayerLike, player
from lab2048.remote import cluster_at
from lab2048.solver.problem import Problem
from lab2048.solver.table import Table
from lab2048.solver.tables import require_table
from lab2048.tabular import SingleRow

Note = Callable[[int], object]
"""A function that is called with the amount of work done."""


@dataclass(frozen=True)
class Written(SingleRow):
    """A file that was written, and what is in it.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     save_moves(Path(folder) / "moves.txt", "corner", "2x2", moves=20).as_json()["moves"]
    20
    """

    path: Path
    what: str
    """What is counted: moves, boards or states."""
    count: int
    facts: dict[str, Any]
    """Who played, on which board, with which seed."""

    @property
    def bytes(self) -> int:
        """The size of the file."""
        return self.path.stat().st_size

    def as_json(self) -> dict[str, Any]:
        """Return what `lab2048 data --json` prints."""
        return {"file": str(self.path), self.what: self.count, "bytes": self.bytes, **self.facts}


def save_moves(  # noqa: PLR0913
    path: Path | str,
    who: PlayerLike = "ntuple",
    board: str | Rules = "4x4",
    *,
    moves: int = 100_000,
    first: int | None = None,
    seed: int = 1,
    threads: int | None = None,
    force: bool = False,
    progress: Note = lambda moves: None,
    play: Play = play_games,
    cluster: Any = None,
) -> Written:
    """Write the moves of a player's games: .parquet, or .txt for the text form of the study.

    With `first`, only this many moves of each game are written. An existing file is replaced only
    with `force`. `cluster` is the address of a Ray cluster that plays the games, or an open
    connection (see `connect`).

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from lab2048 import check_moves, save_moves
    >>> with TemporaryDirectory() as folder:
    ...     path = save_moves(Path(folder) / "moves.txt", "greedy", "2x2", moves=100).path
    ...     check_moves(path, "2x2").moves
    100
    """
    path, chosen = Path(path), player(who, board)
    check_file(path, force)
    prepare(chosen)
    with cluster_at(cluster, threads) as there:
        playing = there.play if there else play
        parts = make_moves(chosen, moves, seed, threads, progress, first, playing)
        written = write_moves(path, parts, chosen.rules, {"player": chosen.spec, "seed": seed})
    facts = {"player": chosen.spec, "board": chosen.rules.name, "seed": seed}
    return Written(path, "moves", written, facts)


def save_labels(  # noqa: PLR0913
    path: Path | str,
    who: PlayerLike = "ntuple",
    board: str | Rules = "4x4",
    *,
    teacher: PlayerLike | None = None,
    moves: int = 100_000,
    first: int | None = None,
    random: float = 0.0,
    seed: int = 1,
    threads: int | None = None,
    force: bool = False,
    progress: Note = lambda moves: None,
    play: Play = play_games,
    judge: Judge = judged,
    cluster: Any = None,
) -> Written:
    """Write boards of a player's games with the value that it, or `teacher`, gives each move.

    `random` is the probability of a random move, so that games also reach unusual positions.
    The file is .parquet. `cluster` is the address of a Ray cluster that plays and judges, or an
    open connection (see `connect`).

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from lab2048 import save_labels
    >>> with TemporaryDirectory() as folder:
    ...     found = save_labels(Path(folder) / "labels.parquet", "greedy", "2x2", moves=50)
    ...     found.count, found.facts["teacher"]
    (50, 'greedy')
    """
    path, chosen = Path(path), player(who, board)
    check_labels(path, force)
    judging = chosen if teacher is None else player(teacher, chosen.rules)
    prepare(chosen)
    prepare(judging)
    with cluster_at(cluster, threads) as there:
        written = write_labels(
            path, Astray(chosen.rules, chosen, random), judging, moves, first=first, seed=seed,
            threads=threads, progress=progress, play=there.play if there else play,
            judge=there.judge if there else judge,
        )  # fmt: skip
    facts = {"player": chosen.spec, "teacher": judging.spec, "board": chosen.rules.name}
    return Written(path, "boards", written, {**facts, "seed": seed})


def save_perfect_labels(  # noqa: PLR0913
    path: Path | str,
    board: str | Rules = "3x3",
    who: PlayerLike = "optimal:ties=split",
    *,
    table: Table | None = None,
    random: float = 0.0,
    likely: float = LIKELY,
    threads: int | None = None,
    force: bool = False,
    progress: Note = lambda age: None,
) -> Written:
    """Write perfect labels of a solved board: every state that a player reaches, and how often.

    States reached with a probability below `likely` are left out. The file is .parquet.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from lab2048 import save_perfect_labels
    >>> with TemporaryDirectory() as folder:
    ...     save_perfect_labels(Path(folder) / "perfect.parquet", "2x2").count
    74
    """
    path = Path(path)
    check_labels(path, force)
    rules = board if isinstance(board, Rules) else Rules.parse(board)
    with require_table(Problem.of(rules), True if table is None else table) as known:
        chosen = player(who, rules)
        prepare(chosen)
        written = write_perfect(
            path, known, chosen, random=random, likely=likely, threads=threads, progress=progress
        )
    facts = {"player": chosen.spec, "board": rules.name, "random": random}
    return Written(path, "states", written, facts)


def check_moves(
    path: Path | str,
    board: str | Rules = "4x4",
    progress: Callable[[int, int], object] = lambda piece, pieces: None,
) -> Summary:
    """Check a file of moves. Return a summary; a `DataError` says where the file is wrong.

    `progress` is called with the number of pieces of the file that are checked, and the total.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from lab2048 import check_moves, save_moves
    >>> with TemporaryDirectory() as folder:
    ...     path = save_moves(Path(folder) / "moves.parquet", "corner", "2x2", moves=80).path
    ...     sum(check_moves(path, "2x2").directions)
    80
    """
    rules = board if isinstance(board, Rules) else Rules.parse(board)
    source = open_moves(Path(path), rules)
    return summarise(source, lambda piece: progress(piece, len(source)))


def check_labels(path: Path, force: bool) -> None:
    """Raise an error unless labels may be written to this file."""
    if path.suffix != ".parquet":
        raise ValueError(f"labels go into a .parquet file, not {path.name[:40]}")
    check_file(path, force)
