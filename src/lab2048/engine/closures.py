"""What a kernel closes over, constants and other kernels: it tells one kernel from another."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numba.core.caching import FunctionCache
from numba.extending import is_jitted


class KernelError(TypeError):
    """A kernel that does not compile, or is given what a kernel cannot use."""


def name_of(function: Callable[..., Any]) -> str:
    """Where a function is."""
    return f"{function.__module__}.{function.__name__}"


def identity_of(function: Callable[..., Any]) -> str:
    """What tells a kernel from others made by the same lines: all that it closes over.

    That is constants, and kernels, which have identities of their own. (Numba pickles what a
    function closes over; two pickles of one kernel differ, and it would never be found again.)
    """
    digest = hashlib.sha256(f"{function.__module__}.{function.__qualname__}".encode())
    digest.update(function.__code__.co_code)
    for name, value in _given(function):
        digest.update(f"\0{name}={_described(value, name, function)}".encode())
    return digest.hexdigest()


def _given(function: Callable[..., Any]) -> Iterator[tuple[str, Any]]:
    """What a function closes over, by name, without itself."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        if name != function.__name__:
            yield name, cell.cell_contents


def _described(value: Any, name: str, function: Callable[..., Any]) -> str:
    """A text that tells a constant, or a kernel, from all others; a `KernelError` if it is none."""
    if is_jitted(value):
        signatures = [] if value._can_compile else value.nopython_signatures  # a fragment has none
        return f"{identity_of(value.py_func)} {signatures} {sorted(value.targetoptions.items())}"
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{value.shape}{hashlib.sha256(value.tobytes()).hexdigest()}"
    if isinstance(value, bool | int | float | str | np.generic):
        return f"{type(value).__name__} {value!r}"
    what = f"{name}, a {type(value).__name__}"
    raise KernelError(f"{name_of(function)} is given {what}: neither a constant nor a kernel")


def all_kept(function: Callable[..., Any]) -> bool:
    """Whether all kernels that a function closes over are in the cache; so is it then."""
    return all(
        all_kept(each.py_func) if each._can_compile else isinstance(each._cache, KernelCache)
        for _, each in _given(function)
        if is_jitted(each)
    )


class KernelCache(FunctionCache):  # type: ignore[misc]  # numba is Any here
    """Numba's cache of one kernel, which is found by its signature and its identity."""

    def __init__(self, function: Callable[..., Any], identity: str) -> None:
        super().__init__(function)
        self.identity = identity

    def _index_key(self, signature: Any, codegen: Any) -> tuple[Any, ...]:
        return signature, codegen.magic_tuple(), self.identity
