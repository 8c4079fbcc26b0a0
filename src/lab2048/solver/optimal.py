"""The player that looks up every move in the table of a solved game."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from lab2048.engine.arrays import Floats, Words
from lab2048.players.player import Player, PlayerError, option, ties_option
from lab2048.solver.objective import Objective, usual_objectives
from lab2048.solver.problem import Problem
from lab2048.solver.table import Table
from lab2048.solver.tables import ensure_table


@dataclass(frozen=True, eq=False)
class Optimal(Player):
    """Plays a best move, looked up in the table of the solved game."""

    objective: str = option("score", f"what the table was solved for: {usual_objectives()}")
    ties: str = ties_option()

    name = "optimal"
    about = "a best move, by the table of the solved game"
    meaning = "exact value of the move, for the objective"
    tie = 0.0  # the table says what counts as equal
    table: Table = field(init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            problem = Problem.of(self.rules, objective=self.objective)
        except ValueError as error:
            raise PlayerError(str(error)) from None
        object.__setattr__(self, "table", ensure_table(problem))

    @property
    def symmetric(self) -> bool:
        return self.splits

    @property
    def points(self) -> bool:
        return self.table.objective.is_score and self.table.objective.gamma == 1

    def prepare(self) -> None:
        self.table.compile()
        super().prepare()

    def values_many(self, boards: Words, words: Words) -> Floats:
        q = self.table.probe_many(boards, threads=1).q
        assert q is not None
        return even_out(q, self.table.tolerance)


def objective_of(judge: Table | Player) -> Objective | None:
    """The objective whose exact values a judge gives; None unless it is a table or `Optimal`."""
    if isinstance(judge, Optimal):
        judge = judge.table
    return judge.objective if isinstance(judge, Table) else None


def even_out(q: Floats, tolerance: Callable[[Floats], Floats]) -> Floats:
    """The values of moves, with all that count as equal to the best set to the best."""
    best = np.max(np.where(np.isnan(q), -np.inf, q), axis=1, keepdims=True)
    return np.where(best - q <= tolerance(best), best, q)
