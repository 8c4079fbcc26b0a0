"""How optimal play depends on p4, the chance that a new tile is a 4."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from lab2048.game import Rules
from lab2048.solver.objective import discount_text
from lab2048.solver.problem import Problem
from lab2048.solver.survey import Survey, survey
from lab2048.solver.tables import solve
from lab2048.tabular import Tabular

Progress = Callable[[str, int, int], object]


@dataclass(frozen=True)
class SurveyByP4(Tabular):
    """Surveys of one board that differ in p4.

    >>> survey_by_p4("2x2", [0.1, 0.2]).as_json()[0]["p4"]
    0.1
    """

    board: str
    gamma: float
    surveys: Sequence[Survey]
    """In the order in which p4 was given, without figures by move."""

    @property
    def tiles(self) -> list[int]:
        """All tiles that optimal play makes for some p4."""
        return sorted({tile for each in self.surveys for tile in each.reach})

    @property
    def title(self) -> str:
        """The board, and the discount if there is one."""
        return ", ".join([self.board, *discount_text(self.gamma, "gamma = {:g}")])

    def as_json(self) -> list[dict[str, Any]]:
        """Return for each p4 the value of a start, the score, and the chance of each tile."""
        return [
            {
                "p4": each.problem["p4"],
                "value": each.value["start"],
                "mean": each.score["mean"],
                "deviation": each.score["deviation"],
                "reach": each.reach,
            }
            for each in self.surveys
        ]

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per p4, with the chance to make each tile as `reach_TILE`."""
        found = []
        for row in self.as_json():
            reach = row.pop("reach")
            found.append(row | {f"reach_{tile}": reach.get(tile, 0.0) for tile in self.tiles})
        return found


def survey_by_p4(
    board: str | Rules,
    p4: Sequence[float],
    *,
    gamma: float = 1.0,
    threads: int | None = None,
    progress: Progress = lambda what, done, total: None,
) -> SurveyByP4:
    """Survey optimal play on a board for several chances of a 4.

    Missing tables are made. `progress` is called with the name of a table, the number of its
    states done, and their total.

    >>> found = survey_by_p4("2x2", [0, 0.1, 0.5])
    >>> [round(row["mean"], 1) for row in found.rows()]
    [68.0, 67.0, 55.9]
    """
    problems = [Problem.of(board, p4=each, gamma=gamma) for each in p4]
    if not problems:
        raise ValueError("give at least one p4 to survey")
    found = []
    for problem in problems:

        def tell(done: int, total: int, name: str = problem.name) -> None:
            progress(name, done, total)

        with solve(problem, threads=threads) as table:
            found.append(survey(table, threads=threads, by_move=False, progress=tell))
    return SurveyByP4(problems[0].rules.name, gamma, found)
