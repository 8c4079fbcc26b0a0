"""Which table answers for a board: find it, open it, make it, list them, remove one.

Nothing else in lab2048 decides this. A table of a small board (`ON_THE_FLY`) is made when it is
needed; that of a larger one only when somebody asks for it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from lab2048.game import Rules
from lab2048.game.notation import short
from lab2048.home import locked, say, temporary_folder
from lab2048.solver.existing_table import remove_unusable
from lab2048.solver.manifest import description, load_manifest
from lab2048.solver.objective import Objective
from lab2048.solver.problem import ON_THE_FLY, Problem
from lab2048.solver.table import CACHE_BYTES, Table
from lab2048.solver.table_files import (
    FORMAT,
    KINDS,
    LOCK,
    MANIFEST,
    PROGRESS,
    OtherTableError,
    TableError,
    default_folder,
    other_files,
    tables_folder,
)
from lab2048.tabular import Tabular

Make = Callable[[Path], object]
"""Solves a problem into a folder."""


def solve(  # noqa: PLR0913 -- all but the first are keywords
    board: str | Rules | Problem,
    *,
    objective: str | Objective = "score",
    p4: float | None = None,
    gamma: float = 1.0,
    values: str = "float64",
    out: Path | str | None = None,
    replace: bool = False,
    threads: int | None = None,
    progress: Callable[[Any], object] = lambda step: None,
) -> Table:
    """Return the table of a board, solved now if it is not solved yet.

    Objectives are `score`, `worst-case`, `reach:TILE` and those that were registered; `gamma`
    discounts the score per move. The table is made in the data folder unless `out` names a folder
    for it, with values of float64 or float32. A solve that was interrupted goes on with the same
    call. A table that is there but of another format or damaged is a `TableError`; with `replace`
    it is removed. `progress` is called with what has been done, several times a second. A table is
    a context manager.

    >>> with solve("2x2") as table:
    ...     round(table.start_value["start"], 3), table.states
    (66.964, 110)
    """
    from lab2048.solver.job import make_table

    problem = problem_of(board, objective=objective, p4=p4, gamma=gamma)
    if replace:
        there = default_folder(problem, values) if out is None else out
        remove_unusable(there, {**problem.as_json(), "values": values})
    if out is None and values == "float64":
        making = partial(make_table, problem, threads=threads, progress=progress)
        return ensure_table(problem, making, asked=True)
    folder = default_folder(problem, values) if out is None else Path(out)
    make_table(problem, folder, values=values, threads=threads, progress=progress)
    return Table(folder)


def problem_of(
    board: str | Rules | Problem,
    *,
    objective: str | Objective = "score",
    p4: float | None = None,
    gamma: float = 1.0,
) -> Problem:
    """Return a problem as it is, or the one that a board and an objective make."""
    if isinstance(board, Problem):
        return board
    return Problem.of(board, p4=p4, objective=objective, gamma=gamma)


# -- find and open -------------------------------------------------------------------------------


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

    The folder is a path, or a name from `lab2048 table list`. A board is a `Rules` or a name such
    as `3x3`; only then do the other arguments say which table it is.

    >>> solve("2x2").close()
    >>> with open_table("2x2") as table:
    ...     round(table.value("2 2 / . ."), 3)
    67.696
    """
    if isinstance(source, Path) or (isinstance(source, str) and os.path.exists(source)):
        return Table(Path(source), cache_bytes=cache_bytes)
    if isinstance(source, str) and (tables_folder() / source / MANIFEST).exists():
        return Table(tables_folder() / source, cache_bytes=cache_bytes)
    try:
        problem = problem_of(source, p4=p4, objective=objective, gamma=gamma)
    except ValueError:
        if isinstance(source, str) and ("/" in source or os.sep in source):
            raise TableError(f"there is no table in {source}") from None
        raise
    folder = find_table(problem)
    if folder is None:
        raise TableError(_missing(problem))
    return Table(folder, cache_bytes=cache_bytes)


def _missing(problem: Problem) -> str:
    """What is said when a table is not there."""
    return f"there is no table {problem.name}; make it with: {command_for(problem)}"


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


# -- the table that answers for a problem --------------------------------------------------------


def is_made_when_needed(problem: Problem) -> bool:
    """Whether the board is small enough for its table to be made without being asked for."""
    return problem.rules.cells <= ON_THE_FLY


def table_folder(name: str) -> Path:
    """The folder of a table, by its name in `lab2048 table list`, its board, or its path."""
    for folder in (tables_folder() / name, tables_folder() / f"{name}-score", Path(name)):
        if folder.is_dir() and folder != tables_folder():
            return folder
    raise TableError(f"there is no table {name}; lab2048 table list shows what there is")


