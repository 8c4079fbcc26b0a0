"""What may be solved, and under which name."""

from __future__ import annotations

import pytest

from lab2048.solver.problem import Problem


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"board": "4x4"}, "boards of up to 12 cells can be solved; 4x4 has 16"),
        ({"board": "3x3", "objective": "win"}, "an objective is score, worst-case or reach:TILE"),
        ({"board": "3x3", "objective": "reach"}, "an objective is"),
        ({"board": "3x3", "objective": "reach:500"}, "a power of two from 8 to 1024, not 500"),
        ({"board": "3x3", "objective": "reach:2048"}, "a power of two from 8 to 1024"),
        ({"board": "3x3", "objective": "reach:4"}, "a power of two from 8 to 1024, not 4"),
        ({"board": "3x3", "objective": "score:1"}, "an objective is"),
        ({"board": "3x3", "gamma": 1.5}, "gamma is a number from 0 to 1, not 1.5"),
        ({"board": "3x3", "gamma": float("nan")}, "gamma is a number"),
        ({"board": "3x3", "objective": "worst-case", "gamma": 0.5}, "gamma belongs to"),
        ({"board": "3x3", "p4": 2}, "p4, the chance of a 4"),
    ],
)
def test_what_cannot_be_solved_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Problem.of(options.pop("board"), **options)


def test_problems_have_names_of_their_own():
    problems = [
        Problem.of("3x3"),
        Problem.of("3x3", p4=0.2),
        Problem.of("3x3", gamma=0.9),
        Problem.of("3x3", objective="reach:64"),
        Problem.of("3x3", objective="worst-case"),
        Problem.of("2x3"),
    ]
    assert len({problem.name for problem in problems}) == len(problems)
    for problem in problems:
        assert Problem.from_json(problem.as_json()) == problem
