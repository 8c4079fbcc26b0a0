"""Compile kernels ahead of their first call, and cache them on disk.

Numba's own cache notices a change in the file of a kernel but not in a helper in another file,
and would run stale machine code. So the cache folder is named after a hash of all source that
kernels are made of. Nor does Numba notice a damaged file: a list of checksums, the folder's *seal*,
tells which files are as they were written. All others are deleted and compiled again.

Cached files are executed as they are: whoever can write them can run any code as the user who loads
them. So the folder is closed to other users. A folder that was open to them is emptied first, and
one that belongs to another user is not used.
"""

from __future__ import annotations

import errno
import glob
import hashlib
import inspect
import json
import os
import re
import shutil
import tempfile
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache, wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import numba
import numpy as np
from numba.core import config, event, typeinfer
from numba.core.errors import NumbaError
from numba.extending import is_jitted

from lab2048.engine.closures import (
    CONSTANTS,
    KernelCache,
    KernelError,
    all_kept,
    given,
    identity_of,
    name_of,
    not_usable,
)
from lab2048.home import home, locked, say, say_briefly, temporary_folder, write_atomically

P = ParamSpec("P")
T = TypeVar("T")

U = np.uint64
"""Every constant of a board kernel is a `U(...)`: an untyped int would turn it into int64."""

IN_PYTHON = bool(config.DISABLE_JIT)
"""Whether kernels run as plain Python (NUMBA_DISABLE_JIT=1)."""

PACKAGES_WITH_KERNELS = ("game", "engine", "players", "solver", "measure", "data", "learn")
"""Packages with kernels, or constants of kernels; a change elsewhere leaves the cache valid."""
_KERNEL = "lab2048_kernel"
"""The attribute that marks a kernel in plain Python."""
_KEPT_FOLDERS = 3
_HASH = re.compile(r"[0-9a-f]{16}")
"""The names of folders of kernels (`kernel_digest`)."""
_one_at_a_time = threading.RLock()


def kernel(
    signature: Any, *, lean: bool = False, keep: bool = True
) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Compile a function for this one signature, or load it from the cache.

    A function defined inside another may close over constants, which it is specialised for, and
    over other kernels, which it calls. It may also call itself.

    A `lean` kernel allocates no arrays and so skips reference counting, which takes two atomic
    operations for every array passed on. With `keep=False` the kernel is not cached, nor is any
    that closes over it: use this for code from outside, since what it calls may change unnoticed.
    """
    return _compiled(signature, keep, **({"_nrt": False} if lean else {}))


def inline(signature: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Compile a building block like a `kernel`, to be inlined into the kernels that call it.

    So a kernel that passes rows and columns as constants gets code for that board alone.
    """
    return _compiled(signature, inline="always")


def fragment(function: Callable[P, T]) -> Callable[P, T]:
    """Mark code to be inlined into kernels, like `inline`, but never compiled on its own."""
    _check_closure(function)
    if IN_PYTHON:
        return _in_python(function)
    return cast(Callable[P, T], numba.njit(inline="always")(function))


def _compiled(
    signature: Any, keep: bool = True, **options: Any
) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """A decorator that compiles with Numba, unless NUMBA_DISABLE_JIT is set."""
    # no error on a division by zero: a loop that checks for one is not vectorised
    options |= {"nogil": True, "error_model": "numpy"}

    def compiled(function: Callable[P, T]) -> Callable[P, T]:
        if keep:  # code from outside is left to Numba to check
            _check_closure(function)
        if IN_PYTHON:
            return _in_python(function)
        if not keep or not all_kept(function):
            return cast(Callable[P, T], _compile(function, signature, options))
        identity = identity_of(function)
        if function.__closure__:
            # The symbol in machine code is made from this name. It has to be unique: kernels
            # compiled by different processes may meet in a kernel that calls both.
            scope = function.__qualname__.rpartition(".")[0]
            function.__qualname__ = f"{scope}.{identity[:16]}.{function.__name__}"
        # Numba reads the setting when it makes a cache; kernels of other packages keep theirs.
        with _one_at_a_time, _alone(function):
            before, config.CACHE_DIR = config.CACHE_DIR, str(cache_folder())
            try:
                dispatcher = _compile(function, signature, options, KernelCache(function, identity))
                if dispatcher.stats.cache_misses:
                    _seal(cache_folder(), dispatcher)
            except KernelError:
                raise
            except Exception as error:
                # the disk is full, or a file was damaged after the folder was checked
                if isinstance(error, OSError):
                    _say_not_kept(error)
                dispatcher = _compile(function, signature, options)
            finally:
                config.CACHE_DIR = before
        return cast(Callable[P, T], dispatcher)

    return compiled


