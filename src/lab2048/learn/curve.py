"""The learning curve of several runs: means across them, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lab2048.learn.checkpoint import MEASURED, Record
from lab2048.measure.intervals import student_half_width


@dataclass(frozen=True)
class Point:
    """The mean of several runs after a number of games, and half the width of its interval."""

    count: int
    """Of games, or whatever the learner counts."""
    mean: float
    half: float


def curve(runs: Sequence[Sequence[Record]], counted: str = "games") -> list[Point]:
    """Return the mean scores across runs, at the counts that all runs have.

    Scores are the best that all runs have: exact ones, those of judged games, or those of training
    games; if records have no scores, their losses take the place.
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
    """Return the measurement that every run has in at least one record; `""` if there is none."""
    found = (n for n in MEASURED if all(any(n in record for record in run) for run in runs))
    return next(found, "")


def score_of(record: Record, name: str) -> float:
    """Return the mean score of a measurement, or that of the record's games, or its loss."""
    if name:
        return float(record[name]["mean"])
    return float(record["mean"] if "mean" in record else record["loss"])
