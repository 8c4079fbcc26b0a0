"""The command line: what it prints, and what it says of bad input."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
import typer

import lab2048
from lab2048.cli.app import app
from tests.cli.running import SQUARE, run


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
    ("--nonsense",): "No such option: --nonsense (see --help)",
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


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_behind_the_output_is_said(unbuffered, monkeypatch):
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
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
