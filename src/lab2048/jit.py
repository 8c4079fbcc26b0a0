"""How kernels are compiled: ahead of their first call, and kept on disk.

Numba's own cache notices a change in the file of a kernel but not in a helper of another file,
and would run old machine code. So the cache folder is named after a hash of the package's source.
Nor does it notice a damaged file: a list of checksums, the folder's *seal*, tells which ones to
throw away.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import shutil
import sys
import tempfile
import threading
import zlib
from collections.abc import Callable
from contextlib import suppress
from functools import cache, wraps
from pathlib import Path
from types import FunctionType
from typing import Any, ParamSpec, TypeVar, cast

import numba
import numpy as np
from numba.core import config, event

from lab2048.home import home, write_atomically

P = ParamSpec("P")
T = TypeVar("T")

U = np.uint64
"""Every constant of a board kernel is a `U(...)`: an untyped int would turn it into int64."""

IN_PYTHON = bool(config.DISABLE_JIT)
"""Whether kernels run as plain Python (NUMBA_DISABLE_JIT=1)."""

_KEPT_FOLDERS = 3
_one_at_a_time = threading.RLock()


def kernel(signature: Any, *, lean: bool = False) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Compile a function for this one signature, from the cache where it is there.

    A `lean` kernel makes no arrays and so does not count who refers to one, which takes two atomic
    operations for every array that it hands on.
    """
    return _compiled(signature, _nrt=False) if lean else _compiled(signature)


