"""All benchmarks by name, and the function that runs one."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

from lab2048.formatting import nearest
from lab2048.tabular import Figures


class Where(NamedTuple):
    """The module and the functions of a benchmark."""

    module: str
    function: str
    prepare: str = ""
    """The function that compiles all that is measured: no compiler message falls into a timing."""


BENCHMARKS = {
    "engine": Where("engine", "bench_engine", "prepare"),
    "solve": Where("engine", "bench_solve", "prepare_solve"),
    "search": Where("engine", "bench_search", "prepare_search"),
    "td": Where("engine", "bench_td", "prepare_td"),
    "neural": Where("neural", "bench_neural"),
    "cluster": Where("cluster", "bench_cluster"),
    "studio": Where("studio", "bench_studio"),
}


def benchmark(what: str, note: Callable[[str], object] = lambda text: None) -> Figures:
    """Measure how fast lab2048 is on this machine: what `lab2048 bench` prints.

    `what` is engine, solve, search, td, neural, cluster or studio. A benchmark takes from seconds
    to some minutes; `note` is called with what it is measuring.

    >>> from lab2048 import benchmark
    >>> benchmark("egnine")
    Traceback (most recent call last):
    ...
    ValueError: there is no benchmark 'egnine'; did you mean engine?
    """
    if what not in BENCHMARKS:
        raise ValueError(f"there is no benchmark {what[:40]!r}; {nearest(what, BENCHMARKS)}")
    found = BENCHMARKS[what]
    if what == "neural":
        from lab2048.learn.registry import check_torch

        check_torch()
    if what == "studio":
        from lab2048.studio.server import need_server

        need_server()
    module: Any = importlib.import_module(f"lab2048.bench.{found.module}")
    if found.prepare:
        getattr(module, found.prepare)()
    return Figures(getattr(module, found.function)(note))
