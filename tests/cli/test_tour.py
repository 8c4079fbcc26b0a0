"""The tour."""

from __future__ import annotations

import json
import re

import pytest

from tests.cli.running import run


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