def _check_closure(function: Callable[..., Any]) -> None:
    """Raise a `KernelError` if a function closes over anything but constants and kernels."""
    for name, value in given(function):
        if not (isinstance(value, CONSTANTS) or _is_kernel(value)):
            raise not_usable(function, name, value)


def _is_kernel(value: Any) -> bool:
    """Whether something is a kernel, compiled or in plain Python."""
    return is_jitted(value) or (inspect.isfunction(value) and _KERNEL in vars(value))


def _compile(
    function: Callable[..., Any], signature: Any, options: dict[str, Any], cache: Any = None
) -> Any:
    """Compile a function for one signature, which also checks its calls."""
    dispatcher = numba.njit(**options)(function)
    if cache is not None:
        dispatcher._cache = cache
    try:
        with typeinfer.register_dispatcher(dispatcher):  # so that it may call itself
            dispatcher.compile(signature)
    except NumbaError as error:
        raise KernelError(f"{name_of(function)} does not compile: {error}") from error
    dispatcher.disable_compile()
    return dispatcher


@contextmanager
def _alone(function: Callable[..., Any]) -> Iterator[None]:
    """Keep other processes from compiling or loading the same function, if it can be locked.

    Numba numbers the files of a function's variants in an index. If two processes wrote it at the
    same time, a variant could be found under the number of another.
    """
    with ExitStack() as stack:
        with suppress(OSError):
            lock = locked(lock_of(function), "kernels", wait=True, tell=_say_waiting)
            stack.enter_context(lock)
        yield


def lock_of(function: Callable[..., Any]) -> Path:
    """The lock file of a function."""
    name = f"{function.__module__}.{function.__qualname__}"
    return cache_folder() / f"{zlib.crc32(name.encode()):08x}.lock"


def _say_waiting(text: str) -> None:
    """Say once that another process is compiling the same kernels."""
    _say_once("another process is compiling the same kernels; waiting for it")


def _in_python(function: Callable[P, T]) -> Callable[P, T]:
    """The plain function, for NUMBA_DISABLE_JIT=1; 64-bit words wrap silently, as in a kernel."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        with np.errstate(over="ignore"):
            return function(*args, **kwargs)

    vars(call)[_KERNEL] = True
    return call


@cache
def source_digest() -> str:
    """A hash of the whole package's source and of the versions of Numba and NumPy."""
    return _digest_of("**/*.py")


@cache
def kernel_digest() -> str:
    """A hash of all source that kernels are made of and of the versions of Numba and NumPy."""
    return _digest_of(*(f"{package}/**/*.py" for package in PACKAGES_WITH_KERNELS))


def _digest_of(*patterns: str) -> str:
    """A hash of the matching source files and of the versions of Numba and NumPy."""
    package = Path(__file__).parent.parent
    digest = hashlib.sha256(f"{numba.__version__} {np.__version__}".encode())
    for path in sorted(path for pattern in patterns for path in package.glob(pattern)):
        digest.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


@cache
def cache_folder() -> Path:
    """The cache folder of the present source; all but the newest of the others are removed."""
    folder = home() / "kernels" / kernel_digest()
    try:
        folder.parent.parent.mkdir(parents=True, exist_ok=True)
        for each in (folder.parent, folder):
            _make_private(each)
        tempfile.TemporaryFile(dir=folder).close()
        folder.touch()
    except OSError as error:
        _say_not_kept(error)
        return _copy(folder)
    _remove_damaged(folder)
    with suppress(OSError):  # another process may be removing the same folders
        others = [path for path in _folders_of_kernels(folder.parent) if path != folder]
        others.sort(key=lambda path: path.stat().st_mtime, reverse=True)
        for old in others[_KEPT_FOLDERS - 1 :]:
            shutil.rmtree(old, ignore_errors=True)
    return folder


NOTE = ".compiled"


def note(name: str) -> None:
    """Note that a set of kernels is compiled, for estimates of the time to compile."""
    if not IN_PYTHON:
        with suppress(OSError):
            (cache_folder() / f"{name}{NOTE}").touch()


def noted() -> set[str]:
    """The sets of kernels noted as compiled."""
    return {path.stem for path in cache_folder().glob(f"*{NOTE}")}


_say_once = cache(say)