def table_for(problem: Problem, name: str | None = None, make: Make | None = None) -> Table | None:
    """The table that answers for a problem: the one named, else the one in the data folder.

    That of a small board is made if it is missing. None if the board has to be solved first.
    """
    if name is not None:
        found = Table(table_folder(name))
        if found.problem != problem:
            found.close()
            raise ValueError(
                f"the table {name} is of {found.problem.name}, what is asked for is {problem.name}"
            )
        return found
    if find_table(problem) is None and not is_made_when_needed(problem):
        return None
    return ensure_table(problem, make)


def require_table(problem: Problem, name: str | None = None, make: Make | None = None) -> Table:
    """The table that answers for a problem, as `table_for`; a `TableError` if it is missing.

    The board's own size is the name of its usual table.
    """
    found = table_for(problem, None if name == problem.rules.name else name, make)
    if found is None:
        raise TableError(_missing(problem))
    return found


def ensure_table(problem: Problem, make: Make | None = None, *, asked: bool = False) -> Table:
    """The table of a problem in the data folder; that of a small board is made if it is missing.

    A larger one is made only if it was `asked` for. If the data folder cannot be written to, the
    table of a small board is made in a temporary one.
    """
    small = is_made_when_needed(problem)
    if find_table(problem) is not None or not (small or asked):
        return open_table(problem)
    if make is None:
        from lab2048.solver.job import make_table

        make = partial(make_table, problem)
    folder = default_folder(problem)
    try:
        make(folder)
    except OSError as error:
        if not small:
            raise
        why = os.strerror(error.errno) if error.errno else error
        say(f"cannot keep the table {problem.name} in {tables_folder()}: {why}")
        folder = temporary_folder("tables") / problem.name
        make(folder)
    return Table(folder)


# -- all of them ---------------------------------------------------------------------------------


class TableList(Tabular, Sequence[tuple[Path, "dict[str, Any] | str"]]):
    """Tables in the data folder: the folder of each, and its manifest or what is wrong with it."""

    def __init__(self, found: Sequence[tuple[Path, dict[str, Any] | str]]) -> None:
        self._found = found

    def __len__(self) -> int:
        return len(self._found)

    def __getitem__(self, which: Any) -> Any:
        return self._found[which]

    def as_json(self) -> list[dict[str, Any]]:
        """Return what `lab2048 table list --json` prints."""
        return [
            description(folder, manifest)
            if isinstance(manifest, dict)
            else {"table": str(folder), "keep": manifest}
            for folder, manifest in self
        ]

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per table."""
        names = ("board", "p4", "objective", "gamma", "states", "keep", "table_bytes")
        return [
            {"table": Path(facts["table"]).name, **{name: facts.get(name) for name in names}}
            for facts in self.as_json()
        ]


def list_tables() -> TableList:
    """Return every table in the data folder, with its manifest or what is wrong with it.

    Whatever else is there does not get in the way. Names that cannot be printed are left out.

    >>> solve("2x2").close()
    >>> "2x2-score" in [row["table"] for row in list_tables().rows()]
    True
    """
    found: list[tuple[Path, dict[str, Any] | str]] = []
    folders = sorted(tables_folder().iterdir()) if tables_folder().is_dir() else []
    for folder in folders:
        if not folder.name.isprintable() or not os.path.isdir(folder):
            continue
        try:
            manifest = load_manifest(folder)
        except OtherTableError:
            found.append((folder, "unknown objective"))
            continue
        except TableError:
            found.append((folder, "damaged"))
            continue
        if manifest is not None:
            older = manifest.get("format") != FORMAT
            found.append((folder, f"format {short(manifest.get('format'))}" if older else manifest))
        elif os.path.exists(folder / PROGRESS):
            found.append((folder, "unfinished"))
    return TableList(found)


def remove_table(name: Path | str) -> int:
    """Remove a table by its name, its board or its folder, finished or not.

    Return the number of bytes freed.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     solve("2x2", out=Path(folder) / "mine").close()
    ...     remove_table(Path(folder) / "mine") > 1000
    True
    """
    folder = (name if isinstance(name, Path) else table_folder(name)).resolve()
    if not any(os.path.lexists(folder / name) for name in (MANIFEST, PROGRESS)):
        raise TableError(f"there is no table in {folder}")
    if others := other_files(folder):
        raise TableError(f"{folder} also holds {others[0]}, so it is not removed")
    with locked(folder / LOCK, f"the table in {folder}", TableError):
        size = sum(child.lstat().st_size for child in folder.iterdir())
        shutil.rmtree(folder)
    return size
