"""Choose the table for a board; find, open, make, list and remove tables.

Nothing else in lab2048 makes this choice. The table of a small board (`ON_THE_FLY`) is made on
demand, that of a larger one only on request.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from lab2048.game import Rules
from lab2048.game.notation import short
from lab2048.home import locked, say, temporary_folder
from lab2048.solver.existing_table import remove_unusable
from lab2048.solver.manifest import description, load_manifest
from lab2048.solver.objective import Objective, Score, discount_text
from lab2048.solver.problem import MAX_CELLS, ON_THE_FLY, Problem, problem_of
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
    expanded,
    other_files,
    tables_folder,
)
from lab2048.tabular import Tabular

Make = Callable[[Path], object]
"""Solves a problem into a folder."""
TableLike = Table | Path | str | bool | None
"""The ways to choose a table (see `table_answering`)."""
FACTS = ("board", "p4", "objective", "gamma")
"""The fields that identify a problem (`Problem.as_json`)."""


def solve(  # noqa: PLR0913 -- all but the first are keywords
    board: str | Rules | Problem,
    *,
    objective: str | Objective = "score",
    p4: float | None = None,
    gamma: float = 1.0,
    values: str = "float64",
    out: Path | str | None = None,
    replace: bool = False,
    force: bool = False,
    threads: int | None = None,
    progress: Callable[[Any], object] = lambda step: None,
    cluster: Any = None,
) -> Table:
    """Return the table of a board; solve the board first if there is none.

    Objectives are `score`, `worst-case`, `reach:TILE` and those that were registered; `gamma`
    discounts the score per move. The table is made in the data folder unless `out` names a folder
    for it, with values of float64 or float32. The same call resumes an interrupted solve. An
    existing table that is damaged or of another format is a `TableError`; `replace` removes it
    instead. A disk that seems too small is a `ValueError`; `force` begins nevertheless. `progress`
    is called with a `Step` (`lab2048.solver.executor`) as layers are done. `cluster` is the address
    of a Ray cluster, whose machines must all see the table's folder, or an open connection (see
    `connect`). A table is a context manager.

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
        force = force or is_made_when_needed(problem)  # as in `_made`
        making = partial(
            make_table, problem, threads=threads, progress=progress, cluster=cluster, force=force
        )
        return ensure_table(problem, making, asked=True)
    folder = default_folder(problem, values) if out is None else expanded(out)
    make_table(
        problem, folder, values=values, threads=threads, progress=progress, cluster=cluster,
        force=force,
    )  # fmt: skip
    return Table(folder)


# -- find and open -------------------------------------------------------------------------------


def find_table(problem: Problem) -> Path | None:
    """The folder of the finished table of a problem in the data folder, if there is one."""
    for folder in _folders_of(problem):
        manifest = load_manifest(folder)
        if (
            manifest is not None
            and manifest.get("format") == FORMAT
            and manifest.get("keep") == "table"
            and all(manifest.get(name) == value for name, value in problem.as_json().items())
        ):
            return folder
    return None


def _folders_of(problem: Problem) -> list[Path]:
    """The default folders of a problem's table, float64 before float32."""
    return [default_folder(problem, kind) for kind in KINDS]


def table_folder(name: str, problem: Problem | None = None) -> Path:
    """The folder that the name of a table stands for; `TableError` if there is none.

    A name may be one of these; the first that holds a table is used:

    1. the name of a table in the data folder, as in `lab2048 table list`;
    2. a board, such as `3x3`, whose table is in the data folder: that of `problem` if it is on
       this board, else that for the score; with values of float64, else of float32;
    3. the path of a folder.

    If none holds a table, it is the first existing folder: opening it reports what is missing.
    """
    found = _look_up(name, problem)
    if found is None:
        raise TableError(f"there is no table {name}; lab2048 table list shows what there is")
    return found


def _look_up(name: str, problem: Problem | None) -> Path | None:
    """What `table_folder` returns; None if there is no such folder."""
    places = [tables_folder() / name] if name == Path(name).name else []
    if problem is None or problem.rules.name != name:
        problem = Problem.of(name) if _is_board(name) else None
    if problem is not None:
        places += _folders_of(problem)
    there = [folder for folder in (*places, expanded(name)) if folder.is_dir()]
    return next(filter(_holds_table, there), there[0] if there else None)


def _is_board(name: str) -> bool:
    """Whether a name is that of a board that can be solved."""
    try:
        return Rules.parse(name).cells <= MAX_CELLS
    except ValueError:
        return False