def _say_not_kept(error: OSError) -> None:
    """Say once that later runs will have to compile again, and why."""
    _say_once(f"kernels cannot be kept in {home()}: {error.strerror}")


# -- a private folder ----------------------------------------------------------------------------


def _is_private(folder: Path) -> bool:
    """Whether our folder is closed to other users; a `PermissionError` if it is not ours."""
    if not hasattr(os, "geteuid"):  # Windows keeps the user data folder private by itself
        return True
    found = folder.stat()
    if found.st_uid != os.geteuid():
        raise PermissionError(errno.EPERM, f"{folder} belongs to another user")
    return not found.st_mode & 0o077


def _make_private(folder: Path) -> None:
    """Make a folder that only we can use; if it was open to others, delete all that is in it."""
    folder.mkdir(mode=0o700, exist_ok=True)
    if _is_private(folder):
        return
    folder.chmod(0o700)
    if not _is_private(folder):
        raise PermissionError(errno.EPERM, f"{folder} is open to other users")
    for each in folder.iterdir() if _HASH.fullmatch(folder.name) else _folders_of_kernels(folder):
        _discard(each)


def _folders_of_kernels(parent: Path) -> list[Path]:
    """The folders of kernels among whatever else is there, which may be of other origin."""
    return [path for path in parent.iterdir() if _HASH.fullmatch(path.name)]


def _copy(folder: Path) -> Path:
    """A temporary folder with the kernels of one that is private but cannot be written to."""
    temporary = temporary_folder("kernels")
    with suppress(OSError):
        if _is_private(folder):
            for path in (folder / SEAL, *_cached_files(folder), *folder.glob(f"*{NOTE}")):
                target = temporary / path.relative_to(folder)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, target)
    _remove_damaged(temporary)
    return temporary


# -- the seal ------------------------------------------------------------------------------------

SEAL = "seal.json"


def _cached_files(folder: Path) -> list[Path]:
    """Numba's own files in the folder: indexes and machine code."""
    return sorted(folder.rglob("*.nb[ci]"))


def _checksum(path: Path) -> int | None:
    """The checksum of a cached file; None if it is not a file, or cannot be read."""
    with suppress(OSError):
        if path.is_file():
            return zlib.crc32(path.read_bytes())
    return None


def _sealed(folder: Path) -> dict[str, Any]:
    """The checksums in the seal of a folder; empty if the seal is missing or damaged."""
    try:
        found = json.loads((folder / SEAL).read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _seal(folder: Path, dispatcher: Any) -> None:
    """Add the files of a kernel just compiled to the seal; files outside it are not trusted.

    Only this kernel's files are read, so damage to others is never sealed.
    """
    base = glob.escape(dispatcher._cache._impl.filename_base)  # not in Numba's public API
    files = Path(dispatcher.stats.cache_path).glob(f"{base}.*nb[ci]")
    new = {path.relative_to(folder).as_posix(): _checksum(path) for path in files}
    with suppress(OSError), locked(folder / "lock", "the list of kernels", wait=True):
        write_atomically(folder / SEAL, json.dumps({**_sealed(folder), **new}))


def _remove_damaged(folder: Path) -> None:
    """Delete the cached files that do not match the seal; they are compiled again.

    So are those that another process has not sealed yet: that costs time, and nothing else.
    """
    if not (folder / SEAL).is_file():
        _discard(folder / SEAL)
    sealed = _sealed(folder)
    for path in _cached_files(folder):
        found = _checksum(path)
        if found is None or sealed.get(path.relative_to(folder).as_posix()) != found:
            _discard(path)
            for noted in folder.glob(f"*{NOTE}"):  # there may be something to compile again
                noted.unlink(missing_ok=True)


def _discard(path: Path) -> None:
    """Remove a file, or a folder with all that is in it."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
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
        say_briefly(f"  {self.count}: {name}")

    def on_end(self, event: Any) -> None:
        if _our_kernel(event) is None:
            return
        self.depth -= 1
        if self.depth == 0:
            say_briefly("")


def _our_kernel(event: Any) -> str | None:
    """The name of the kernel that an event is about, if it belongs to this package."""
    function = event.data["dispatcher"].py_func
    return function.__name__ if function.__module__.startswith("lab2048.") else None


_announcer = _Announcer()
event.register("numba:compile", _announcer)


def compiling() -> str:
    """A message about the compilation in progress; empty if there is none."""
    return f"compiling kernels, {_announcer.count} so far" if _announcer.depth else ""
