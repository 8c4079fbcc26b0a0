"""The curve of several trainings: means with intervals across them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lab2048.learn.checkpoint import Record
from lab2048.measure.intervals import student_half_width


class Point(NamedTuple):
    """Several trainings after a number of games: their mean, and half the width of its interval."""

    games: int
    """Or what else is counted."""
    mean: float
    half: float


def curve(runs: Sequence[Sequence[Record]], counted: str = "games") -> list[Point]:
    """Return the exact mean scores, or those of the games, at all numbers that all runs have.

    Where records have no scores, their losses.
    """
    exact = are_exact(runs)
    values = [
        {each[counted]: score_of(each, exact) for each in run if "exact" in each or not exact}
        for run in runs
    ]
    shared = sorted(set.intersection(*(set(each) for each in values)))
    scores = {games: [each[games] for each in values] for games in shared}
    return [Point(games, float(np.mean(s)), student_half_width(s)) for games, s in scores.items()]


def are_exact(runs: Sequence[Sequence[Record]]) -> bool:
    """Return whether all trainings were measured exactly, if not all the time."""
    return all(any("exact" in record for record in run) for run in runs)


def score_of(record: Record, exact: bool) -> float:
    """Return the exact mean score, or that of the record's games, or its loss."""
    if exact:
        return float(record["exact"]["mean"])
    return float(record["mean"] if "mean" in record else record["loss"])
