"""Objectives: those that come with lab2048, and some that somebody else wrote."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from importlib.metadata import EntryPoint, EntryPoints

import numpy as np
import pytest

from lab2048.game import Board, Rules
from lab2048.solver import objective as module
from lab2048.solver.job import make_table
from lab2048.solver.objective import (
    Objective,
    Reach,
    Score,
    WorstCase,
    discount_text,
    parse_objective,
    register_objective,
    tiles_to_reach,
    usual_objectives,
)
from lab2048.solver.problem import Problem
from lab2048.solver.survey import survey
from lab2048.solver.table import Table
from lab2048.solver.table_files import TableError
from lab2048.solver.verify import verify
from tests import naive

# -- what somebody else would write --------------------------------------------------------------


@dataclass(frozen=True)
class Moves(Objective):
    """The expected number of moves until the game ends."""

    name = "moves"
    points = 0.0
    per_move = 1.0
    unit = "moves"


@dataclass(frozen=True)
class Risk(Objective):
    """Between the expected score and the one that is certain."""

    name, form = "risk", "risk:SHARE"
    worst: float = 0.5

    @classmethod
    def parse(cls, argument):
        if argument is None:
            raise ValueError("the share is missing")
        return cls(float(argument))

    @property
    def argument(self):
        return repr(self.worst)


@dataclass(frozen=True)
class Soon(Objective):
    """The chance to make a tile, worth less with every move that it takes."""

    name, form = "soon", "soon:TILE"
    points, chances = 0.0, True
    gamma = 0.5
    tile: int = 8

    @classmethod
    def parse(cls, argument):
        return cls(int(argument))

    @property
    def argument(self):
        return str(self.tile)


@pytest.fixture(autouse=True)
def own_registry(monkeypatch):
    """No objectives but those that come with lab2048."""
    known = {name: module._objectives[name] for name in ("score", "worst-case", "reach")}
    monkeypatch.setattr(module, "_objectives", known)


NEW = [
    (Moves, "moves", {"points": Fraction(0), "per_move": Fraction(1)}),
    (Risk, "risk:0.25", {"worst": Fraction(1, 4)}),
    (Risk, "risk:1.0", {"worst": Fraction(1)}),
    (Soon, "soon:16", {"points": Fraction(0), "gamma": Fraction(1, 2), "tile": 16}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "text", "meaning"), NEW)
@pytest.mark.parametrize("stored", ["float64", "float32"])
def test_a_new_objective_is_solved_exactly(tmp_path, kind, text, meaning, stored):
    register_objective(kind)
    problem = Problem.of("2x2", objective=text)
    make_table(problem, tmp_path / "t", values=stored)
    graph = naive.game_graph(2, 2, Fraction(1, 10))
    wanted = naive.valued(graph, **meaning)
    rel = 1e-12 if stored == "float64" else 1e-6
    with Table(tmp_path / "t") as table:
        assert table.problem == problem and table.problem.goal == text
        assert verify(table, full=True)["compared"] == table.states
        boards = [Board.parse(naive.text(state)) for state in graph]
        many = table.probe_many(np.array([board.packed for board in boards], np.uint64))
        for place, (state, board) in enumerate(zip(graph, boards, strict=True)):
            if board not in table:  # the game ended before
                continue
            value = pytest.approx(float(wanted[state]), rel=rel, abs=1e-30)
            assert table.value(board) == value
            assert many.value[place] == value
            for direction, move in table.moves(board).items():
                assert many.q[place, direction] == pytest.approx(move.q, rel=1e-9)


def test_the_naive_twin_knows_the_objectives_that_come_with_lab2048():
    graph = naive.game_graph(2, 2, Fraction(1, 10))
    assert naive.valued(graph) == naive.expected_scores(graph)
    assert naive.valued(graph, worst=Fraction(1)) == naive.certain_scores(graph)
    reach = naive.valued(graph, points=Fraction(0), tile=16)
    assert reach == naive.chances_to_make(graph, 16)


@pytest.mark.slow
def test_a_new_objective_works_on_the_command_line(command, warm_home):
    register_objective(Moves)
    code, out, _ = command("solve", "2x2", "--objective", "moves", "--json")
    found = json.loads(out)
    assert code == 0 and found["objective"] == "moves"
    assert (warm_home / "tables" / "2x2-moves").is_dir()
    graph = naive.game_graph(2, 2, Fraction(1, 10))
    moves = naive.valued(graph, points=Fraction(0), per_move=Fraction(1))
    starts = naive.starts(2, 2, Fraction(1, 10))
    mean = sum(chance * moves[start] for start, chance in starts.items())
    assert found["value"]["start"] == pytest.approx(float(mean), rel=1e-12)
    code, out, _ = command("probe", "2 2 / . .", "--objective", "moves", "--json")
    assert code == 0 and json.loads(out)["value"] == pytest.approx(
        float(moves[(2, 2), (0, 0)]), rel=1e-12
    )


def test_objectives_of_other_distributions_are_found(monkeypatch):
    entry = EntryPoint("moves", "tests.solver.test_objective:Moves", "lab2048.objectives")
    monkeypatch.setattr(
        "importlib.metadata.entry_points", lambda **wanted: EntryPoints([entry]).select(**wanted)
    )
    assert Problem.of("2x2", objective="moves").name == "2x2-moves"
    entry = EntryPoint("gone", "tests.solver.nowhere:Gone", "lab2048.objectives")
    with pytest.raises(ValueError, match=r"the objective gone cannot be loaded: No module"):
        Problem.of("2x2", objective="gone")
    with pytest.raises(ValueError, match=r"an objective is .* not 'steps'"):
        Problem.of("2x2", objective="steps")


# -- how they are written ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "objective"),
    [("score", Score()), ("worst-case", WorstCase()), ("reach:512", Reach(512))],
)
def test_objectives_are_written_as_they_are_read(text, objective):
    assert parse_objective(text) == objective
    assert objective.text == text


def test_what_the_kernels_are_given():
    assert Problem.of("3x3", gamma=0.9).rule == (0.1, 0.9, 0.0, 1.0, 0.0, 0.9)
    assert Problem.of("3x3", objective="worst-case").rule == (0.1, 1.0, 1.0, 1.0, 0.0, 1.0)
    assert Problem.of("3x3", objective="reach:64").rule == (0.1, 1.0, 0.0, 0.0, 0.0, 1.0)
    assert Problem.of("3x3", objective="reach:64").objective.stop == 6


def test_errors_name_what_there_is():
    register_objective(Risk)
    for text in ("risk:a", "risk", "wrong", "score:", 7, "reach:", "reach:٣"):
        with pytest.raises(
            ValueError, match=r"^an objective is score, .*registered, risk:SHARE, "
        ) as found:
            Problem.of("2x2", objective=text)
        assert "\n" not in str(found.value)
    with pytest.raises(ValueError, match="the share is missing"):
        Problem.of("2x2", objective="risk")


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"argument": "../mine"}, "an objective names a folder"),
        ({"worst": 2.0}, "worst and gamma of the objective odd are from 0 to 1"),
        ({"gamma": float("nan")}, "worst and gamma"),
        ({"points": -1.0}, "points and per_move of the objective odd are 0 or more"),
        ({"per_move": float("inf")}, "points and per_move"),
        ({"tile": 16}, "ends with a tile, so points must be 0"),
        ({"tile": 5, "points": 0.0}, "a tile to reach on 2x2 is a power of two from 8 to 32"),
    ],
)
def test_an_objective_that_makes_no_sense_is_refused(attributes, message):
    odd = type("Odd", (Objective,), {"name": "odd", **attributes})
    with pytest.raises(ValueError, match=message):
        Problem(Rules(2, 2), odd())


def test_only_some_objectives_have_a_discount():
    class Later(Moves):
        name = "later"
        gamma: float = 1.0

    later = register_objective(dataclass(frozen=True)(Later))
    problem = Problem.of("2x2", objective="later", gamma=0.25)
    assert problem == Problem(Rules(2, 2), later(0.25)) == Problem.from_json(problem.as_json())
    assert Problem.of("2x2", objective=Score(0.5)).gamma == 0.5
    for text in ("reach:8", "worst-case"):
        with pytest.raises(ValueError, match=r"gamma belongs to the objective score or later, not"):
            Problem.of("2x2", objective=text, gamma=0.25)
    Later.gamma = 0.5
    with pytest.raises(ValueError, match="so its default must be 1"):
        register_objective(later)


def test_what_cannot_be_registered_is_said():
    with pytest.raises(TypeError, match="an objective is a subclass of"):
        register_objective(int)
    for name in ("", "Two Words", "a:b", "../x", 3):
        with pytest.raises(ValueError, match="the name of an objective is of lower-case letters"):
            register_objective(type("Named", (Objective,), {"name": name}))
    with pytest.raises(ValueError, match="there is an objective score already"):
        register_objective(type("Mine", (Objective,), {"name": "score"}))
    again = type("Score", (Score,), {"__module__": Score.__module__, "__qualname__": "Score"})
    assert register_objective(again) is again and parse_objective("score") == again()


# -- what others ask of it -----------------------------------------------------------------------


@dataclass(frozen=True)
class Twice(Score):
    """Twice the score: a kind of score by its class, but not by its values."""

    name = "twice"
    points = 2.0


@dataclass(frozen=True)
class Same(Objective):
    """The score under another name."""

    name = "same"


def test_the_score_is_known_by_what_is_counted_not_by_its_name():
    assert Score().is_score and Score(0.5).is_score and Same().is_score
    for other in (WorstCase(), Reach(16), Moves(), Risk(0.5), Twice()):
        assert not other.is_score, other


@pytest.mark.slow
def test_a_survey_is_of_scores_only(tmp_path):
    register_objective(Twice)
    make_table(Problem.of("2x2", objective="twice"), tmp_path / "t")
    with Table(tmp_path / "t") as table, pytest.raises(TableError, match="not for twice"):
        survey(table)


def test_texts_that_name_objectives_and_discounts():
    assert usual_objectives() == "score, worst-case or reach:TILE"
    assert "reach:TILE (the chance to make it)" in usual_objectives(explained=True)
    assert discount_text(1.0) == [] and discount_text(0.5) == ["gamma 0.5"]
    assert Problem.of("2x2", gamma=0.1 + 0.2).name == "2x2-score-gamma-0.30000000000000004"
    assert tiles_to_reach(Rules(2, 2)) == [8, 16, 32]
