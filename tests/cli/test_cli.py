"""The command line: what it prints, and what it says of bad input."""

from __future__ import annotations

import ast
import io
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pexpect
import pytest
import typer
from rich.console import Console

import lab2048
from lab2048.cli import completion
from lab2048.cli import console as cli_progress
from lab2048.cli import solve as cli_solve
from lab2048.cli.app import app
from lab2048.engine import jit
from lab2048.game.notation import counted
from lab2048.learn.network_files import FILE, network_folder, write_tensors
from lab2048.players import registry
from lab2048.solver.problem import Problem
from lab2048.tabular import Tabular


def run(*arguments, **environment):
    """A command as a user runs it."""
    return subprocess.run(
        [sys.executable, "-m", "lab2048", *arguments],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env={**os.environ, **environment},
        check=False,
    )


def test_version(command):
    assert command("--version") == (0, f"lab2048 {lab2048.__version__}\n", "")


def test_without_a_command_it_shows_what_there_is(command):
    code, out, _ = command()
    assert code == 0
    for name in ("play", "watch", "probe", "tour", "solve", "table", "survey", "evaluate", "bench"):
        assert name in out
    assert "engine" in command("bench")[1]


def groups(found=None, name=()):
    """The names of all groups of commands."""
    found = typer.main.get_command(app) if found is None else found
    for each, command in getattr(found, "commands", {}).items():
        if hasattr(command, "commands"):
            yield (*name, each)
            yield from groups(command, (*name, each))


def test_every_group_without_a_command_shows_what_there_is(command):
    found = list(groups())
    assert {("train",), ("data",), ("table",), ("bench",), ("cluster",)} <= set(found)
    for name in found:
        code, out, err = command(*name)
        assert (code, err) == (0, "") and "Commands" in out


def test_numbers_of_things():
    found = {"5000": 5000, "200k": 200_000, "4.1M": 4_100_000, "16.1k": 16_100, "1m": 10**6}
    assert {text: counted(text) for text in found} == found
    for text in ("0.5", "1.0001k", "-1", "1e3", "1G", "", "k", "1_0", "\u0663"):
        with pytest.raises(ValueError, match="a number of games is such as"):
            counted(text)
    for text in ("0", "9999999M", "9" * 30):
        with pytest.raises(ValueError, match="games is"):
            counted(text)


@pytest.mark.parametrize(
    "line",
    [
        "evaluate nobody --games 1k",
        "tour --games 2M --seed -1",
        "data make --player nobody --moves 1.5k --first 1k --out a.txt",
        "data label --player nobody --moves 1k --out a.parquet",
        "train ntuple --board 9x9 --episodes 1k --block 1k",
        pytest.param("train supervised --board 9x9 --batch 2k", marks=pytest.mark.slow),
        pytest.param("train zero --board 9x9 --moves 2M", marks=pytest.mark.slow),
    ],
)
def test_numbers_of_games_and_moves_may_be_in_thousands(line, command, warm_home):
    _, _, err = command(*line.split())
    assert re.search("no player 'nobody'|not 9x9|a seed is", err.splitlines()[-1])


def test_a_number_that_is_none_is_said_in_plain_words(command):
    code, _, err = command("evaluate", "greedy", "--games", "1x")
    assert code == 2 and "'--games': a number of games is such as 5000, 200k or 1M" in err


UNSOLVED = dict.fromkeys(["after_value", "q", "regret", "optimal", "mark"])
SQUARE = "2 2 . . / . . . . / . . . . / . . . ."
"""No board of 16 cells is ever solved."""


def test_probe_as_json(command):
    code, out, err = command("probe", SQUARE, "--json")
    assert (code, err) == (0, "")
    assert json.loads(out) == {
        "board": SQUARE,
        "rules": {"rows": 4, "cols": 4, "p4": 0.1},
        "objective": None,
        "gamma": None,
        "terminal": False,
        "value": None,
        "moves": {
            "up": {"legal": False, "reward": None, "after": None, **UNSOLVED},
            "right": {"legal": True, "reward": 4, "after": SQUARE.replace("2 2 . .", ". . . 4")}
            | UNSOLVED,
            "down": {"legal": True, "reward": 0, "after": ". . . . / . . . . / . . . . / 2 2 . ."}
            | UNSOLVED,
            "left": {"legal": True, "reward": 4, "after": SQUARE.replace("2 2 . .", "4 . . .")}
            | UNSOLVED,
        },
    }


