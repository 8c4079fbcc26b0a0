"""The identity of a kernel: its code and what it closes over, constants and other kernels."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

import numpy as np
from numba.core.caching import FunctionCache
from numba.extending import is_jitted

CONSTANTS = bool | int | float | str | np.generic | np.ndarray
"""What a kernel may close over besides kernels."""


class KernelError(TypeError):
    """A kernel that does not compile, or closes over something that kernels cannot use."""


def name_of(function: Callable[..., Any]) -> str:
    """The module and name of a function."""
    return f"{function.__module__}.{function.__name__}"


def identity_of(function: Callable[..., Any]) -> str:
    """A hash that identifies a kernel: its name, its code, and all that it closes over.

    It may close over constants, and over kernels, which have identities of their own. (Numba would
    pickle them; two pickles of one kernel differ, and it would never be found in the cache.)
    """
    digest = hashlib.sha256(f"{function.__module__}.{function.__qualname__}".encode())
    digest.update(_code_text(function.__code__).encode())
    for name, value in given(function):
        digest.update(f"\0{name}={_described(value, name, function)}".encode())
    return digest.hexdigest()


def _code_text(code: CodeType) -> str:
    """Code as text, with its constants: `x * 10.0` and `x * 20.0` have equal instructions."""
    constants = [_constant_text(each) for each in code.co_consts]
    return f"{code.co_code.hex()} {code.co_names} {constants}"


def _constant_text(constant: object) -> str:
    """A constant of some code as text, unambiguous and the same in every process."""
    if isinstance(constant, CodeType):
        return _code_text(constant)
    if isinstance(constant, tuple):
        return f"({', '.join(map(_constant_text, constant))})"
    if isinstance(constant, frozenset):  # the order of strings differs between processes
        return f"{{{', '.join(sorted(map(_constant_text, constant)))}}}"
    return repr(constant)


def given(function: Callable[..., Any]) -> Iterator[tuple[str, Any]]:
    """The names and values that a function closes over, except itself."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        if name != function.__name__:
            yield name, cell.cell_contents


def _described(value: Any, name: str, function: Callable[..., Any]) -> str:
    """A text that tells a constant, or a kernel, from all others."""
    if is_jitted(value):
        signatures = [] if value._can_compile else value.nopython_signatures  # a fragment has none
        return f"{identity_of(value.py_func)} {signatures} {sorted(value.targetoptions.items())}"
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{value.shape}{hashlib.sha256(value.tobytes()).hexdigest()}"
    if isinstance(value, CONSTANTS):
        return f"{type(value).__name__} {value!r}"
    raise not_usable(function, name, value)


def not_usable(function: Callable[..., Any], name: str, value: object) -> KernelError:
    """The error for what a kernel closes over and cannot use."""
    what = f"{name_of(function)} is given {name}, a {type(value).__name__}"
    return KernelError(f"{what}: neither a constant nor a kernel")


def all_kept(function: Callable[..., Any]) -> bool:
    """Whether all kernels that a function closes over are cached; only then can it be cached."""
    return all(
        all_kept(each.py_func) if each._can_compile else isinstance(each._cache, KernelCache)
        for _, each in given(function)
        if is_jitted(each)
    )


class KernelCache(FunctionCache):  # type: ignore[misc]  # numba is Any here
    """Numba's cache of one kernel, which is looked up by its signature and its identity."""

    def __init__(self, function: Callable[..., Any], identity: str) -> None:
        super().__init__(function)
        self.identity = identity

    def _index_key(self, signature: Any, codegen: Any) -> tuple[Any, ...]:
        return signature, codegen.magic_tuple(), self.identity