def inline(signature: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """The same for a building block: kernels that call it take its code in.

    A kernel that passes rows and columns as constants so gets code for just that board.
    """
    return _compiled(signature, inline="always")


def fragment(function: Callable[P, T]) -> Callable[P, T]:
    """The same for code that is only ever part of kernels: it is not compiled alone."""
    if IN_PYTHON:
        return _in_python(function)
    return cast(Callable[P, T], numba.njit(inline="always")(function))


class Kernels:
    """Functions of modules compiled with some of their global names bound to constants.

    Unlike closures, such kernels may call themselves, and those that were added before them, by the
    names of the functions; and they are still found in the cache: `name`, which tells apart what
    the constants make different, is part of their names there.
    """

    def __init__(self, name: str, lean: bool = False, **constants: object) -> None:
        self.name = name
        self.lean = lean
        self._bound: dict[str, Any] = dict(constants)

    def more(self, name: str, lean: bool = False, **constants: object) -> Kernels:
        """A copy, to add kernels to that go by the same names as others."""
        return Kernels(f"{self.name}.{name}", lean, **{**self._bound, **constants})

    def __getitem__(self, name: str) -> Any:
        """A kernel that was added, by its name."""
        return self._bound[name]

    def add(
        self, function: Callable[P, T], signature: Any, name: str = "", **constants: object
    ) -> Callable[P, T]:
        """Compile a function, and let those that are added after it call it, by a name."""
        name = name or function.__name__
        names = {**function.__globals__, **self._bound, **constants}
        names.pop(name, None)  # it is not known yet: so Numba sees that a kernel calls itself
        copy = FunctionType(function.__code__, names, name)
        copy.__qualname__ = f"{self.name}.{name}"
        copy.__doc__ = function.__doc__
        made = kernel(signature, lean=self.lean)(copy)
        names[name] = self._bound[name] = made
        return cast(Callable[P, T], made)


def _compiled(signature: Any, **options: Any) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """A decorator that compiles with Numba, or does not where that is switched off."""
    # no error on a division by zero: a loop that looks for one is not turned into vector code
    options |= {"nogil": True, "error_model": "numpy"}

    def compiled(function: Callable[P, T]) -> Callable[P, T]:
        if IN_PYTHON:
            return _in_python(function)
        # Numba reads the setting when a function is decorated; others' kernels keep theirs.
        with _one_at_a_time:
            before, config.CACHE_DIR = config.CACHE_DIR, str(cache_folder())
            try:
                dispatcher = numba.njit(signature, cache=True, **options)(function)
            except OSError as error:
                _say_not_kept(error)
                dispatcher = numba.njit(signature, **options)(function)
            finally:
                config.CACHE_DIR = before
            if dispatcher.stats.cache_misses:
                _seal(cache_folder())
        return cast(Callable[P, T], dispatcher)

    return compiled


def _in_python(function: Callable[P, T]) -> Callable[P, T]:
    """The function as it is, for NUMBA_DISABLE_JIT=1; 64-bit words may wrap, as in a kernel."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        with np.errstate(over="ignore"):
            return function(*args, **kwargs)

    return call


@cache
def source_digest() -> str:
    """What tells this very source, and the libraries that compile it, from all others."""
    package = Path(__file__).parent
    digest = hashlib.sha256(f"{numba.__version__} {np.__version__}".encode())
    for path in sorted(package.rglob("*.py")):
        digest.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


@cache
def cache_folder() -> Path:
    """The folder of the kernels of this very source; older ones are cleared away."""
    folder = home() / "kernels" / source_digest()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
        folder.touch()
    except OSError as error:
        _say_not_kept(error)
        temporary = Path(tempfile.mkdtemp(prefix="lab2048-kernels-"))
        atexit.register(shutil.rmtree, temporary, ignore_errors=True)
        return temporary
    _remove_damaged(folder)
    with suppress(OSError):  # another process may be clearing away the same ones
        others = [path for path in folder.parent.iterdir() if path != folder]
        others.sort(key=lambda path: path.stat().st_mtime, reverse=True)
        for old in others[_KEPT_FOLDERS - 1 :]:
            shutil.rmtree(old, ignore_errors=True)
    return folder


NOTE = ".compiled"


def note(name: str) -> None:
    """Note that a set of kernels is compiled, for those who ask how long it will take."""
    if not IN_PYTHON:
        with suppress(OSError):
            (cache_folder() / f"{name}{NOTE}").touch()


def noted() -> set[str]:
    """The sets of kernels that are in the cache."""
    return {path.stem for path in cache_folder().glob(f"*{NOTE}")}


_said: set[str] = set()


def _say_once(text: str) -> None:
    """A line on stderr, if there is one, that is not repeated."""
    if sys.stderr is not None and text not in _said:
        _said.add(text)
        print(f"lab2048: {text}", file=sys.stderr)


def _say_not_kept(error: OSError) -> None:
    """Say that later runs will have to compile again, and why."""
    _say_once(f"kernels cannot be kept in {home()}: {error.strerror}")


def _cached_files(folder: Path) -> list[Path]:
    """Numba's own files in the folder: indexes and machine code."""
    return sorted(folder.rglob("*.nb[ci]"))


def _checksums(folder: Path) -> dict[str, int]:
    """A checksum of every cached file."""
    files = _cached_files(folder)
    return {path.relative_to(folder).as_posix(): zlib.crc32(path.read_bytes()) for path in files}


def _seal(folder: Path) -> None:
    """Write down what the cached files are; without a seal the next run throws them away."""
    with suppress(OSError):
        write_atomically(folder / "seal.json", json.dumps(_checksums(folder)))


def _remove_damaged(folder: Path) -> None:
    """Throw away the cached files that are not what they were; they are compiled anew."""
    try:
        sealed = json.loads((folder / "seal.json").read_text("utf-8"))
        # a file that is not listed was written by a process that has not sealed it yet
        sums = _checksums(folder).items()
        damaged = [folder / name for name, found in sums if sealed.get(name, found) != found]
    except (OSError, ValueError, AttributeError):  # no seal, so no telling
        damaged = _cached_files(folder)
    for path in damaged:
        path.unlink(missing_ok=True)


class _Announcer(event.Listener):  # type: ignore[misc]  # numba is Any here
    """Says on stderr that kernels are being compiled, and on a terminal which one."""

    def __init__(self) -> None:
        self.count = 0
        self.depth = 0  # kernels that call kernels are compiled inside one another

    def on_start(self, event: Any) -> None:
        name = _our_kernel(event)
        if name is None:
            return
        _say_once("compiling kernels; later runs find them ready")
        self.count += 1
        self.depth += 1
        if _on_terminal():
            print(f"\r\x1b[K  {self.count}: {name}", end="", file=sys.stderr, flush=True)

    def on_end(self, event: Any) -> None:
        if _our_kernel(event) is None:
            return
        self.depth -= 1
        if self.depth == 0 and _on_terminal():
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _on_terminal() -> bool:
    """Whether somebody sees what is written on stderr."""
    return sys.stderr is not None and sys.stderr.isatty()


def _our_kernel(event: Any) -> str | None:
    """The name of the kernel that an event is about, if it is one of this package."""
    function = event.data["dispatcher"].py_func
    return function.__name__ if function.__module__.startswith("lab2048.") else None


_announcer = _Announcer()
event.register("numba:compile", _announcer)


def compiling() -> str:
    """What is being compiled just now, if anything is."""
    return f"compiling kernels, {_announcer.count} so far" if _announcer.depth else ""
