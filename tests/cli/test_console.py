"""Files that exist, and how far a long command is."""

from __future__ import annotations

import ast
import io
import re
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pexpect
import pytest
from rich.console import Console

import lab2048
from lab2048.cli import console as cli_progress
from lab2048.cli import solve as cli_solve
from lab2048.engine import jit
from lab2048.solver.problem import Problem
from lab2048.tabular import Tabular
from tests.cli.running import SQUARE

# -- files that exist --------------------------------------------------------------------------


SLOW = pytest.mark.slow


WRITERS = {
    "evaluate greedy --board 2x2 --save {}": "games.jsonl",
    "evaluate greedy --board 2x2 --report {}": "page.html",
    "evaluate greedy --board 2x2 --plots {folder}": "2x2-scores.svg",
    "tour --out {}": "tour.html",
    "survey 2x2 --out {folder}": "by-age.png",
    "survey 2x2 --p4 0,1 --out {folder}": "sweep.json",
    "survey 2x2 --tree --out {folder}": "tree.svg",
    "data make --player greedy --board 2x2 --out {}": "moves.txt",
    "data label --player greedy --board 2x2 --out {}": "labels.parquet",
    "data perfect --board 2x2 --out {}": "perfect.parquet",
    "train ntuple --board 2x2 --episodes 10 --plot {}": "curve.svg",
    "train supervised --data moves.txt --plot {}": "curve.svg",
    "train zero --board 2x2 --moves 10 --plot {}": "curve.svg",
    "train pack network {}": "small.safetensors",
}
"""Every command that writes a file where it is told to, and the name of one that it writes."""


@pytest.mark.parametrize(
    "line",
    [pytest.param(line, marks=[SLOW] * ("d --d" in line or "zero" in line)) for line in WRITERS],
)
def test_what_exists_is_not_replaced_unasked(line, command, warm_home, tmp_path):
    path = tmp_path / "out" / WRITERS[line]
    path.parent.mkdir()
    path.write_text("dear to somebody")
    words = [word.format(path, folder=path.parent) for word in line.split()]
    code, out, err = command(*words)
    assert (code, out) == (2, "")
    assert err.splitlines()[-1] == f"lab2048: {path} exists already: --force replaces it"
    assert path.read_text() == "dear to somebody"
    assert [each.name for each in path.parent.iterdir()] == [path.name]


@pytest.mark.slow
def test_force_replaces_what_exists(command, warm_home, tmp_path):
    path = tmp_path / "games.jsonl"
    for more in ((), ("--force",)):
        line = ("evaluate", "greedy", "--board", "2x2", "--games", "3", "--save", str(path), *more)
        assert command(*line)[0] == 0
        assert len(path.read_text().splitlines()) == 3
        path.write_text("")


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 2), ("\x04", 1)])
def test_on_a_terminal_there_is_a_question(answer, code, tmp_path):
    path = tmp_path / "page.html"
    path.touch()
    source = (
        "import sys, typer; from pathlib import Path\n"
        "from lab2048.cli.console import check_target\n"
        "try: check_target(Path(sys.argv[1]))\n"
        "except ValueError: sys.exit(2)\n"
        "except typer.Abort: sys.exit(1)\n"
    )
    child = pexpect.spawn(
        "bash",
        ["-c", f'{sys.executable} -c "$0" "$1" >{tmp_path}/out', source, str(path)],
        timeout=20,
    )
    child.expect_exact(f"Replace {path}? [y/N]: ")
    child.send(answer if answer == "\x04" else f"{answer}\r")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == code
    assert (tmp_path / "out").read_text() == ""


# -- how far it is -----------------------------------------------------------------------------


@pytest.fixture
def soon(monkeypatch):
    """Lines come after hundredths of a second, not after tens of seconds."""
    monkeypatch.setattr(cli_progress, "FIRST", 0.05)
    monkeypatch.setattr(cli_progress, "AGAIN", 0.05)


def wait_for(stream, pattern):
    """Wait until a line is told that begins as all do, and goes on like this."""
    line = re.compile(rf"^lab2048: after (a second|\d+ s): {pattern}$", re.MULTILINE)
    late = time.monotonic() + 20
    while not line.search(stream.getvalue()):
        assert time.monotonic() < late, stream.getvalue()
        time.sleep(0.01)