def test_probe_takes_every_form_and_the_largest_tiles(command):
    for form in (
        SQUARE.split(),
        ["[[2, 2, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]"],
        ["1100000000000000"],
        ["1100000000000000", "--board", "4x4"],
        [SQUARE.replace(" / ", "\n")],
    ):
        assert json.loads(command("probe", *form, "--json")[1])["board"] == SQUARE
    large = SQUARE.replace("2", "65536")
    _, out, _ = command("probe", large, "--json", "--p4", "0.5")
    assert json.loads(out)["moves"]["left"]["reward"] == 131072
    assert json.loads(out)["moves"]["left"]["after"].startswith("131072 . . .")
    assert json.loads(out)["rules"]["p4"] == 0.5
    full = "2 4 2 4 / 4 2 4 2 / 2 4 2 4 / 4 2 4 2"
    assert json.loads(command("probe", full, "--json")[1])["terminal"] is True


def test_probe_for_people(command):
    code, out, _ = command("probe", SQUARE)
    assert code == 0
    assert "4x4, age 4, 14 empty, largest tile 2" in out
    assert "4 . . . / . . . ." in out
    full = "2 4 2 4 / 4 2 4 2 / 2 4 2 4 / 4 2 4 2"
    assert "no move is legal" in command("probe", full)[1]


BAD = {
    ("probe", "3 . / . ."): "row 1, column 1: 3 is not a tile; tiles are powers of two",
    ("probe", "1 . / . ."): "1 is not a tile",
    ("probe", "-2 4 / 2 2"): "-2 is not a tile",
    ("probe", ". . / . 262144"): "262144 is not a tile",
    ("probe", ". . / ."): "every row needs the same number",
    ("probe", ""): "the board is empty text",
    ("probe", "2 4 8"): "a board has 2 to 6 rows",
    ("probe", "110", "--board", "2x2"): "a 2x2 board has 4 of them",
    ("probe", "2 2 / . .", "--board", "3x3"): "the board is 2x2, not 3x3",
    ("probe", "2 2 / . .", "--board", "9"): "a board size is written ROWSxCOLS",
    ("probe", "2 2 / . .", "--p4", "nan"): "p4, the chance of a 4, is a number from 0 to 1",
    ("probe", "2 2 / . .", "--p4", "-1"): "p4, the chance of a 4",
    ("probe", "2 2 / . .", "--p4", "x"): "Invalid value for '--p4'",
    ("probe",): "Missing argument",
    ("probe", "2 2 / . .", "more"): "row 2 has 3 cells and row 1 has 2",
    ("probe", SQUARE, "--table", "nowhere"): "there is no table nowhere",
    ("probe", SQUARE, "--after", "up"): "up is not legal on 2 2 . .",
    ("probe", SQUARE, "--after", "north"): "a direction is up, right, down or left",
    ("probe", SQUARE, "--after", "left", "--p4", "2"): "p4, the chance of a 4",
    ("solve",): "Missing argument",
    ("solve", "4x4"): "boards of up to 12 cells can be solved; 4x4 has 16",
    ("solve", "3x3", "--objective", "win"): "an objective is score, worst-case or reach:TILE",
    ("solve", "3x3", "--gamma", "2"): "gamma is a number from 0 to 1",
    ("solve", "3x3", "--values", "float16"): "values are stored as float64 or float32",
    ("solve", "3x3", "--keep", "nothing"): "--keep is table or summary",
    ("solve", "3x3", "--threads", "0"): "'--threads'",
    ("table", "info"): "Missing argument",
    ("table", "verify", "nowhere"): "there is no table nowhere",
    ("table", "remove", "nowhere", "--yes"): "there is no table nowhere",
    ("survey", "4x4"): "boards of up to 12 cells",
    ("survey", "2x2", "--p4", "x"): "--p4 is a number or several with commas",
    ("play", "7x2"): "a board has 2 to 6 rows, 2 to 6 columns and at most 16 cells, not 7x2",
    ("play", "1x2"): "not 1x2",
    ("play", "4x5"): "not 4x5",
    ("play", "big"): "a board size is written ROWSxCOLS",
    ("play", "--p4", "1.5"): "p4, the chance of a 4",
    ("play", "--seed", "-1"): "a seed is a whole number",
    ("play",): "play needs a terminal",
    ("watch", "rndom"): "there is no player 'rndom'; did you mean random?",
    ("watch", "random", "--speed", "0"): "--speed is from",
    ("tour", "--games", "0"): "'--games'",
    ("tour", "--games", "1000000000000"): "'--games'",
    ("tour", "--seed", "-3"): "a seed is a whole number",
    ("nonsense",): "No such command 'nonsense'",
    ("bench", "nonsense"): "No such command 'nonsense'",
    ("--nonsense",): "No such option: --nonsense (--help shows what there is)",
}


