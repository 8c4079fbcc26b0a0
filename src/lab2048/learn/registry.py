"""Learners by name: what trains players, and where each of them is.

A built-in learner takes one entry here, another distribution's an entry point in the group
`lab2048.learners` (its name, and the class), one of a script a call of `register_learner`. Classes
are imported when they are needed, so that listing them loads neither Numba nor torch.
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
"""A class derived from `learner.Learner`, which cannot be named here: it knows this registry."""
PLAYER = "lab2048.learn.learnt_player"
"""The module that has a player for every learner without one of its own."""


@dataclass(frozen=True)
class LearnerEntry:
    """A learner in the registry: where its classes are, and what is said about it."""

    name: str
    learner: str | LearnerClass
    """The class, or where it is: `module:Class`."""
    settings: str | type[LearnerSettings] = ""
    """The class of its settings, or where it is, if that is a module that is quick to import."""
    about: str = ""
    """What it does, in a line: the help of its command."""
    what: str = ""
    """What a network of it is called, such as `an n-tuple network`."""
    example: Mapping[str, int | str] = field(default_factory=dict)
    """Options of a training that is worth while, beside the board; 1000 steps if there are none."""
    neural: bool = False
    """Whether it needs torch."""
    player: str = ""
    """The class of its player, if it has one of its own: `module:Class`."""
    far: str = ""
    """The class that trains on a cluster: `module:Class`."""
    plot: str = "scores"
    """What its curve shows (`report.curves.PLOTS`)."""
    listed: bool = False
    """Whether its JSON value is a list even of one training."""

    def options(self) -> dict[str, int | str]:
        """Return the options of its example."""
        return {**self.example} or {self.load_settings().goal: 1000}

    def call(self) -> str:
        """Return a call in Python that trains with it."""
        given = "".join(f", {name}={json.dumps(value)}" for name, value in self.options().items())
        board = self.load_settings().board
        return f'lab2048.train.{self.name}("{board}"{given}, out="NAME")'

    def command(self, board: str) -> str:
        """Return a command that trains with it."""
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
    """Return a class of learner whose networks are of this kind.

    One that is registered under a name that is not its own gets a class derived from it: the same
    class may be registered under several names.
    """
    if learner.kind == name:
        return learner
    more = {"kind": name, "__module__": learner.__module__, "__doc__": learner.__doc__}
    return type(learner.__name__, (learner,), more)


def check_torch() -> None:
    """Raise an `ImportError` that says how to get torch, unless it is there."""
    try:
        import torch  # noqa: F401
    except ImportError:
        raise ImportError("neural networks need torch: pip install 'lab2048[neural]'") from None


def imported(where: Any) -> Any:
    """Return a class, which may be given as `module:Class`."""
    if not isinstance(where, str):
        return where
    module, _, attribute = where.partition(":")
    return getattr(importlib.import_module(module), attribute)


_learners: dict[str, LearnerEntry] = {}
_asked: list[bool] = []
"""Whether other distributions were asked for theirs."""


def register_learner(
    name: str,
    learner: str | LearnerClass,
    *,
    about: str = "",
    **more: Any,
) -> None:
    """Make a learner known by a name.

    From then on `lab2048.train.NAME(...)` and, in the same process, `lab2048 train NAME` train with
    it, and what was trained plays as `NAME:NETWORK`. `learner` is a class derived from `Learner`,
    or where it is (`module:Class`); `about` says in a line what it does, else the first line of its
    docstring. A learner of another distribution is found by its entry point in the group
    `lab2048.learners`. The fields of `LearnerEntry` are more that can be said.

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
        taken = "is there already" if name in _learners else "is no name"
        raise ValueError(f"the learner {name[:40]!r} {taken}")
    if not isinstance(learner, str):
        about = about or (learner.__doc__ or "").partition("\n")[0]
    entry = _learners[name] = LearnerEntry(name, learner, about=about, **more)
    PLAYERS.setdefault(name, entry.player or f"{PLAYER}:{name}")


def learners() -> dict[str, LearnerEntry]:
    """Return all learners by name, also those of other distributions."""
    if not _asked:
        _asked.append(True)
        from importlib.metadata import entry_points

        for point in entry_points(group=GROUP):
            if point.name not in _learners:
                register_learner(point.name, point.value, about=f"Train as {point.value} does.")
    return _learners


def find_learner(name: str) -> LearnerEntry:
    """Return the learner of a name, or a `ValueError` that names the nearest."""
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