def test_without_a_terminal_lines_say_how_far_it_is(soon, monkeypatch):
    stream = io.StringIO()
    with cli_progress.told(cli_progress.Unheard(stream)):
        wait_for(stream, "at work")
        with cli_progress.progress_bar() as bar:
            task = bar.add_task("greedy", total=1000)
            bar.update(task, completed=100)
            wait_for(stream, "greedy: 100 of 1,000, 10% done")
            cli_progress.move_on(bar, task, 250)
            wait_for(stream, r"greedy: 250 of 1,000, 25% done, [\d.,]+/s, about .* left")
        with cli_progress.status("measuring") as change:
            change("measuring twice")
            wait_for(stream, "measuring twice")
            monkeypatch.setattr(jit, "compiling", lambda: "compiling kernels, 3 so far")
            wait_for(stream, "compiling kernels, 3 so far")
        (lines,) = cli_progress._lines
    lines._thread.join(20)
    assert not lines._thread.is_alive()  # nothing more when it is over


@pytest.mark.parametrize(
    ("parts", "total", "shown"),
    [
        (False, 1000, "300/1000 100/s 0:00:03 0:00:07"),
        (True, 1000, "30% 100/s 0:00:03 0:00:07"),
        (True, 1.0, "30% 0:00:03 0:00:07"),  # parts of one thing: no rate
        (False, 10, "3/10 1/s 0:00:03 0:00:07"),
    ],
)
def test_a_bar_shows_rate_and_time_left(parts, total, shown):
    clock = [0.0]
    with cli_progress.progress_bar(parts) as bar:
        bar.get_time = lambda: clock[-1]
        task = bar.add_task("greedy", total=total)
        for seconds, done in ((1.0, 0.1), (3.0, 0.3)):
            clock.append(seconds)
            cli_progress.move_on(bar, task, done * total)
        stream = io.StringIO()
        Console(file=stream, width=120).print(bar.get_renderable())
    assert stream.getvalue().split("━ ")[1].split() == shown.split()


def test_only_one_module_makes_consoles_tables_and_bars():
    """So that all look alike, and nothing but results goes to stdout."""
    package = Path(lab2048.__file__).parent
    found = set()
    for path in package.rglob("*.py"):
        if "rich" not in (text := path.read_text("utf-8")):
            continue
        tree = ast.parse(text)
        typing = [
            inner
            for node in ast.walk(tree)
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
            for inner in ast.walk(node)
        ]
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rich"):
                names = {each.name for each in node.names} & {"Console", "Progress", "Table"}
                if names and node not in typing:
                    found.add(path.relative_to(package).as_posix())
    assert found == {"cli/console.py"}


def test_lines_come_after_silence_only(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(cli_progress, "time", SimpleNamespace(monotonic=lambda: now[-1]))
    monkeypatch.setattr(cli_progress, "FIRST", 10.0)
    heard = cli_progress.Unheard(io.StringIO())
    with cli_progress.told(heard):
        (lines,) = cli_progress._lines
        for seconds, written, left in (
            (4.0, False, 6.0),
            (8.0, True, 10.0),
            (17.5, False, 0.5),
            (20.0, False, 0.0),
        ):
            now.append(seconds)
            if written:
                heard.write(".")
            assert lines._left() == left
        for seconds, left in ((20.0, 30.0), (6000.0, 300.0)):  # later ones are told less often
            now.append(seconds)
            heard.write("a line")
            lines._told += 1
            assert lines._left() == left


def test_where_bars_are_seen_no_lines_come():
    stream = io.StringIO()
    stream.isatty = lambda: True
    with cli_progress.told(cli_progress.Unheard(stream)):
        assert not cli_progress._lines


class Nothing(Tabular):
    """A result without anything in it."""

    def rows(self):
        return []

    def as_json(self):
        return None


def test_a_long_command_says_that_it_is_at_work(command, monkeypatch, soon):
    monkeypatch.setattr(cli_progress, "FIRST", 0.05)  # the fixture before has set it otherwise
    monkeypatch.setattr("lab2048.measure.positions.probed", lambda *_: time.sleep(0.2) or Nothing())
    code, out, err = command("probe", SQUARE, "--json")
    assert (code, out) == (0, "null\n")
    assert re.match(r"lab2048: after (a second|\d+ s): at work\n", err)


def test_an_estimate_includes_what_is_compiled(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("lab2048.engine.jit.cache_folder", lambda: tmp_path)
    threes, twos = Problem.of("3x3"), Problem.of("4x2")

    def announced(problem):
        cli_solve._announce(problem, tmp_path / "table", "float64", "table", 2, False, None)
        return re.search(r"about (.*), 3", capsys.readouterr().err)[1]

    assert announced(threes) == "41 s with compiling"
    jit.note("solve-3x3")
    assert announced(threes) == "6 s"
    assert announced(twos) == "21 s with compiling"  # most is done, but not what 4x2 needs
