"""Options that count things."""

from __future__ import annotations

import re

import pytest

from lab2048.game.notation import counted


def test_numbers_of_things():
    found = {"5000": 5000, "200k": 200_000, "4.1M": 4_100_000, "16.1k": 16_100, "1m": 10**6}
    assert {text: counted(text) for text in found} == found
    for text in ("0.5", "1.0001k", "-1", "1e3", "1G", "", "k", "1_0", "\u0663"):
        with pytest.raises(ValueError, match="a number of games is written like"):
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
    assert code == 2 and "'--games': a number of games is written like 5000, 200k or 1M" in err
