"""The playthroughs under `golden/`: what the engine did once, it still does, and rightly."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest

from lab2048.learn.registry import learners
from lab2048.players import registry as players
from tests import naive
from tests.playthrough import FOLDER, P4, PLAYERS, player_playthrough, playthrough

NAMES = ["up", "right", "down", "left"]


def read(rows, cols):
    return (FOLDER / f"{rows}x{cols}.txt").read_text()


def test_every_shape_has_a_playthrough_and_there_is_no_other():
    assert {path.stem for path in FOLDER.glob("*.txt")} == {f"{r}x{c}" for r, c in naive.SHAPES}


@pytest.mark.parametrize(("rows", "cols"), naive.SHAPES)
def test_the_engine_still_plays_the_same_game(rows, cols):
    for number, (now, then) in enumerate(
        zip(playthrough(rows, cols).splitlines(), read(rows, cols).splitlines(), strict=True), 1
    ):
        assert now == then, f"line {number}"


def test_every_player_has_a_playthrough():
    found = {path.stem for path in (FOLDER / "players").glob("*.txt")}
    # a network that learns anew plays otherwise: its player has no playthrough
    assert found == set(players.PLAYERS) - set(learners()) == set(PLAYERS)


SLOW = ("montecarlo", "optimal")
"""They need kernels that no other quick test does."""


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in PLAYERS]
)
def test_a_player_still_thinks_and_plays_the_same(name, warm_home):
    then = (FOLDER / "players" / f"{name}.txt").read_text()
    for number, (now, line) in enumerate(
        zip(player_playthrough(name).splitlines(), then.splitlines(), strict=True), 1
    ):
        assert now == line, f"line {number}"


def parse(text):
    return [[0 if cell == "." else int(cell) for cell in row.split()] for row in text.split("/")]


@pytest.mark.parametrize(("rows", "cols"), naive.SHAPES)
def test_the_naive_game_agrees_with_every_line(rows, cols):
    grid, score = None, 0
    for block in read(rows, cols).split("\n\n")[1:-1]:
        found = dict(re.findall(r"^(\w+):? (.*)$", block, re.MULTILINE))
        if "move" in found:
            direction, reward, total = re.fullmatch(
                r"\d+: (\w+), reward (\d+), score (\d+)", found["move"]
            ).groups()
            grid, gained = naive.move(grid, NAMES.index(direction))
            score += gained
            assert (gained, score) == (int(reward), int(total))
            assert parse(found["after"]) == grid
            tile, cell = map(int, re.match(r"(\d+) on cell (\d+)", found["spawn"]).groups())
            assert grid[cell // cols][cell % cols] == 0
            chances = naive.spawns(grid, Fraction(P4.get((rows, cols), 0.1)))
            grid[cell // cols][cell % cols] = tile
            (p,) = [p for p, board in chances if board == grid]
            assert found["spawn"].endswith(f", chance {float(p):.6f}")
            assert parse(found["board"]) == grid
        grid = parse(found["board"])
        legal = [f"{NAMES[d]} +{naive.move(grid, d)[1]}" for d in naive.legal_moves(grid)]
        assert found["legal"] == (", ".join(legal) or "none")
        images = [naive.packed(image) for image in naive.images(grid)]
        digits = f"{min(images):0{rows * cols}x}"[::-1]
        assert found["age"] == (
            f"{naive.age(grid)}, empty {len(naive.empty_cells(grid))}, "
            f"canonical {digits} by symmetry {images.index(min(images))}"
        )
    assert naive.legal_moves(grid) == []
    assert f"over: score {score}, largest tile {max(map(max, grid))}" in read(rows, cols)
