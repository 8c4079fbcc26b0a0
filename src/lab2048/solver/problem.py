"""What is solved: the rules of the game and an objective."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from lab2048.game import Board, Rules
from lab2048.solver.objective import Objective, Score, discount_text, parse_objective

MAX_CELLS = 12
"""Larger boards make tiles whose rank exceeds four bits, and more states than disks can hold."""
ON_THE_FLY = 8
"""Boards of up to this many cells are solved on demand, in about a second."""
START_KINDS = ("2+2", "2+4", "4+4")
"""The kinds of start, named by their two tiles."""
StartValues = dict[str, float | None]


@dataclass(frozen=True, slots=True)
class Problem:
    """Rules and an objective (`lab2048.solver.objective`).

    >>> Problem.of("3x3", objective="reach:512").name
    '3x3-reach-512'
    """

    rules: Rules
    objective: Objective = field(default_factory=Score)

    def __post_init__(self) -> None:
        if self.rules.cells > MAX_CELLS:
            raise ValueError(
                f"boards of up to {MAX_CELLS} cells can be solved; {self.rules.name} has "
                f"{self.rules.cells}"
            )
        self.objective.check(self.rules)

    @classmethod
    def of(
        cls,
        board: str | Rules,
        *,
        p4: float | None = None,
        objective: str | Objective = Score.name,
        gamma: float = 1.0,
    ) -> Problem:
        """The problem of a board such as `3x3` and an objective such as `reach:512`."""
        rules = board if isinstance(board, Rules) else Rules.parse(board)
        if p4 is not None:
            rules = Rules(rules.rows, rules.cols, p4)
        wanted = objective if isinstance(objective, Objective) else parse_objective(objective)
        return cls(rules, wanted.discounted(gamma))

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> Problem:
        """The problem that `as_json` describes."""
        return cls.of(
            found["board"], p4=found["p4"], objective=found["objective"], gamma=found["gamma"]
        )

    def as_json(self) -> dict[str, Any]:
        """The fields that identify the problem, JSON-serialisable."""
        return {
            "board": self.rules.name,
            "p4": self.rules.p4,
            "objective": self.goal,
            "gamma": self.gamma,
        }

    @property
    def goal(self) -> str:
        """The objective as written on the command line."""
        return self.objective.text

    @property
    def gamma(self) -> float:
        """The discount per move."""
        return self.objective.gamma

    @property
    def name(self) -> str:
        """The default name of the table's folder, for values of float64."""
        parts = [self.rules.name, self.goal.replace(":", "-")]
        if self.rules.p4 != Rules(2, 2).p4:
            parts.append(f"p4-{self.rules.p4!r}")
        return "-".join(parts + discount_text(self.gamma, "gamma-{!r}"))

    @property
    def rule(self) -> tuple[float, ...]:
        """The parameters of the kernels (`Objective.rule`)."""
        return self.objective.rule(self.rules.p4)

    def starts(self) -> Iterator[tuple[str, float, Board]]:
        """Every possible pair of first spawns: kind of start, chance, canonical board."""
        rules = self.rules
        empty = Board((0,) * rules.cells, rules.rows, rules.cols)
        for first in rules.spawns(empty):
            for second in rules.spawns(first.board):
                tiles = sorted((1 << first.rank, 1 << second.rank))
                chance = first.probability * second.probability
                yield f"{tiles[0]}+{tiles[1]}", chance, second.board.canonical().board


def problem_of(
    board: str | Rules | Problem,
    *,
    objective: str | Objective = Score.name,
    p4: float | None = None,
    gamma: float = 1.0,
) -> Problem:
    """Return a given problem unchanged, or the problem of a board and an objective.

    >>> problem_of(Problem.of("3x3"), p4=0.3)
    Traceback (most recent call last):
    ...
    ValueError: the problem 3x3-score has its own objective, p4 and gamma
    """
    if not isinstance(board, Problem):
        return Problem.of(board, p4=p4, objective=objective, gamma=gamma)
    if objective != Score.name or p4 is not None or gamma != 1:
        raise ValueError(f"the problem {board.name} has its own objective, p4 and gamma")
    return board


def start_values(problem: Problem, value_of: Callable[[Board], float]) -> StartValues:
    """The value of a start drawn by the rules, and of each kind of start; None if it cannot occur.

    A kind's value is the mean over the positions of the two tiles.
    """
    found = [(kind, chance, value_of(board)) for kind, chance, board in problem.starts()]
    values: StartValues = {"start": math.fsum(chance * value for _, chance, value in found)}
    for kind in START_KINDS:  # all starts of a kind are equally likely
        some = [value for name, _, value in found if name == kind]
        values[kind] = math.fsum(some) / len(some) if some else None
    return values
