"""The command probe."""

from __future__ import annotations

import json

import pytest

from lab2048.solver.job import make_table
from lab2048.solver.problem import Problem
from tests.cli.running import SQUARE

UNSOLVED = dict.fromkeys(["after_value", "q", "regret", "optimal", "mark"])


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


@pytest.mark.slow
def test_a_table_that_is_named_says_its_own_p4(command, warm_home):
    make_table(Problem.of("2x2", p4=0.3))
    code, out, _ = command("probe", "2 2 / 4 .", "--table", "2x2-score-p4-0.3", "--json")
    assert code == 0 and json.loads(out)["rules"]["p4"] == 0.3
    code, _, err = command("probe", "2 2 / 4 .", "--table", "2x2-score-p4-0.3", "--p4", "0.1")
    assert code == 2 and "what is asked for is 2x2-score" in err
