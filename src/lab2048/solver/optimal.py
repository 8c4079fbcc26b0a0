"""The player that looks every move up in a table of a solved game."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from lab2048.home import say, temporary_folder
from lab2048.player import Floats, Player, PlayerError, Words, option, ties_option
from lab2048.solve.problem import ON_THE_FLY, Problem
from lab2048.solve.store import default_folder, tables_folder
from lab2048.solve.table import Table, find_table, open_table

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
        object.__setattr__(self, "table", table_of(problem))

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


def table_of(problem: Problem) -> Table:
    """The table of a problem in the data folder; of a small board it is made if it has to be."""
    if find_table(problem) is None and problem.rules.cells <= ON_THE_FLY:
        from lab2048.solve.solver import make_table

        return made_table(problem, partial(make_table, problem))
    return open_table(problem)


def made_table(problem: Problem, make: Callable[[Path], object]) -> Table:
    """A table that is made now, by a function that is given its folder.

    If the data folder cannot be written to, that of a small board is made in a temporary one.
    """
    folder = default_folder(problem)
    try:
        make(folder)
    except OSError as error:
        if problem.rules.cells > ON_THE_FLY:
            raise
        why = os.strerror(error.errno) if error.errno else error
        say(f"cannot keep the table {problem.name} in {tables_folder()}: {why}")
        folder = temporary_folder("tables") / problem.name
        make(folder)
    return open_table(folder)
