"""The data folder of lab2048, messages on stderr, atomic writes and locks."""

from __future__ import annotations

import atexit
import errno
import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from filelock import FileLock

PAUSE, QUIET = 0.05, 1.0
"""Seconds between attempts to take a lock, and before saying that another process holds it."""


def home() -> Path:
    """The data folder: `LAB2048_HOME`, or `lab2048` in the platform's user data folder."""
    if chosen := os.environ.get("LAB2048_HOME"):
        try:
            return Path(chosen).expanduser().absolute()
        except RuntimeError:
            raise ValueError(f"LAB2048_HOME is {chosen!r}, and there is no such user") from None
    import platformdirs

    return platformdirs.user_data_path("lab2048", appauthor=False)


def say(text: str) -> None:
    """Print a line on stderr, if there is one."""
    if sys.stderr is not None:
        print(f"lab2048: {text}", file=sys.stderr)


_showing: list[Callable[[str], object]] = []
"""Functions that show transient lines: the command line's console, on a terminal."""


def say_briefly(text: str) -> None:
    """Show a line until the next one replaces it, if `shown_briefly`; an empty one clears it."""
    for show in _showing[-1:]:
        show(text)


@contextmanager
def shown_briefly(show: Callable[[str], object]) -> Iterator[None]:
    """Use `show` for the lines of `say_briefly`."""
    _showing.append(show)
    try:
        yield
    finally:
        _showing.remove(show)


@cache
def temporary_folder(name: str) -> Path:
    """A private temporary folder, removed when the process ends; one per name."""
    folder = Path(tempfile.mkdtemp(prefix=f"lab2048-{name}-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Add the file's name to disk errors that lack it, as those of writes do."""
    try:
        yield
    except OSError as error:
        if error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path to write to, beside `path`, which replaces it once all is written and on the disk.

    Readers find the old file or the new one, even after a crash. The library for this,
    atomicwrites, is no longer maintained.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}.part")
    try:
        with naming(path):
            yield temporary
            with temporary.open("rb+") as file:  # Windows syncs nothing that is open to read
                os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename == str(temporary):
            error.filename = str(path)
        raise


def write_atomically(path: Path, text: str) -> None:
    """Write `text` to `path`, all of it or nothing."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


class ExistingFilesError(FileExistsError):
    """Files exist already and would be replaced."""

    def __init__(self, paths: Sequence[Path]) -> None:
        super().__init__(errno.EEXIST, "exists already; `force=True` replaces it", str(paths[0]))
        self.paths = paths


def check_target(path: Path, *, files: Sequence[str] = (), force: bool = False) -> None:
    """Raise a `ValueError` unless a file can be written, before hours of work are done for it.

    With `files` the path is a folder, and these are the names (or patterns) of what is put there.
    If files exist already, raise an `ExistingFilesError` unless `force` is set.
    """
    folder = bool(files)
    if path.exists() and path.is_dir() != folder:
        raise ValueError(f"{path} is {'a file' if folder else 'a folder'}")
    there = next(each for each in (path.absolute(), *path.absolute().parents) if each.exists())
    if there != path.absolute() and not there.is_dir():
        raise ValueError(f"{path} cannot be made: {there} is a file")
    where = there if there.is_dir() else there.parent  # an old file is replaced, not written to
    if not os.access(where, os.W_OK):
        raise ValueError(f"{where} cannot be written to")
    there_already = [found for name in files for found in sorted(path.glob(name))]
    if not folder and path.exists():
        there_already = [path]
    if there_already and not force:
        raise ExistingFilesError(there_already)


@contextmanager
def locked(
    path: Path,
    what: str,
    error: type[ValueError] = ValueError,
    wait: bool = False,
    tell: Callable[[str], None] = say,
) -> Iterator[None]:
    """Hold a lock file; `what` names in messages the thing that it protects.

    While another process holds it, raise an error of type `error` or, with `wait`, wait after a
    message through `tell`. The lock ends with the process at the latest.
    """
    from filelock import FileLock

    lock = FileLock(
        path,
        poll_interval=PAUSE,
        thread_local=False,
        fallback_to_soft=False,  # a soft lock, a file that merely exists, would survive a kill
        on_acquired=_sign,
    )
    if not _take(lock, path, QUIET if wait else 0):
        busy = f"{what} is in use by process {_owner(path)}"
        if not wait:
            raise error(f"{busy}; try again when it has finished")
        tell(f"{busy}; waiting for it to finish")
        _take(lock, path, -1)
    try:
        yield
    finally:
        with suppress(OSError):  # Windows cannot remove an open file: filelock does so later
            path.unlink(missing_ok=True)
        lock.release()


def _take(lock: FileLock, path: Path, timeout: float) -> bool:
    """Acquire a lock within `timeout` seconds (negative: no limit); False if it stays taken."""
    from filelock import Timeout

    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        with naming(path):
            try:
                lock.acquire(timeout)
            except Timeout:
                return False
            except FileNotFoundError:  # its last holder has removed the folder
                continue
            return True


def _sign(handle: int) -> None:
    """Write the id of this process into a lock file."""
    os.ftruncate(handle, 0)
    os.write(handle, f"{os.getpid()}\n".encode())


def _owner(path: Path) -> str:
    """The id of the process that holds a lock, or "unknown"."""
    try:
        return path.read_text("ascii", "replace")[:32].strip() or "unknown"
    except OSError:  # it has just gone, or it is locked on Windows, which forbids reading
        return "unknown"
