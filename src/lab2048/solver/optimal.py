"""The player that looks every move up in a table of a solved game."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from lab2048.engine.arrays import Floats, Words
from lab2048.players.player import Player, PlayerError, option, ties_option
from lab2048.solver.problem import Problem
from lab2048.solver.table import Table
from lab2048.solver.tables import ensure_table

OBJECTIVES = "score, worst-case or reach:TILE"


@dataclass(frozen=True, eq=False)
class Optimal(Player):
    """A best move, by the table of the solved game."""

    objective: str = option("score", f"what the table was solved for: {OBJECTIVES}")
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
        return self.objective == "score"

    def prepare(self) -> None:
        self.table.compile()
        super().prepare()

    def values_many(self, boards: Words, words: Words) -> Floats:
        q = self.table.probe_many(boards, threads=1).q
        assert q is not None
        return even_out(q, self.table.tolerance)


def even_out(q: Floats, tolerance: Callable[[Floats], Floats]) -> Floats:
    """The values of moves, with those that count as equally good as the best made equal to it."""
    best = np.max(np.where(np.isnan(q), -np.inf, q), axis=1, keepdims=True)
    return np.where(best - q <= tolerance(best), best, q)
