"""What a learner is: the part of a training that an algorithm has to write.

The trainer (`trainer`) owns everything that all trainings have in common: how long they last,
their checkpoints and logs, what happens on Ctrl-C, resuming, several runs, and the comparison with
perfect play. An algorithm is a dataclass of settings (`LearnerSettings`) and a class derived from
`Learner` with five things: its state when it begins, one small step, a summary of the last steps,
the tensors that it takes to go on, and a player. docs/learning.md has a whole one in thirty lines.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np

from lab2048.game.notation import checked_threads
from lab2048.learn.checkpoint import Record
from lab2048.learn.network_files import TRAINING, Tensors, read_tensors, write_tensors
from lab2048.learn.settings import Facts, LearnerSettings

if TYPE_CHECKING:
    from lab2048.players.player import Player
    from lab2048.solver.table import Table

GAME = "game."
"""How the names of tensors begin that are positions and games; only training needs them."""
ROUNDING = 1e-12
"""Shares that differ by less are equal."""
PARTS = 20
"""Records of a training whose settings do not say how many there are."""

S = TypeVar("S", bound=LearnerSettings)


class DivergedError(ValueError):
    """What is learnt has grown beyond all bounds, or is no number any more."""


@dataclass(frozen=True)
class Goal:
    """How long a training lasts: for a number of what its learner counts, or of seconds.

    If there are several limits, it ends with the first that is reached.
    """

    count: int | None = None
    """Of what the settings call `counted`."""
    seconds: float | None = None
    measured: bool = False
    """Whether every record is measured against a table, so that there had better be fewer."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """Of what else the learner counts, such as moves."""

    def share(self, learner: Learner[Any], **now: float) -> float:
        """Return how much of it is done; `now` are counts in the middle of a step."""
        shares = [] if self.seconds is None else [learner.seconds / self.seconds]
        limits = dict(self.counts)
        if self.count is not None:
            limits[learner.settings.counted] = self.count
        if limits:
            reached = {**learner.counts(), **now}
            shares += [reached[name] / limit for name, limit in limits.items()]
        return max(shares)


class Learner(ABC, Generic[S]):
    """A training of one algorithm: what it has learnt, and how to learn more.

    A step adds to `done`. The time that a step takes is added to `seconds`, unless the step has
    done so itself, which one does that leaves out compiling. The constructor takes the settings and
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
    """The name that it is registered under; its networks play as KIND:NAME."""
    needed: ClassVar[Mapping[str, type]] = {}
    """Facts besides the settings without which what was stored is damaged, and their types."""
    same_threads: ClassVar[bool] = False
    """Whether a training goes on only with as many threads as it was begun with."""
    exact_records: ClassVar[str] = "small"
    """On which boards records are measured exactly: `small` ones, `all` if its exact value is
    cheap, or `none`. Elsewhere games are judged by the table, and there is an exact measurement at
    the end only."""
    judged_as: ClassVar[str] = "judged"
    """The name of judged games in a record."""

    def __init__(self, settings: S, threads: int | None = None) -> None:
        self.settings = settings
        self.threads = checked_threads(threads)
        self.measuring = threads
        """The threads that measure against a table; None for all cores."""
        self.done = 0
        """How many games, moves, epochs or steps there were: `LearnerSettings.counted`."""
        self.seconds = 0.0
        """Time spent on learning."""
        self.stopped = False
        """Set by a signal or another thread: the present step ends as soon as it can."""
        self.on_progress: Callable[[float, str], object] = lambda share, what: None
        self.say: Callable[[str], object] = lambda text: None
        """Tells the user something in a line."""
        self._told = 0.0

    # -- what an algorithm writes ----------------------------------------------------------------

    @abstractmethod
    def step(self, goal: Goal) -> None:
        """Learn a little: a second of work or so, since only between steps it is stopped or saved.

        `goal.share(self)` says how much of the training is done, for what falls in its course.
        """

    @abstractmethod
    def record(self) -> Record:
        """Return a summary of the steps since the last one: numbers, `mean` or `loss` among them.

        Curves are drawn of these two, the mean score of games and a loss.
        """

    @abstractmethod
    def tensors(self) -> Tensors:
        """Return all that it takes to go on, beside the facts; copies, or what stays as it is."""

    @abstractmethod
    def player(self) -> Player:
        """Return the player that is measured: what was learnt so far, without search."""

    @property
    def facts(self) -> Facts:
        """All that is known about it, as JSON; a subclass adds what it takes to go on."""
        counted = self.settings.counted
        return {**self.settings.facts, counted: self.done, "seconds": self.seconds}

    def resume(self, facts: Facts, tensors: Tensors) -> None:
        """Go on from what was stored; a subclass takes back its tensors."""
        self.done, self.seconds = facts[self.settings.counted], facts["seconds"]

    @classmethod
    def player_of(cls, facts: Facts, tensors: Tensors) -> Player:
        """Return the player of what was stored; a network that is packed plays by this.

        A learner that stores more than its player needs has its own: this one makes the whole
        learner. Tensors whose names begin with `GAME` are not there if the network was packed.
        """
        learner = cls(cls.settings_class.from_facts(facts), 1)  # type: ignore[arg-type]
        learner.resume(facts, tensors)
        return learner.player()

    # -- what it may change ----------------------------------------------------------------------

    def prepare(self) -> None:
        """Load what a new or resumed training needs, such as data, before anything is resumed."""

    def check_same(self, facts: Facts) -> None:
        """Raise a `ValueError` unless what was stored can go on with what was loaded."""

    def start(self, goal: Goal) -> None:
        """Begin or go on, towards a goal; called once before the first step."""
        self._told = goal.share(self)

    def due(self, goal: Goal) -> bool:
        """Return whether it is time for a record: `parts` of them in the course of a training."""
        parts = getattr(self.settings, "parts", PARTS)
        share = goal.share(self)
        if self.stopped or share < min(1.0, self._told + 1 / parts) - ROUNDING:
            return False
        self._told = share
        return True

    def measure(self, table: Table) -> Record:
        """Return how far its player is from perfect play, to be added to a record."""
        from lab2048.learn import distance

        player = self.player()
        if distance.exact_at_records(player, self.exact_records):
            return {"exact": distance.exactly(player, table, self.measuring)}
        return {self.judged_as: distance.by_games(player, table, self.measuring)}

    def measure_at_end(self, table: Table) -> Facts | None:
        """Return the exact distance of its player from perfect play; None if that is too much."""
        from lab2048.learn import distance

        player = self.player()
        if not distance.exact_at_end(player):
            return None
        return distance.exactly(player, table, self.measuring)

    def counts(self) -> dict[str, float]:
        """Return how far it is in all that it counts, such as games and moves.

        The settings' `counted` is among them, and so are those of their `limits`.
        """
        return {self.settings.counted: self.done}

    @classmethod
    def check_measurable(cls, settings: LearnerSettings) -> None:
        """Raise a `ValueError` if such a training cannot be measured against a table."""

    @property
    def room(self) -> int:
        """The bytes that it may need on disk beside what is there, if that is worth a check."""
        return 0

    def introduction(self) -> str:
        """Say what is about to be trained."""
        settings = self.settings
        return f"{settings.rules.name}, {settings.describe(self.facts)}, seed {settings.seed}"

    @property
    def where(self) -> str:
        """How far it is, in words."""
        return f"after {self.done:,} {self.settings.counted}"

    @classmethod
    def line(cls, record: Record) -> str:
        """Return a record in a line."""
        counted = cls.settings_class.counted
        told = [f"{record[counted]:>11,} {counted}"]
        numbers = {n: v for n, v in record.items() if isinstance(v, int | float) and n != counted}
        told += [f"{name} {value:,.5g}" for name, value in numbers.items()]
        for name in ("exact", "judged"):
            if name in record:
                told.append(f"{name} mean {record[name]['mean']:,.2f}")
        return "  ".join(told)

    def summary(self) -> Facts:
        """Return what else there is to tell at the end."""
        return {}

    def report(self, share: float, what: str = "") -> None:
        """Tell how far it is in the middle of a long step, or with `what` it does before."""
        self.on_progress(share, what)

    # -- files -----------------------------------------------------------------------------------

    def save(self, path: Path) -> None:
        """Write all that it takes to play and to go on; a `DivergedError` if that is no numbers."""
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
        """Write what it takes to play, without what only training needs or where its data was."""
        if step is not None or visits is not None:
            raise ValueError("`step` and `visits` are for n-tuple networks")
        facts, tensors = read_tensors(path, cls.kind, {}, leave=TRAINING)
        if "data" in facts:
            facts["data"] = [Path(each).name for each in facts["data"]]
        try:
            cls.player_of(facts, tensors)
        except KeyError as error:
            why = f"its player needs the tensor {error}, which is not packed"
            raise ValueError(f"a network of {cls.kind} cannot be packed: {why}") from None
        write_tensors(file, cls.kind, {**facts, "packed": True}, tensors)

    @classmethod
    def read_about(cls, path: Path) -> Facts:
        """Read what is known about a training, without what it has learnt."""
        return read_tensors(path, cls.kind, cls.facts_needed(), leave=("",))[0]

    @classmethod
    def read(cls, path: Path) -> tuple[Facts, Any]:
        """Read all that it takes to go on; `resume` is given both."""
        return read_tensors(path, cls.kind, cls.facts_needed())

    @classmethod
    def read_to_play(cls, path: Path) -> tuple[Facts, Any]:
        """Read what it takes to play; `player_of` is given both."""
        return cls.read(path)

    @classmethod
    def facts_needed(cls) -> dict[str, type]:
        """Return the facts that every file has; `from_facts` of the settings checks the rest."""
        return {"board": str, "p4": float, "seconds": float, **cls.needed}
