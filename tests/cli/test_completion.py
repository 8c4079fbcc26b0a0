"""Shells complete names."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import numpy as np
import pytest

from lab2048.cli import completion
from lab2048.learn.network_files import FILE, network_folder, write_tensors
from lab2048.players import registry
from tests.interpreter import python


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
    assert python(code, **asked).stdout.splitlines() == ["ntuple:mine", "set()"]


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
