"""Marks for moves: how good each was, no finer than its judge can tell.

A judge is the table of a solved game, or a player. A move is marked by the share of the best
move's value that it gives away, and moves that the judge cannot tell from the best count as best.
Only a judge whose error has been measured grades moves: others only say which move is theirs.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

import numpy as np

from lab2048.engine.arrays import Floats
from lab2048.game import P4
from lab2048.players.player import Player
from lab2048.solver.optimal import even_out, objective_of
from lab2048.solver.table import Table

GRADES = ("good", "slip", "mistake", "blunder")
STEPS = (0.005, 0.03, 0.10)
"""Shares of the value at which a slip, a mistake and a blunder begin."""
BEST, OTHER = "best", "other"
"""Equal to the best move; not the move of a judge that cannot grade."""
MARKS = (BEST, *GRADES, OTHER)
NEGLIGIBLE = 1e-6
"""Share of the value up to which a loss is ignored, although a table can resolve it."""

ERRORS = {
    ("4x4", "ntuple"): 0.31,
    ("4x4", "ntuple:depth=2"): 0.09,
    ("4x4", "ntuple:depth=3"): 0.06,
    ("4x4", "ntuple:depth=4"): 0.05,
    ("3x3", "ntuple"): 0.76,
    ("3x3", "ntuple:depth=2"): 0.38,
    ("3x3", "ntuple:depth=3"): 0.31,
    ("3x3", "ntuple:depth=4"): 0.29,
}
"""Bounds on the error of the loss of a move, as a share of the value, for 95% of all moves.

Measured on positions of weak and strong players by `python benchmarks/judge_error.py 4x4` (against
depth 6, whose own errors do not show) and `python benchmarks/judge_error.py 3x3 --positions 2000`
(against perfect play).
"""


def error_of(judge: Table | Player) -> float | None:
    """Error bound of a judge's losses, as a share of the value; None if it is not known."""
    if isinstance(judge, Table) or objective_of(judge) is not None:
        return 0.0
    return ERRORS.get((judge.rules.name, judge.spec)) if judge.rules.p4 == P4 else None


def caveat(judge: Table | Player) -> str:
    """The limits of a judge's marks, in words; empty if it is exact."""
    error = error_of(judge)
    if error is None:
        return "The error of this judge is not known: it only tells which moves are its own."
    if error == 0:
        return ""
    return f"Moves within {error:.0%} of the best count as best: this judge may be that far off."


def settle(values: Floats, judge: Table | Player) -> Floats:
    """Values of the moves of many boards, with those as good as the best made equal to it.

    A value is as good as the best if the judge cannot tell the two apart.
    """
    if isinstance(judge, Table):
        return even_out(values, judge.tolerance)
    slack = max(judge.tie, error_of(judge) or 0.0)
    with np.errstate(invalid="ignore"):  # some players give moves minus infinity
        return even_out(values, lambda best: slack * np.maximum(np.abs(best), 1.0))


def mark(regret: float, best: float, judge: Table | Player) -> str:
    """The mark of a move that gives away `regret` of the value `best`, both after `settle`."""
    objective = objective_of(judge)
    chances = objective is not None and objective.chances
    share = regret / (best or 1.0) if chances else regret / max(abs(best), 1.0)
    if not share > NEGLIGIBLE:  # NaN too: all moves are worth minus infinity
        return BEST
    return OTHER if error_of(judge) is None else GRADES[bisect_right(STEPS, share)]


def is_mistake(mark: str) -> bool:
    """Whether a mark is slip, mistake or blunder."""
    return mark in GRADES[1:]


def count_marks(marks: Iterable[str]) -> dict[str, int]:
    """The number of moves with each mark, best first; without marks that do not occur."""
    found = list(marks)
    return {each: found.count(each) for each in MARKS if each in found}


def marks_text(mark: str, count: int) -> str:
    """A number of moves with a mark, in words."""
    return f"{count:,} {mark}{'s' if is_mistake(mark) and count != 1 else ''}"
