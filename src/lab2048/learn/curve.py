"""The curve of several trainings: means with intervals across them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lab2048.learn.checkpoint import Record
from lab2048.measure.intervals import student_half_width


@dataclass(frozen=True)
class Point:
    """Several trainings after a number of games: their mean, and half the width of its interval."""

    count: int
    """Of games, or of what else the learner counts."""
    mean: float
    half: float


MEASURED = ("exact", "judged")
"""Measurements that a curve is drawn of, the best first."""


def curve(runs: Sequence[Sequence[Record]], counted: str = "games") -> list[Point]:
    """Return the mean scores of several runs at all numbers that all of them have.

    They are the exact ones, those of judged games, or those of the games of the training, whichever
    is known; where records have no scores, their losses.
    """
    name = measured(runs)
    values = [
        {each[counted]: score_of(each, name) for each in run if not name or name in each}
        for run in runs
    ]
    shared = sorted(set.intersection(*(set(each) for each in values)))
    scores = {count: [each[count] for each in values] for count in shared}
    return [Point(count, float(np.mean(s)), student_half_width(s)) for count, s in scores.items()]


def measured(runs: Sequence[Sequence[Record]]) -> str:
    """Return the measurement that all trainings have, if not all the time; `""` if none."""
    found = (n for n in MEASURED if all(any(n in record for record in run) for run in runs))
    return next(found, "")


def score_of(record: Record, name: str) -> float:
    """Return the mean score of a measurement, or that of the record's games, or its loss."""
    if name:
        return float(record[name]["mean"])
    return float(record["mean"] if "mean" in record else record["loss"])