@pytest.mark.parametrize("arguments", BAD, ids=" ".join)
def test_bad_input_is_answered_in_one_line(arguments, command, monkeypatch):
    with open(os.devnull) as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        code, out, err = command(*arguments)
    assert code == 2
    assert out == ""
    assert err.startswith("lab2048: ") and err.count("\n") == 1
    assert BAD[arguments] in err
    assert len(err) < 250


@pytest.mark.slow
def test_watch_without_a_terminal_prints_the_last_board():
    done = run("watch", "random", "--board", "3x3", "--seed", "3")
    assert done.returncode == 0
    game_over = done.stdout.splitlines()
    assert len(game_over) == 4
    assert game_over[-1].endswith("seed 3")
    assert run("watch", "random", "--board", "3x3", "--seed", "3").stdout == done.stdout


@pytest.mark.slow
def test_the_tour_compiles_in_another_process():
    """If that failed nobody would notice: the tour would compile by itself, and take longer."""
    from lab2048.report.tour import compiling

    with compiling() as ahead:
        assert ahead.readline() == "3x3\n"


@pytest.mark.slow
def test_the_tour_ranks_players_against_perfect_play(tmp_path):
    page = tmp_path / "tour.html"
    done = run("tour", "--games", "20", "--seed", "9", "--json", "--out", str(page))
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)
    small = {each["player"]: each for each in results if each["board"] == "3x3"}
    assert len(small) >= 10
    assert small["optimal"]["optimal"]["regret_per_game"]["mean"] == 0
    assert small["greedy"]["exact"]["regret"] == pytest.approx(5468.49 - 366.38, abs=0.02)
    assert {each["games"] for each in results if each["board"] == "4x4"} == {2}
    assert "<svg" in page.read_text() and "http" not in _links(page.read_text())
    # what is said about the board at the beginning is what the table says
    said = float(re.search(r"has ([\d,.]+) points", done.stderr)[1].replace(",", ""))
    probe = run("probe", "64 16 4 / 8 32 2 / 2 . 4", "--json")
    assert json.loads(probe.stdout)["value"] == pytest.approx(said, abs=0.05)


def _links(page):
    """What a page would load from elsewhere."""
    return " ".join(re.findall(r"(?:src|href)=\"([^\"#]*)\"", page))


@pytest.mark.slow
def test_bench_prints_every_figure(command, monkeypatch):
    done = run("bench", "engine", "--json")
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert list(figures) == [
        "random_play_moves_per_second",
        "vector_env_steps_per_second",
        "import_seconds",
        "signature",
        "machine",
    ]
    assert figures["random_play_moves_per_second"].keys() == {"3x3", "4x4"}
    # far below any machine's speed: this tells a broken measurement, not a slow machine
    assert min(figures["random_play_moves_per_second"].values()) > 1e5
    assert figures["vector_env_steps_per_second"] > 1e5
    assert 0 < figures["import_seconds"] < 5
    monkeypatch.setattr("lab2048.bench.engine.bench_engine", lambda say: figures)
    code, out, _ = command("bench", "engine")
    assert code == 0 and "random play on 4x4" in out and str(figures["signature"]) in out


def test_a_reader_that_leaves_is_no_error():
    probe = f"{sys.executable} -m lab2048 probe '{SQUARE}' --json | true"
    for buffered in ("", "1"):
        done = subprocess.run(
            ["bash", "-c", probe + "; echo ${PIPESTATUS[0]}"],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": buffered},
            check=False,
        )
        assert (done.stdout, done.stderr) == ("1\n", "")


@pytest.mark.parametrize("end", ["<&-", ">&-", "2>&-"])
@pytest.mark.parametrize(
    "arguments",
    [
        f"probe '{SQUARE}' --json",
        pytest.param("evaluate random --games 5 --json", marks=pytest.mark.slow),
        pytest.param("watch random --board 2x2 --seed 1", marks=pytest.mark.slow),
    ],
)
def test_a_closed_end_is_no_obstacle(end, arguments):
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m lab2048 {arguments} {end}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    if end == "2>&-" and "json" in arguments:
        json.loads(done.stdout)


def test_a_home_that_names_nobody_is_said():
    done = run("evaluate", "random", LAB2048_HOME="~nobody-of-this-name/x")
    assert done.returncode == 2
    assert done.stderr == (
        "lab2048: LAB2048_HOME is '~nobody-of-this-name/x', and there is no such user\n"
    )


def test_a_full_disk_behind_the_output_is_said():
    command = f"{sys.executable} -m lab2048 probe '{SQUARE}' --json > /dev/full"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "lab2048: output: No space left on device\n")


