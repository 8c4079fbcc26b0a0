"""Compare the speed of this checkout with another: the figures of `lab2048 bench`, in turns.

    git worktree add ../before SOME_COMMIT
    python benchmarks/compare_versions.py ../before [BENCH ...] [--pairs 7] [--save FILE]

Both are run by this interpreter, one after the other, the order reversed in every second pair: a
machine that slows down over the day slows both. `bench cluster` is run only if it is named. A ratio
above 1 means that this checkout is faster. Intervals are Student's t on the logarithms of the
ratios of pairs. Each checkout keeps its own compiled kernels under LAB2048_HOME, where
`bench studio` also finds tables. `--save` writes the measurements after every pair; a second run
with the same file resumes.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lab2048.measure.intervals import student_half_width

HERE = Path(__file__).parent.parent
BENCHES = ("engine", "solve", "search", "td", "neural", "studio")
RATES = re.compile(r"per_second|per_cpu_second")
TIMES = re.compile(r"seconds$|_ms$|median$|p99$|exact_3x3_seconds")
LEFT_OUT = re.compile(r"machine|crowd\.seconds$|made_per_decision|overhead|alone|watcher")
LEAST = 0.97
"""A figure whose whole interval is below this is marked."""
FEWER_TURNS = "import lab2048.bench.cluster as bench; bench.TURNS = 1; "
"""`bench cluster` takes turns of its own: one of them in each of our pairs is enough."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before", type=Path, help="the other checkout")
    parser.add_argument("benches", nargs="*", default=BENCHES)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--save", type=Path, help="a JSON file to keep and resume measurements")
    asked = parser.parse_args()
    kept = json.loads(asked.save.read_text()) if asked.save and asked.save.exists() else {}
    for bench in asked.benches:
        pairs = kept.setdefault(bench, [])
        for number in range(len(pairs), asked.pairs):
            print(f"{bench}: pair {number + 1} of {asked.pairs}", file=sys.stderr, flush=True)
            pairs.append(pair(asked.before, bench, reverse=number % 2 == 1))
            if asked.save:
                asked.save.write_text(json.dumps(kept))
        show(bench, pairs)


def pair(before: Path, bench: str, reverse: bool) -> list[dict[str, float]]:
    """The figures of the other checkout and of this one, measured one after the other."""
    order = [HERE, before] if reverse else [before, HERE]
    found = [figures(checkout, bench) for checkout in order]
    return found[::-1] if reverse else found


def figures(checkout: Path, bench: str) -> dict[str, float]:
    """Every speed that a bench of a checkout prints, by name; times are inverted."""
    code = "from lab2048.cli import main; import sys; "
    code += f"sys.argv = ['lab2048', 'bench', {bench!r}, '--json']; "
    code += FEWER_TURNS if bench == "cluster" else ""
    environment = {**os.environ, "PYTHONPATH": str(checkout.resolve() / "src")}
    run = [sys.executable, "-c", f"{code}main()"]
    done = subprocess.run(run, stdout=subprocess.PIPE, check=True, env=environment)
    return dict(speeds(json.loads(done.stdout)))


def speeds(value: Any, name: str = "") -> Iterator[tuple[str, float]]:
    """The speeds in a JSON value, with the path to each."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from speeds(inner, f"{name}.{key}".lstrip("."))
    elif isinstance(value, int | float) and value and not LEFT_OUT.search(name):
        if RATES.search(name):
            yield name, value
        elif TIMES.search(name):
            yield name, 1 / value


def show(bench: str, pairs: list[list[dict[str, float]]]) -> None:
    """Print one line per figure: the ratio of this checkout to the other, and its interval."""
    print(f"| `bench {bench}`, {len(pairs)} pairs | ratio | 95% |")
    print("|:--|--:|--:|")
    for name in sorted(set.intersection(*(set(each) for pair in pairs for each in pair))):
        logs = [math.log(after[name] / before[name]) for before, after in pairs]
        mean, half = statistics.fmean(logs), student_half_width(logs)
        ratio, low, high = (math.exp(each) for each in (mean, mean - half, mean + half))
        slower = " slower" if high < LEAST else ""
        print(f"| {name} | {ratio:.3f} | {low:.3f} to {high:.3f}{slower} |", flush=True)


if __name__ == "__main__":
    main()
