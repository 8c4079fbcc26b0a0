"""The registry of learners: what trains players, by name.

A built-in learner has an entry here, one of another distribution an entry point in the group
`lab2048.learners` (its name, and the class); a script calls `register_learner`. Classes are
imported when they are needed, so that listing learners loads neither Numba nor torch.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from lab2048.formatting import nearest
from lab2048.players.registry import PLAYERS

if TYPE_CHECKING:
    from lab2048.learn.settings import LearnerSettings

GROUP = "lab2048.learners"
LearnerClass = type[Any]
"""A class derived from `learner.Learner`, whose module imports this one."""
PLAYER = "lab2048.learn.learnt_player"
"""The module with a player for every learner without one of its own."""


@dataclass(frozen=True)
class LearnerEntry:
    """A learner in the registry: where its classes are, and how it is described."""

    name: str
    learner: str | LearnerClass
    """The class, or where it is: `module:Class`."""
    settings: str | type[LearnerSettings] = ""
    """The class of its settings, or where it is, if its module is quick to import."""
    about: str = ""
    """What it does, in a line: the help of its command."""
    what: str = ""
    """What its networks are called, such as `an n-tuple network`."""
    example: Mapping[str, int | str] = field(default_factory=dict)
    """Options of a sensible example besides the board; if empty, its goal is 1000."""
    neural: bool = False
    """Whether it needs torch."""
    player: str = ""
    """The class of its player, if it has one of its own: `module:Class`."""
    far: str = ""
    """The class that trains on a cluster: `module:Class`."""
    plot: str = "scores"
    """What its curve shows (`report.curves.PLOTS`)."""
    listed: bool = False
    """Whether its JSON output is a list even for one run."""

    def options(self) -> dict[str, int | str]:
        """Return the options of its example."""
        return {**self.example} or {self.load_settings().goal: 1000}

    def call(self) -> str:
        """Return an example of a Python call that trains with it."""
        given = "".join(f", {name}={json.dumps(value)}" for name, value in self.options().items())
        board = self.load_settings().board
        return f'lab2048.train.{self.name}("{board}"{given}, out="NAME")'

    def command(self, board: str) -> str:
        """Return an example of a command that trains with it."""
        given = " ".join(f"--{name} {value}" for name, value in self.options().items())
        return f"lab2048 train {self.name} --board {board} {given} --out NAME"

    def load(self) -> LearnerClass:
        """Import the class of the learner."""
        if self.neural:
            check_torch()
        return _of_kind(imported(self.learner), self.name)

    def load_settings(self) -> type[LearnerSettings]:
        """Import the class of its settings."""
        found: type[LearnerSettings]
        found = imported(self.settings) if self.settings else self.load().settings_class
        return found


@cache
def _of_kind(learner: LearnerClass, name: str) -> LearnerClass:
    """Return a learner class with this name as its `kind`.

    That is a derived class if the learner is registered under another name than its own: the same
    class may be registered under several names.
    """
    if learner.kind == name:
        return learner
    more = {"kind": name, "__module__": learner.__module__, "__doc__": learner.__doc__}
    return type(learner.__name__, (learner,), more)


def check_torch() -> None:
    """Raise an `ImportError` that says how to install torch if it is missing."""
    try:
        import torch  # noqa: F401
    except ImportError:
        raise ImportError("neural networks need torch: pip install 'lab2048[neural]'") from None


def imported(where: Any) -> Any:
    """Return a class that may be given as `module:Class`."""
    if not isinstance(where, str):
        return where
    module, _, attribute = where.partition(":")
    return getattr(importlib.import_module(module), attribute)


_learners: dict[str, LearnerEntry] = {}
_asked: list[bool] = []
"""Not empty once the entry points of other distributions have been read."""


def register_learner(
    name: str,
    learner: str | LearnerClass,
    *,
    about: str = "",
    **more: Any,
) -> None:
    """Register a learner under a name.

    In this process, `lab2048.train.NAME(...)` and the command `lab2048 train NAME` then train with
    it, and its networks play as `NAME:NETWORK`. `learner` is a class derived from `Learner`, or
    where it is (`module:Class`); `about` says in a line what it does, by default the first line of
    its docstring. Other keyword arguments are fields of `LearnerEntry`. Learners of other
    distributions are found by their entry points in the group `lab2048.learners`.

    >>> import lab2048
    >>> class Idle(lab2048.Learner):
    ...     "It learns nothing, but counts."
    ...     settings_class = lab2048.LearnerSettings
    ...     def step(self, goal):
    ...         self.done += 1
    ...     def record(self):
    ...         return {"mean": 0.0}
    ...     def tensors(self):
    ...         return {}
    ...     def player(self):
    ...         return lab2048.player("random", self.settings.rules)
    >>> register_learner("idle", Idle)
    >>> lab2048.train.idle("2x2", steps=3, out="idler").facts["steps"]
    3
    """
    if not name.isidentifier() or name in _learners:
        taken = "is there already" if name in _learners else "is not a valid name"
        raise ValueError(f"the learner {name[:40]!r} {taken}")
    if name in PLAYERS:
        raise ValueError(f"the learner {name!r} has the name of a player, which would play for it")
    if not isinstance(learner, str):
        about = about or (learner.__doc__ or "").partition("\n")[0]
    entry = _learners[name] = LearnerEntry(name, learner, about=about, **more)
    PLAYERS[name] = entry.player or f"{PLAYER}:{name}"


def learners() -> dict[str, LearnerEntry]:
    """Return all learners by name, including those of other distributions."""
    if not _asked:
        _asked.append(True)
        from importlib.metadata import entry_points

        for point in entry_points(group=GROUP):
            if point.name not in _learners and point.name not in PLAYERS:
                register_learner(point.name, point.value, about=f"Train with {point.value}.")
    return _learners


def find_learner(name: str) -> LearnerEntry:
    """Return the learner of a name; a `ValueError` suggests the nearest name."""
    if name not in _learners and name not in learners():
        raise ValueError(f"there is no learner {name[:40]!r}; {nearest(name, _learners)}")
    return _learners[name]


def is_learner(name: object) -> bool:
    """Return whether there is a learner of this name."""
    return isinstance(name, str) and (name in _learners or name in learners())


def kind_of_network(name: str) -> str:
    """Return what a network of a learner is called."""
    found = find_learner(name)
    return found.what or f"a network of {found.name}"


register_learner(
    "ntuple", "lab2048.learn.td:NTupleLearner",
    settings="lab2048.learn.ntuple_settings:NTupleSettings",
    about="Train an n-tuple network by temporal-difference learning.",
    what="an n-tuple network", example={"episodes": "100k"}, listed=True,
    player="lab2048.learn.ntuple_player:NTuple",
)  # fmt: skip
register_learner(
    "supervised", "lab2048.learn.supervised:SupervisedLearner",
    settings="lab2048.learn.supervised_settings:SupervisedSettings",
    about="Train a network on recorded moves, or on perfect labels.",
    what="a supervised network", example={"data": "FILE"}, neural=True, plot="epochs",
    player="lab2048.learn.neural_players:Supervised",
)  # fmt: skip
register_learner(
    "zero", "lab2048.learn.zero:ZeroLearner", settings="lab2048.learn.zero_settings:ZeroSettings",
    about="Train a network by self-play with tree search, in the manner of AlphaZero.",
    what="a network of self-play", example={"minutes": 60}, neural=True, plot="self-play",
    player="lab2048.learn.neural_players:Zero", far="lab2048.cluster.selfplay:FarZeroLearner",
)  # fmt: skip