def test_an_error_of_the_programs_own_is_one_line_too(command, monkeypatch):
    monkeypatch.setattr("lab2048.measure.positions.probed", lambda *_: 1 / 0)
    code, _, err = command("probe", SQUARE, "--json")
    assert code == 1
    assert err == "lab2048: ZeroDivisionError: division by zero (LAB2048_DEBUG=1 shows where)\n"
    monkeypatch.setattr(
        "lab2048.measure.positions.probed", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt)
    )
    assert command("probe", SQUARE, "--json") == (130, "", "lab2048: stopped\n")


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


# -- completion --------------------------------------------------------------------------------


@pytest.fixture
def with_names(own_home):
    """A data folder with two networks and a table to name."""
    for name, kind in (("mine", "ntuple"), ("other", "zero")):
        write_tensors(network_folder(name) / FILE, kind, {}, {"a": np.zeros(1)})
    (network_folder("damaged")).mkdir()
    (network_folder("damaged") / FILE).touch()
    (own_home / "tables" / "3x2-score").mkdir(parents=True)
    (own_home / "tables" / "3x2-score" / "manifest.json").touch()


COMPLETED = {
    ("ev",): "evaluate",
    ("evaluate", "exp"): "expectimax expectiminimax",
    ("evaluate", "greedy", "opt"): "optimal",
    ("evaluate", "greedy", "--boa"): "--board",
    ("evaluate", "greedy", "--board", "6"): "6x2",
    ("evaluate", "ntuple:"): "ntuple:mine",
    ("evaluate", "greedy", "zero:o"): "zero:other",
    ("probe", "--player", "ntuple:m"): "ntuple:mine",
    ("watch", "ntuple:x"): "",
    ("table", "info", ""): "3x2-score",
    ("train", "pack", ""): "damaged mine other",
    ("train", "ntuple", "--against", "3"): "3x2-score",
}


@pytest.mark.parametrize("words", COMPLETED, ids=" ".join)
def test_shells_complete_names(words, command, monkeypatch, with_names):
    """As their scripts do it, by variables."""
    expected = COMPLETED[words].split()
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", " ".join(("lab2048", *words)))
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    monkeypatch.setenv("_LAB2048_COMPLETE", "complete_fish")
    assert [line.split("\t")[0] for line in command()[1].split("\n") if line] == expected
    monkeypatch.setenv("_LAB2048_COMPLETE", "complete_zsh")
    answer = command()[1].replace("\\\\", "")
    assert all(f'"{name}"' in answer for name in expected) and ("_files" in answer) == (
        not expected
    )
    broken = re.sub("([:=])", r" \1 ", " ".join(("lab2048", *words))).split(" ")
    broken = [word for place, word in enumerate(broken) if word or place == len(broken) - 1]
    if words[-1].endswith(":"):
        broken.pop()  # after a colon bash asks for what comes at the colon
    monkeypatch.setenv("COMP_WORDS", "\n".join(broken))
    monkeypatch.setenv("COMP_CWORD", str(len(broken) - 1))
    monkeypatch.setenv("_LAB2048_COMPLETE", "complete_bash")
    ends = [name.rpartition(":")[2] for name in expected]
    assert command()[1].split() == ends


def test_completion_knows_the_players_of_others(monkeypatch):
    monkeypatch.setattr(registry, "_elsewhere", lambda: {"experiment": None})
    assert completion.players("exp") == ["expectimax", "expectiminimax", "experiment"]


def test_completion_loads_nothing_slow(with_names):
    code = (
        "import sys\nfrom lab2048.cli import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print({'numba', 'torch', 'matplotlib', 'scipy', 'rich'} & sys.modules.keys())\n"
    )
    asked = {
        "_LAB2048_COMPLETE": "complete_fish",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        "_TYPER_COMPLETE_ARGS": "lab2048 evaluate ntuple:",
    }
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, **asked},
        check=True,
    )
    assert done.stdout.splitlines() == ["ntuple:mine", "set()"]


@pytest.mark.slow
def test_bash_completes_what_is_installed(with_names, tmp_path):
    program = tmp_path / "lab2048"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m lab2048 "$@"\n')
    program.chmod(0o755)
    asked = (
        "lab2048 --install-completion && source ~/.bashrc; COMP_WORDS=(lab2048 evaluate ntuple : m)"
        '; COMP_CWORD=4; _lab2048_completion lab2048; echo "${COMPREPLY[*]}"'
    )
    done = subprocess.run(
        ["bash", "-c", asked],
        capture_output=True,
        text=True,
        env={**os.environ, "HOME": str(tmp_path), "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        check=True,
    )
    assert "bash completion installed" in done.stdout
    assert done.stdout.splitlines()[-1] == "mine"
