"""The results of training runs: settings and log, as a table, a curve and a player."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from lab2048.learn.checkpoint import Record, flat
from lab2048.learn.curve import Point, curve, measured
from lab2048.learn.settings import Facts, LearnerSettings
from lab2048.tabular import Tabular

if TYPE_CHECKING:
    from lab2048.players.player import Player


@dataclass(frozen=True)
class TrainedRun(Tabular):
    """A training run that has finished or was stopped. Its rows are the records of its log.

    >>> import lab2048
    >>> run = lab2048.train.ntuple("2x2", episodes=20_000, out="one", against="2x2")
    >>> run.finished, round(run.log[-1]["exact"]["mean"], 2)
    (True, 66.96)
    >>> str(run.player(depth=2).choose("2 2 / 4 ."))
    'right'
    """

    kind: str
    """The name of its learner."""
    name: str
    path: Path
    """The folder of its weights, its log and what TensorBoard reads."""
    settings: LearnerSettings
    facts: Facts
    """The metadata that is stored with its network."""
    log: list[Record]
    more: Facts
    """More results of the learner (`Learner.summary`)."""
    perfect: float | None = None
    """The value of perfect play, if it was measured against a table."""
    finished: bool = True
    """Whether it has reached its goal."""
    counts: dict[str, float] = field(default_factory=dict)
    """All counts of its progress, such as games and moves (`Learner.counts`)."""
    exact: Facts | None = None
    """Its exact distance from perfect play at the end: `mean`, `regret`, `share` and more."""
    seconds_exact: float = 0.0
    """Time spent on measuring in this call, which `seconds` does not include."""

    @property
    def seconds(self) -> float:
        """Time spent on learning."""
        return float(self.facts["seconds"])

    def player(self, **options: Any) -> Player:
        """Return the player of its network, with options such as `simulations=100`."""
        from lab2048.players.registry import make_player

        given = "".join(f",{name}={value}" for name, value in options.items())
        return make_player(f"{self.kind}:{self.name}{given}", self.settings.rules)

    def as_json(self) -> dict[str, Any]:
        """Return the name, the metadata, the exact measurement (or null), the log and `more`."""
        moves = {"moves": self.counts["moves"]} if "moves" in self.counts else {}
        exact = {"seconds_exact": round(self.seconds_exact, 3), "exact": self.exact}
        return {"name": self.name, **self.facts, **moves, **exact, "log": self.log, **self.more}

    def rows(self) -> list[dict[str, Any]]:
        """Return the records, with the figures of `exact` and the like as `exact.mean`."""
        return level([flat(record) for record in self.log])


@dataclass(frozen=True)
class TrainedRuns(Tabular, Sequence[TrainedRun]):
    """Several runs that differ in their seeds. Their rows are the points of their curve.

    >>> import lab2048
    >>> runs = lab2048.train.ntuple("2x2", episodes=2000, block=1000, runs=3, out="several")
    >>> [run.name for run in runs], [point.count for point in runs.curve()]
    (['several-1', 'several-2', 'several-3'], [1000, 2000])
    """

    runs: tuple[TrainedRun, ...]

    @overload
    def __getitem__(self, index: int) -> TrainedRun: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[TrainedRun, ...]: ...
    def __getitem__(self, index: int | slice) -> TrainedRun | tuple[TrainedRun, ...]:
        return self.runs[index]

    def __len__(self) -> int:
        return len(self.runs)

    def __iter__(self) -> Iterator[TrainedRun]:
        return iter(self.runs)

    @property
    def exact(self) -> bool:
        """Whether the curve shows exact mean scores."""
        return self.measured == "exact"

    @property
    def measured(self) -> str:
        """What the curve shows: `exact` mean scores, `judged` ones, or `""` for training scores."""
        return measured([run.log for run in self.runs])

    def curve(self) -> list[Point]:
        """Return the mean across runs with half its 95% interval, where all have a record."""
        return curve([run.log for run in self.runs], self.runs[0].settings.counted)

    def as_json(self) -> list[dict[str, Any]]:
        """Return every run."""
        return [run.as_json() for run in self.runs]

    def rows(self) -> list[dict[str, Any]]:
        """Return the points of the curve."""
        counted = self.runs[0].settings.counted
        points = self.curve()
        return [{counted: p.count, "mean": p.mean, "ci95_half": p.half} for p in points]


def level(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows that all have the same keys; missing values are None."""
    names = dict.fromkeys(name for row in rows for name in row)
    return [{name: row.get(name) for name in names} for row in rows]
