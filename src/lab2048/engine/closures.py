"""What a kernel closes over, constants and other kernels: it tells one kernel from another."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from types import CodeType
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
    """What tells a kernel from others: its code, with its constants, and all that it closes over.

    That is constants, and kernels, which have identities of their own. (Numba pickles what a
    function closes over; two pickles of one kernel differ, and it would never be found again.)
    """
    digest = hashlib.sha256(f"{function.__module__}.{function.__qualname__}".encode())
    digest.update(_code_text(function.__code__).encode())
    for name, value in _given(function):
        digest.update(f"\0{name}={_described(value, name, function)}".encode())
    return digest.hexdigest()


def _code_text(code: CodeType) -> str:
    """A text that tells code from other code: `x * 10.0` and `x * 20.0` have equal instructions."""
    constants = [_constant_text(each) for each in code.co_consts]
    return f"{code.co_code.hex()} {code.co_names} {constants}"


def _constant_text(constant: object) -> str:
    """A text that tells a constant of some code from all others, the same in every process."""
    if isinstance(constant, CodeType):
        return _code_text(constant)
    if isinstance(constant, tuple):
        return f"({', '.join(map(_constant_text, constant))})"
    if isinstance(constant, frozenset):  # strings are in another order in every process
        return f"{{{', '.join(sorted(map(_constant_text, constant)))}}}"
    return repr(constant)


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
