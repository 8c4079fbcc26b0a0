"""The base class of learners: what a learning algorithm has to define.

The trainer (`trainer`) does everything that all algorithms have in common: goals, checkpoints,
logs, Ctrl-C, resuming, several runs, and the comparison with perfect play. An algorithm is a
dataclass of settings (`LearnerSettings`) and a class derived from `Learner` with five things: its
initial state, one small step, a summary of the last steps, the tensors needed to resume, and a
player. docs/learning.md has a complete example in thirty lines.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np

from lab2048.game.notation import checked_threads
from lab2048.learn.checkpoint import MEASURED, Record
from lab2048.learn.network_files import TRAINING, Tensors, read_tensors, write_tensors
from lab2048.learn.settings import Facts, LearnerSettings

if TYPE_CHECKING:
    from lab2048.players.player import Player
    from lab2048.solver.table import Table

GAME = "game."
"""Prefix of the names of tensors that hold positions and games; only training needs them."""
ROUNDING = 1e-12
"""Shares that differ by less count as equal."""
PARTS = 20
"""The number of records per run if its settings have no `parts`."""

S = TypeVar("S", bound=LearnerSettings)


class DivergedError(ValueError):
    """Training has diverged: values or weights are huge, infinite or NaN."""


@dataclass(frozen=True)
class Goal:
    """How long to train: limits on what the learner counts, or on seconds.

    A run ends when the first of its limits is reached; it has at least one.
    """

    count: int | None = None
    """The limit on what the settings call `counted`."""
    seconds: float | None = None
    measured: bool = False
    """Whether every record is measured against a table, which is a reason to have fewer records."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """Limits on what else the learner counts, such as moves."""

    def share(self, learner: Learner[Any], **now: float) -> float:
        """Return the share of the goal that is reached; `now` has counts from within a step."""
        shares = [] if self.seconds is None else [learner.seconds / self.seconds]
        limits = dict(self.counts)
        if self.count is not None:
            limits[learner.settings.counted] = self.count
        if limits:
            reached = {**learner.counts(), **now}
            shares += [reached[name] / limit for name, limit in limits.items()]
        return max(shares)


class Learner(ABC, Generic[S]):
    """A training run of one algorithm: what it has learnt so far, and how it learns more.

    A step adds to `done`. The trainer adds the duration of a step to `seconds`, unless the step has
    done so itself, for instance to leave out compilation. The constructor takes the settings and
    a number of threads.

    >>> from lab2048 import Rules, player
    >>> class Idle(Learner):
    ...     settings_class = LearnerSettings
    ...     def step(self, goal):
    ...         self.done += 1
    ...     def record(self):
    ...         return {"mean": 0.0}
    ...     def tensors(self):
    ...         return {}
    ...     def player(self):
    ...         return player("random", self.settings.rules)
    >>> learner = Idle(LearnerSettings(Rules(2, 2)))
    >>> learner.step(Goal(count=4))
    >>> Goal(count=4).share(learner), learner.facts["steps"]
    (0.25, 1)
    """

    settings_class: ClassVar[type[LearnerSettings]]
    kind: ClassVar[str] = ""
    """The name under which it is registered; its networks play as KIND:NAME."""
    needed: ClassVar[Mapping[str, type]] = {}
    """Facts that every checkpoint has besides the settings, and their types."""
    same_threads: ClassVar[bool] = False
    """Whether a run resumes only with the number of threads it began with (the fact `threads`)."""
    exact_records: ClassVar[str] = "small"
    """On which boards records are measured exactly: `small` ones, `all` if the exact value of the
    player is cheap, or `none`. On others the table judges games, and the exact value is computed at
    the end only."""
    judged_as: ClassVar[str] = "judged"
    """The field of a record that has the results of judged games (see `checkpoint.MEASURED`)."""

    def __init__(self, settings: S, threads: int | None = None) -> None:
        self.settings = settings
        self.threads = checked_threads(threads)
        self.measuring = threads
        """The number of threads that measure against a table; None for all cores."""
        self.done = 0
        """The number of games, moves, epochs or steps so far: of `LearnerSettings.counted`."""
        self.seconds = 0.0
        """Time spent on learning."""
        self.stopped = False
        """Set by a signal or another thread: the current step is to end as soon as it can."""
        self.on_progress: Callable[[float, str], object] = lambda share, what: None
        self.say: Callable[[str], object] = lambda text: None
        """Show the user a line of text."""
        self._told = 0.0

    # -- what an algorithm defines ---------------------------------------------------------------

    @abstractmethod
    def step(self, goal: Goal) -> None:
        """Learn for about a second; a run is stopped and saved only between steps.

        `goal.share(self)` is the share of the training that is done, for schedules such as that of
        a falling learning rate.
        """

    @abstractmethod
    def record(self) -> Record:
        """Return a summary of the steps since the last record, with `mean` or `loss`.

        Curves show one of these two, the mean score of games or a loss.
        """

    @abstractmethod
    def tensors(self) -> Tensors:
        """Return the tensors that, with the facts, are needed to play and to resume."""

    @abstractmethod
    def player(self) -> Player:
        """Return the player that is measured: what has been learnt so far, without search."""

    @property
    def facts(self) -> Facts:
        """Metadata of the run, JSON-serialisable; a subclass adds what it needs to resume."""
        counted = self.settings.counted
        found = {**self.settings.facts, counted: self.done, "seconds": self.seconds}
        return {**found, "threads": self.threads} if self.same_threads else found

    def resume(self, facts: Facts, tensors: Tensors) -> None:
        """Restore the state of a checkpoint; a subclass restores its tensors."""
        self.done, self.seconds = facts[self.settings.counted], facts["seconds"]

    @classmethod
    def player_of(cls, facts: Facts, tensors: Tensors) -> Player:
        """Return the player of a stored network; packed networks are played by it too.

        This one makes the whole learner; a learner that stores more than its player needs overrides
        it. A packed network has no tensors whose names begin with `GAME`.
        """
        learner = cls(cls.settings_class.from_facts(facts), 1)  # type: ignore[arg-type]
        learner.resume(facts, tensors)
        return learner.player()

    # -- what an algorithm may override ----------------------------------------------------------

    def prepare(self) -> None:
        """Load what a run needs, such as data; called before `resume`, and for new runs too."""

    def check_same(self, facts: Facts) -> None:
        """Raise a `ValueError` unless a checkpoint can resume with what `prepare` has loaded."""

    def start(self, goal: Goal) -> None:
        """Get ready to train towards a goal; called once, before the first step."""
        self._told = goal.share(self)

    def due(self, goal: Goal) -> bool:
        """Return whether it is time for a record; a run has about `parts`, spread evenly."""
        parts = getattr(self.settings, "parts", PARTS)
        share = goal.share(self)
        if self.stopped or share < min(1.0, self._told + 1 / parts) - ROUNDING:
            return False
        self._told = share
        return True

    def measure(self, table: Table) -> Record:
        """Return the distance of its player from perfect play, as fields of a record."""
        from lab2048.learn import distance

        player = self.player()
        if distance.exact_at_records(player, self.exact_records):
            return {"exact": distance.exactly(player, table, self.measuring)}
        return {self.judged_as: distance.by_games(player, table, self.measuring)}

    def measure_at_end(self, table: Table) -> Facts | None:
        """Return the exact distance of its player from perfect play; None if it is too costly."""
        from lab2048.learn import distance

        player = self.player()
        if not distance.exact_at_end(player):
            return None
        return distance.exactly(player, table, self.measuring)

    def counts(self) -> dict[str, float]:
        """Return all counts of its progress, such as games and moves.

        They include the settings' `counted` and all of their `limits`.
        """
        return {self.settings.counted: self.done}

    @classmethod
    def check_measurable(cls, settings: LearnerSettings) -> None:
        """Raise a `ValueError` if a run with these settings cannot be measured by a table."""

    @property
    def room(self) -> int:
        """Free bytes on disk that its checkpoint may need; 0 if that needs no check."""
        return 0

    def introduction(self) -> str:
        """Describe what is about to be trained, in a line."""
        settings = self.settings
        return f"{settings.rules.name}, {settings.describe(self.facts)}, seed {settings.seed}"

    @property
    def where(self) -> str:
        """Its progress in words."""
        return f"after {self.done:,} {self.settings.counted}"

    @classmethod
    def line(cls, record: Record) -> str:
        """Return a record as a line of text."""
        counted = cls.settings_class.counted
        told = [f"{record[counted]:>11,} {counted}"]
        numbers = {n: v for n, v in record.items() if isinstance(v, int | float) and n != counted}
        told += [f"{name} {value:,.5g}" for name, value in numbers.items()]
        for name in MEASURED:
            if name in record:
                told.append(f"{name} mean {record[name]['mean']:,.2f}")
        return "  ".join(told)

    def summary(self) -> Facts:
        """Return more results, which are reported at the end of a run."""
        return {}

    def report(self, share: float, what: str = "") -> None:
        """Report progress, also within a long step; `what` names another task, such as loading."""
        self.on_progress(share, what)

    # -- files -----------------------------------------------------------------------------------

    def save(self, path: Path) -> None:
        """Write a checkpoint; a `DivergedError` if a weight is infinite or NaN."""
        tensors = self.tensors()
        for name, tensor in tensors.items():
            if not name.startswith(GAME) and not np.isfinite(tensor).all():
                raise DivergedError(
                    "the weights are not numbers any more; a smaller `rate` may help"
                )
        write_tensors(path, self.kind, self.facts, tensors)

    @classmethod
    def pack(
        cls, path: Path, file: Path, *, step: float | None = None, visits: int | None = None
    ) -> None:
        """Write only what is needed to play, without the folders of training data."""
        if step is not None or visits is not None:
            raise ValueError("`step` and `visits` are for n-tuple networks")
        facts, tensors = read_tensors(path, cls.kind, {}, leave=TRAINING)
        facts = cls.facts_to_pack(facts)
        try:
            cls.player_of(facts, tensors)
        except KeyError as error:
            why = f"its player needs the tensor {error}, which is not packed"
            raise ValueError(f"a network of {cls.kind} cannot be packed: {why}") from None
        write_tensors(file, cls.kind, {**facts, "packed": True}, tensors)

    @classmethod
    def facts_to_pack(cls, facts: Facts) -> Facts:
        """Return the metadata of a packed network; override to leave out what is private."""
        return facts

    @classmethod
    def read_about(cls, path: Path) -> Facts:
        """Read the metadata of a checkpoint, without its tensors."""
        return read_tensors(path, cls.kind, cls.facts_needed(), leave=("",))[0]

    @classmethod
    def read(cls, path: Path) -> tuple[Facts, Any]:
        """Read a checkpoint: the arguments of `resume`."""
        return read_tensors(path, cls.kind, cls.facts_needed())

    @classmethod
    def read_to_play(cls, path: Path) -> tuple[Facts, Any]:
        """Read what is needed to play: the arguments of `player_of`."""
        return cls.read(path)

    @classmethod
    def facts_needed(cls) -> dict[str, type]:
        """Return the facts that every file has, by type; `from_facts` checks the settings."""
        return {"board": str, "p4": float, "seconds": float, **cls.needed}
