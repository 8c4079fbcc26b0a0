"""Plan a run: a new one, or one that resumes from its checkpoint.

Trained networks are never overwritten: a name that exists needs `resume`, and then settings must be
those the run began with; the error names the option that differs. Its length may change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from lab2048.formatting import nearest
from lab2048.learn.checkpoint import Record
from lab2048.learn.learner import Learner
from lab2048.learn.network_files import FILE, damage_told, network_folder
from lab2048.learn.registry import LearnerEntry
from lab2048.learn.settings import LearnerSettings, option_fields

Make = Callable[[Any, int | None], Learner[Any]]
"""Makes a learner from settings and a number of threads."""


@dataclass(frozen=True)
class TrainingRequest:
    """What the user asks to be trained."""

    given: Mapping[str, Any]
    """Options by name: `board`, `p4` and settings, without those that were not given."""
    out: str | None = None
    """The name of the run; `default_name` of the settings if None."""
    resume: bool = False
    runs: int = 1
    threads: int | None = None


@dataclass(frozen=True)
class Callbacks:
    """Functions that are called during a run. By default they do nothing."""

    on_record: Callable[[Record], object] = lambda record: None
    """Called with every record of the log; if it returns True, the run is saved and ends."""
    progress: Callable[[float, str], object] = lambda share, what: None
    """Called with the share that is done, and the name of the run or of another task."""
    say: Callable[[str], object] = lambda text: None
    """Called with messages, each a line."""


@dataclass(frozen=True)
class Plan:
    """A run that is about to start or to resume."""

    learner: type[Learner[Any]]
    name: str
    settings: LearnerSettings
    threads: int | None
    stamp: int | None
    """The modification time of the checkpoint to resume from; None for a new run."""

    @property
    def path(self) -> Path:
        """The file of the checkpoint."""
        return network_folder(self.name) / FILE

    def begin(self, make: Make | None, hear: Callbacks) -> Learner[Any]:
        """Return the learner, restored from its checkpoint if the run resumes.

        The caller holds the lock of the folder. It is a `ValueError` if the file has changed since
        the plan was made.
        """
        if self.stamp is None:
            if self.path.exists():  # since the plan was made
                raise there_already(self.name)
        elif self.path.stat().st_mtime_ns != self.stamp:
            raise ValueError(
                f"{self.name} was trained by another command meanwhile; try `resume=True` again"
            )
        before = None if self.stamp is None else self.learner.read(self.path)
        learner: Learner[Any] = (make or self.learner)(self.settings, self.threads)
        learner.say = hear.say
        learner.on_progress = lambda share, what: hear.progress(share, what or self.name)
        learner.prepare()
        if before is not None:
            learner.check_same(before[0])
            with damage_told(self.name):
                learner.resume(*before)
        return learner


def plan(entry: LearnerEntry, asked: TrainingRequest, run: int) -> Plan:
    """Return the plan of one of several runs, or raise a `ValueError`.

    Run `k` of several is called NAME-k, counted from 1, and has a seed that is larger by `k - 1`.
    """
    cls, settings_class = entry.load(), entry.load_settings()
    check_names(entry.name, settings_class, asked.given)
    settings = None if asked.resume and asked.out else fresh(settings_class, asked.given, run)
    out = asked.out or (settings.default_name(entry.name) if settings else "")
    name = f"{out}-{run + 1}" if asked.runs > 1 else out
    path = network_folder(name) / FILE
    if path.exists():
        if not asked.resume:
            raise there_already(name)
        return resumed(cls, settings_class, asked, run, name)
    first = network_folder(f"{out}-1") / FILE
    if asked.resume and run > 0 and first.exists():  # the command was stopped before this run began
        begun = resumed(cls, settings_class, asked, 0, f"{out}-1").settings
        settings = replace(begun, seed=begun.seed + run)
    elif asked.resume:
        raise ValueError(f"there is no network {name} to go on with")
    settings = settings or fresh(settings_class, asked.given, run)
    return Plan(cls, name, settings, asked.threads, None)


def check_names(kind: str, cls: type[LearnerSettings], given: Mapping[str, Any]) -> None:
    """Raise a `ValueError` if an option is not a setting of the learner."""
    known = {"board", "p4", *(each.name for each in option_fields(cls))}
    for name in given:
        if name not in known:
            raise ValueError(f"{kind} has no setting {name[:40]!r}; {nearest(name, sorted(known))}")


def fresh(cls: type[LearnerSettings], given: Mapping[str, Any], run: int) -> LearnerSettings:
    """Return the settings of a new run."""
    usual = {each.name: each.default for each in fields(cls)}["seed"]
    return cls.from_options({**given, "seed": given.get("seed", usual) + run})


def resumed(
    cls: type[Learner[Any]],
    settings_class: type[LearnerSettings],
    asked: TrainingRequest,
    run: int,
    name: str,
) -> Plan:
    """Return the plan to resume a run; a `ValueError` if options contradict its settings."""
    path = network_folder(name) / FILE
    stamp = path.stat().st_mtime_ns
    facts = cls.read_about(path)
    if "packed" in facts:
        raise ValueError(f"{name} is packed: it plays, but cannot go on learning")
    with damage_told(path):
        before = settings_class.from_facts(facts)
    threads = asked.threads
    if cls.same_threads:
        if threads not in (None, facts["threads"]):
            raise ValueError(f"{name} was begun with `threads={facts['threads']}`")
        threads = facts["threads"]
    return Plan(cls, name, before.resumed(asked.given, name, run), threads, stamp)


def there_already(name: str) -> ValueError:
    """Return the error that a name is taken: trained networks are never overwritten."""
    return ValueError(
        f"there is a network {name} already: `resume=True` goes on with it, `out` names another"
    )