def _holds_table(folder: Path) -> bool:
    """Whether there is a table in a folder, finished or not."""
    return any(os.path.lexists(folder / name) for name in (MANIFEST, PROGRESS))


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
    as `3x3`; only then do the other arguments select its table. A name is looked up in the data
    folder before it is taken for the path of a folder.

    >>> solve("2x2").close()
    >>> with open_table("2x2") as table:
    ...     round(table.value("2 2 / . ."), 3)
    67.696
    """
    if isinstance(source, Path):
        return Table(source, cache_bytes=cache_bytes)
    if isinstance(source, str) and not _is_board(source):
        return Table(table_folder(source), cache_bytes=cache_bytes)
    problem = problem_of(source, p4=p4, objective=objective, gamma=gamma)
    folder = _look_up(source, problem) if isinstance(source, str) else None
    if folder is None or folder in _folders_of(problem):
        folder = find_table(problem)
    if folder is None:
        raise TableError(_missing(problem))
    return Table(folder, cache_bytes=cache_bytes)


def _missing(problem: Problem) -> str:
    """The error message for a missing table."""
    return f"there is no table {problem.name}; make it with: {command_for(problem)}"


def command_for(problem: Problem) -> str:
    """The command that solves a problem."""
    parts = ["lab2048 solve", problem.rules.name]
    if problem.goal != Score.name:
        parts.append(f"--objective {problem.goal}")
    if problem.rules.p4 != Rules(2, 2).p4:
        parts.append(f"--p4 {problem.rules.p4!r}")
    return " ".join(parts + discount_text(problem.gamma, "--gamma {!r}"))


# -- the table that answers for a problem --------------------------------------------------------


def is_made_when_needed(problem: Problem) -> bool:
    """Whether the board is small enough for its table to be made on demand."""
    return problem.rules.cells <= ON_THE_FLY


@contextmanager
def table_answering(
    problem: Problem | Rules,
    table: TableLike = True,
    make: Make | None = None,
    *,
    agree: Sequence[str] = FACTS,
) -> Iterator[Table | None]:
    """The table chosen for a problem, or for the score on a board; None if there is none.

    A `Table` is used as given and left open; one that is opened here is closed on leaving. A string
    or path is a name (`table_folder`), True means the table of the problem if it is solved or
    small, False and None mean no table. A given or named table must agree with the problem in the
    fields `agree`; otherwise it is an `OtherTableError`.
    """
    if isinstance(table, Table):
        check_answers(table, problem_of(problem), agree)
        yield table
    elif table is None or table is False:
        yield None
    else:
        found = table_for(problem, None if table is True else str(table), make, agree=agree)
        with nullcontext() if found is None else found:
            yield found


@contextmanager
def require_table(
    problem: Problem, table: TableLike = True, make: Make | None = None
) -> Iterator[Table]:
    """The table chosen for a problem, as in `table_answering`; `TableError` if there is none."""
    with table_answering(problem, table, make) as found:
        if found is None:
            raise TableError(_missing(problem))
        yield found


def table_for(
    problem: Problem | Rules,
    name: str | None = None,
    make: Make | None = None,
    *,
    agree: Sequence[str] = FACTS,
) -> Table | None:
    """Open the table for a problem: the one named, else the one in the data folder.

    That of a small board is made if it is missing. None if no table is named, and the board has to
    be solved first or cannot be solved.
    """
    if isinstance(problem, Rules):
        if problem.cells > MAX_CELLS and name is None:
            return None
        if problem.cells > MAX_CELLS:
            folder = table_folder(str(name))
            raise OtherTableError(f"{folder} is not of {problem.name}, which cannot be solved")
        problem = Problem.of(problem)
    if name is not None and (found := _named(name, problem, agree)) is not None:
        return found
    if is_made_when_needed(problem) or find_table(problem) is not None:
        return ensure_table(problem, make)
    if name is not None:
        raise TableError(_missing(problem))
    return None


def _named(name: str, problem: Problem, agree: Sequence[str]) -> Table | None:
    """Open the table with a name; None if the name only stands for the problem's usual table."""
    usual = name == problem.rules.name
    if usual and _look_up(name, problem) in (None, *_folders_of(problem)):
        return None
    found = Table(table_folder(name, problem))
    try:
        check_answers(found, problem, agree)
    except TableError:
        found.close()
        raise
    return found


def check_answers(table: Table, problem: Problem, agree: Sequence[str] = FACTS) -> None:
    """Raise `OtherTableError` unless a table agrees with a problem in the fields `agree`."""
    known, wanted = table.problem.as_json(), problem.as_json()
    if any(known[name] != wanted[name] for name in agree):
        raise OtherTableError(
            f"the table in {table.path} is of {table.problem.name}, what is asked for is "
            f"{problem.name}"
        )


def ensure_table(problem: Problem, make: Make | None = None, *, asked: bool = False) -> Table:
    """The table of a problem in the data folder; that of a small board is made if it is missing.

    A larger one is made only if it was `asked` for. The table of a small board is made in a
    temporary folder if the data folder cannot be written to or, unless it was asked for, if the
    existing table is damaged or of another format. An existing table is never removed.
    """
    small = is_made_when_needed(problem)
    try:
        if find_table(problem) is not None or not (small or asked):
            return open_table(problem)
        return _made(problem, default_folder(problem), make)
    except OSError as error:
        if not small:
            raise
        why = os.strerror(error.errno) if error.errno else error
        say(f"cannot keep the table {problem.name} in {tables_folder()}: {why}")
    except TableError as error:
        if asked or not small:
            raise
        say(f"{error}; until then {problem.name} is solved in a temporary folder")
    return _made(problem, temporary_folder("tables") / problem.name, make)


def _made(problem: Problem, folder: Path, make: Make | None) -> Table:
    """Make the table in a folder and open it."""
    if make is None:
        from lab2048.solver.job import make_table

        # no check for room: if a small table does not fit, making it tells
        make = partial(make_table, problem, force=is_made_when_needed(problem))
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


def table_names() -> list[str]:
    """The names of all finished tables and summaries in the data folder."""
    return [path.parent.name for path in tables_folder().glob(f"*/{MANIFEST}")]


def list_tables() -> TableList:
    """Return every table in the data folder, with its manifest or what is wrong with it.

    Other files and folders are ignored. Names that cannot be printed are left out.

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
    if not _holds_table(folder):
        raise TableError(f"there is no table in {folder}")
    if others := other_files(folder):
        raise TableError(f"{folder} also holds {others[0]}, so it is not removed")
    with locked(folder / LOCK, f"the table in {folder}", TableError):
        files = [path for path in folder.rglob("*") if not path.is_dir() and path.name != LOCK]
        size = sum(path.lstat().st_size for path in files)
        shutil.rmtree(folder)
    return size
