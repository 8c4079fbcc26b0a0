"""The settings of a learner: a dataclass whose documented fields are its options.

A field made with `setting` defines its help, its range, and whether it may change when a run is
resumed, in one place: the command `lab2048 train NAME`, the call `lab2048.train.NAME`, validation
and the metadata of the weights all derive from it. This module and those with the settings of the
built-in learners import neither Numba nor torch, so that a shell completes options at once.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, MISSING, dataclass, field
from numbers import Real
from typing import Any, ClassVar, Self

from lab2048.formatting import nearest
from lab2048.game import P4, Rules
from lab2048.game.notation import counted, short

Facts = dict[str, Any]
"""Metadata of a training run, JSON-serialisable."""
Field = dataclasses.Field

SEEDS = (1 << 32) - 1
"""The largest seed."""
LAST_RATE = 0.01
"""The last value of a falling learning rate, as a share of the first."""


def setting(  # noqa: PLR0913
    default: Any,
    about: str,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    choices: tuple[str, ...] = (),
    counts: str = "",
    kind: type | None = None,
    metavar: str | None = None,
    changes: bool = False,
    stored: bool = True,
) -> Any:
    """Return a field of settings, which is an option of the learner.

    `about` is its help; the default is added to it. Numbers lie between `low` and `high`, strings
    are one of `choices`. A number of `counts`, such as moves, may be written as 200k. `kind` is the
    type of a value if the default does not tell. A setting that `changes` may have another value
    when a run is resumed, and so may one that is not `stored`, such as the device.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class MySettings(LearnerSettings):
    ...     rate: float = setting(0.1, "How fast to learn", low=0, high=1)
    >>> MySettings(Rules(2, 2), rate=2)
    Traceback (most recent call last):
    ...
    ValueError: rate is a number from 0 to 1, not 2
    """
    facts = {
        "about": about, "low": low, "high": high, "choices": choices, "counts": counts,
        "kind": kind or type(default), "metavar": metavar, "changes": changes or not stored,
        "stored": stored,
    }  # fmt: skip
    return field(default=default, metadata=facts)


def option_fields(cls: type[LearnerSettings]) -> list[Field[Any]]:
    """Return the fields that are options, in order of definition."""
    return [each for each in dataclasses.fields(cls) if "about" in each.metadata]


def is_a_setting(cls: type[LearnerSettings]) -> bool:
    """Return whether the goal, which limits a run, is one of its settings."""
    return cls.goal in {each.name for each in option_fields(cls)}


def limit_names(cls: type[LearnerSettings]) -> list[str]:
    """Return the options that limit the length of a run and are not settings."""
    usual = [] if is_a_setting(cls) else [cls.goal]
    return [*usual, *cls.limits, "minutes"]


@dataclass(frozen=True)
class LearnerSettings:
    """What a run depends on, except for its length. A learner adds its own fields.

    >>> LearnerSettings(Rules(2, 2), seed=7).facts
    {'board': '2x2', 'p4': 0.1, 'seed': 7}
    """

    rules: Rules
    _: KW_ONLY
    seed: int = setting(1, "Random seed", metavar="N")

    board: ClassVar[str] = "4x4"
    """The default board."""
    threads_about: ClassVar[str] = "As many as cores if not given."
    """The help of the option for the number of threads."""
    counted: ClassVar[str] = "steps"
    """What progress is counted in: the name of the count in records, which grows with each."""
    goal: ClassVar[str] = "steps"
    """The option that limits that count. It may be a setting at the same time, which then limits a
    run unless another limit is given."""
    limits: ClassVar[tuple[str, ...]] = ()
    """Other options that limit a run, each by the name of another count of the learner."""

    def __post_init__(self) -> None:
        self._check_seed()
        for each in option_fields(type(self)):
            if each.name != "seed":
                checked = check_value(each, getattr(self, each.name))
                object.__setattr__(self, each.name, checked)

    def _check_seed(self) -> None:
        """Raise a `ValueError` unless the seed is valid."""
        if type(self.seed) is not int or not 0 <= self.seed <= SEEDS:
            raise ValueError(f"the seed of a training is a number from 0 to {SEEDS}")

    @classmethod
    def of(cls, rules: Rules, **given: Any) -> Self:
        """Return the default settings, with some of them changed."""
        return cls(rules, **given)

    @classmethod
    def from_options(cls, given: Mapping[str, Any]) -> Self:
        """Return the settings of options by name, which may include `board` and `p4`."""
        asked = dict(given)
        rules = Rules.parse(asked.pop("board", cls.board), asked.pop("p4", P4))
        return cls.of(rules, **asked)

    @property
    def facts(self) -> Facts:
        """The settings as stored in the metadata of a checkpoint."""
        found = {e.name: getattr(self, e.name) for e in option_fields(type(self)) if is_stored(e)}
        return {"board": self.rules.name, "p4": self.rules.p4, **found}

    @classmethod
    def from_facts(cls, facts: Facts) -> Self:
        """Return stored settings; a `ValueError` if one is of another type than its `kind`.

        One that is not stored has its default, so a learner may get more settings later.
        """
        found: dict[str, Any] = {}
        for each in option_fields(cls):
            if is_stored(each):
                value, kind = facts.get(each.name, each.default), each.metadata["kind"]
                if isinstance(value, list) and kind is tuple:
                    value = tuple(value)
                fits = type(value) is kind or (kind, type(value)) == (float, int)
                if not fits and not (value is None and each.default is None):
                    raise ValueError(f"it does not say what {each.name} is")
                found[each.name] = value
        return cls(Rules.parse(facts["board"], facts["p4"]), **found)

    def resumed(self, given: Mapping[str, Any], name: str, run: int = 0) -> Self:
        """Return these settings with changed options; a `ValueError` if one must not change.

        The seed of run number `run` of several is larger by `run`.
        """
        changed = {}
        fields = {each.name: each for each in option_fields(type(self))}
        for key, value in given.items():
            if key in fields and fields[key].metadata["changes"]:
                changed[key] = value
                continue
            known = self._known(key) - run if key == "seed" else self._known(key)
            if self._as_held(key, value) != known:
                told = getattr(known, "name", known)
                raise ValueError(f"{name} was begun with `{key}={told}`, not {value}")
        return dataclasses.replace(self, **changed)

    def _known(self, key: str) -> Any:
        """Return the value of an option."""
        places = {"board": self.rules.name, "p4": self.rules.p4}
        return places[key] if key in places else getattr(self, key)

    def _as_held(self, key: str, value: Any) -> Any:
        """Return the value of an option as the settings would hold it."""
        if key == "board":
            return Rules.parse(value).name
        each = {field.name: field for field in option_fields(type(self))}.get(key)
        return value if each is None or key == "seed" else check_value(each, value)

    def default_name(self, kind: str) -> str:
        """Return the default name of a run."""
        return f"{self.rules.name}-{kind}"

    @classmethod
    def describe(cls, facts: Facts) -> str:
        """Return a short description of what was trained."""
        names = [e.name for e in option_fields(cls) if is_stored(e) and e.name != "seed"]
        return ", ".join(f"{name} {facts[name]}" for name in names)

    @classmethod
    def trained(cls, facts: Facts) -> str:
        """Return the length of the training in words."""
        return f"{facts[cls.counted]:,} {cls.counted}"


def is_stored(each: Field[Any]) -> bool:
    """Return whether a setting is stored in checkpoints."""
    return bool(each.metadata["stored"])


def check_value(each: Field[Any], value: Any) -> Any:
    """Return the valid value of a setting; a `ValueError` if there is none.

    Numbers are converted to the setting's type, and counts such as 200k to numbers.
    """
    facts = each.metadata
    if value is None and each.default is None:
        return value
    if facts["counts"] and isinstance(value, str):
        value = counted(value, facts["counts"])
    if facts["kind"] in (int, float):
        low, high = facts["low"], facts["high"]
        number = isinstance(value, Real) and not isinstance(value, bool)
        if not number or not low <= value <= high:
            told = f"{value:g}" if number else short(value)
            raise ValueError(f"{each.name} is a number{spanning(low, high)}, not {told}")
        if facts["kind"] is int and not float(value).is_integer():
            raise ValueError(f"{each.name} is a whole number, not {value:g}")
        return facts["kind"](value)
    if facts["kind"] is tuple and isinstance(value, list):
        value = tuple(value)
    if facts["kind"] is bool and not isinstance(value, bool):
        raise ValueError(f"{each.name} is True or False, not {short(value)}")
    if facts["choices"] and value not in facts["choices"]:
        near = nearest(str(value), facts["choices"])
        raise ValueError(f"there is no {each.name} {str(value)[:40]!r}; {near}")
    return value


def spanning(low: float, high: float) -> str:
    """Describe a range of numbers in words; an infinite upper bound is left out."""
    if math.isinf(low) and math.isinf(high):
        return ""
    if math.isinf(high):
        return f" of at least {low:g}"
    return f" from {low:g} to {high:g}"


def help_of(each: Field[Any]) -> str:
    """Return the help of a setting: its description, choices and default."""
    facts = each.metadata
    found = str(facts["about"])
    if facts["choices"]:
        *others, last = facts["choices"]
        found += f": {', '.join(others)} or {last}"
    default = each.default
    if default is MISSING or default is None or default in ("", ()) or isinstance(default, bool):
        return f"{found}."
    return f"{found}; {default:g}." if isinstance(default, float) else f"{found}; {default}."


def falling_rate(share: float) -> float:
    """Return the factor of a learning rate that falls along half a cosine, from 1 to 0.01."""
    falling = (1 + math.cos(math.pi * min(1.0, share))) / 2
    return LAST_RATE + (1 - LAST_RATE) * falling
