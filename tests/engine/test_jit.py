"""How kernels are made: what they close over, and how they are told apart in the cache."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lab2048.engine.closures import KernelError, identity_of
from lab2048.engine.jit import fragment, kernel
from tests.conftest import WITH_JIT

DOC = Path(__file__).parent.parent.parent / "docs" / "kernels.md"
needs_jit = pytest.mark.skipif(not WITH_JIT, reason="nothing is compiled or kept")

FAMILY = """
import sys
from lab2048.engine.jit import kernel

def times(n):
    @kernel("int64(int64)")
    def multiply(k):
        return n * k
    return multiply

def difference(first, second):
    @kernel("int64(int64)")
    def subtract(k):
        return first(k) - second(k)
    return subtract

made = [times(int(n)) for n in sys.argv[1:]]
if len(made) == 2:
    made.append(difference(*made))
print([each(10) for each in made], [sum(each.stats.cache_hits.values()) for each in made])
"""


def times(n):
    """A kernel that closes over a constant."""

    @kernel("int64(int64)")
    def multiply(k):
        return n * k

    return multiply


def twice(function, keep=True):
    """A kernel that closes over another."""

    @kernel("int64(int64)", keep=keep)
    def again(k):
        return function(function(k))

    return again


def test_the_example_of_the_documentation_runs(tmp_path):
    (code,) = re.findall(r"```python example\n(.*?)```", DOC.read_text(), re.DOTALL)
    assert "assert" in code and "return weighted_sum" in code
    path = tmp_path / "example.py"
    path.write_text(code)
    exec(compile(code, str(path), "exec"), {"__name__": "example"})


def test_a_kernel_calls_what_it_is_given_and_itself():
    @kernel("int64(int64)")
    def factorial(k):
        return k * factorial(k - 1) if k > 1 else 1

    assert [twice(times(n))(5) for n in (2, 3)] == [20, 45]
    assert twice(factorial)(3) == 720


@pytest.mark.parametrize("what", [print, None, [1], {"a": 1}, object(), int, lambda k: k])
def test_a_kernel_closes_over_constants_and_kernels(what):
    """Whether it is compiled and kept, or not."""
    wrong = r"again is given what, a .*: neither a constant nor a kernel"
    foreign = twice(times(2), keep=False)

    def again(k):
        return what(foreign(k))

    for made in (kernel("int64(int64)"), fragment):
        with pytest.raises(KernelError, match=wrong):
            made(again)


@needs_jit
def test_a_kernel_takes_what_it_is_called_with():
    @kernel("int64(float64[::1])")
    def other(array):
        return 1

    with pytest.raises(KernelError, match=r"again does not compile: (.|\n)*Known signatures"):
        twice(other)


@needs_jit
@pytest.mark.slow
def test_kernels_of_the_same_lines_are_not_taken_for_each_other(tmp_path, own_home):
    """Not even if different processes have compiled them, and a third calls both."""
    path = tmp_path / "family.py"
    path.write_text(FAMILY)

    def run(*numbers):
        done = subprocess.run(
            [sys.executable, str(path), *numbers],
            capture_output=True,
            text=True,
            env=dict(os.environ),
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    assert run("3") == "[30] [0]"
    assert run("4") == "[40] [0]"
    assert run("3", "4") == "[30, 40, -10] [1, 1, 0]"
    assert run("4", "3") == "[40, 30, 10] [1, 1, 0]"
    assert run("3", "4") == "[30, 40, -10] [1, 1, 1]"


@needs_jit
def test_an_identity_is_that_of_all_that_is_closed_over():
    found = {identity_of(each.py_func) for each in (times(2), times(3), twice(times(2)))}
    found |= {identity_of(twice(times(3)).py_func), identity_of(twice(twice(times(2))).py_func)}
    assert len(found) == 5
    assert identity_of(twice(times(2)).py_func) == identity_of(twice(times(2)).py_func)


def defined(body):
    """A function as somebody might define it again and again in a notebook."""
    names = {"__name__": "notebook"}
    exec(compile(f"def f(x):\n    return {body}\n", "notebook", "exec"), names)
    return names["f"]


def test_an_identity_is_that_of_constants_and_names_too():
    bodies = [
        "x * 10.0",
        "x * 20.0",
        "x * 10",
        "abs(x)",
        "int(x)",
        "x in (1, 2)",
        "x in (1, 3)",
        "[y * 10.0 for y in x]",
        "[y * 20.0 for y in x]",
    ]
    assert len({identity_of(defined(body)) for body in bodies}) == len(bodies)
    assert identity_of(defined("x * 10.0")) == identity_of(defined("x * 10.0"))


def test_an_identity_is_the_same_in_every_process():
    code = (
        "from lab2048.engine.closures import identity_of\n"
        "def f(x):\n    return x in {'a', 'b', 'c', 'd', ('e', 'f')}\n"
        "print(identity_of(f))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1


@needs_jit
def test_what_calls_code_that_is_not_kept_is_not_kept():
    own, foreign = twice(times(2)), twice(times(2), keep=False)

    @fragment
    def inside(k):
        return foreign(k)

    assert own.stats.cache_path is not None
    for each in (foreign, twice(foreign), twice(inside)):
        assert each.stats.cache_path is None
    assert twice(inside)(1) == 16
