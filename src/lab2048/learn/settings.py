"""The settings of a learner: a dataclass whose documented fields are its options.

A field made with `setting` says once what it is, what it may be, and whether it may change when a
training is resumed. The command `lab2048 train NAME`, the call `lab2048.train.NAME`, the check of
ranges and the metadata of the weights all come from it. This module and those with the settings of
the built-in learners import neither Numba nor torch, so that a shell can complete options at once.
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
"""What is known about a training, as JSON has it."""
Field = dataclasses.Field

SEEDS = (1 << 32) - 1
"""The largest seed."""
LAST_RATE = 0.01
"""What is left of a falling learning rate at the end of a training."""


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

    `about` is its help, without the default, which is added. Numbers are from `low` to `high`,
    texts one of `choices`. A number of things (`counts`) may be written as 200k. `kind` is the type
    of a value where the default does not tell it. What `changes` may be given anew when a training
    is resumed; what is not `stored` is no part of what was begun, such as the device it runs on.

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
    """Return the fields that are options, in their order."""
    return [each for each in dataclasses.fields(cls) if "about" in each.metadata]


def is_a_setting(cls: type[LearnerSettings]) -> bool:
    """Return whether how long a training lasts is one of its settings."""
    return cls.goal in {each.name for each in option_fields(cls)}


def limit_names(cls: type[LearnerSettings]) -> list[str]:
    """Return the options that say how long a training lasts and are no settings."""
    usual = [] if is_a_setting(cls) else [cls.goal]
    return [*usual, *cls.limits, "minutes"]


@dataclass(frozen=True)
class LearnerSettings:
    """What a training depends on, besides how long it lasts. A learner adds its fields to these.

    >>> LearnerSettings(Rules(2, 2), seed=7).facts
    {'board': '2x2', 'p4': 0.1, 'seed': 7}
    """

    rules: Rules
    _: KW_ONLY
    seed: int = setting(1, "Seed of all that is drawn", metavar="N")

    board: ClassVar[str] = "4x4"
    """The board if none is asked for."""
    threads_about: ClassVar[str] = "As many as cores if not given."
    """The help of the number of threads."""
    counted: ClassVar[str] = "steps"
    """What is counted: the name of the number that grows from record to record."""
    goal: ClassVar[str] = "steps"
    """The option that says how many of them a training lasts for. It may also be a setting: then a
    training lasts for that many unless another limit is asked for."""
    limits: ClassVar[tuple[str, ...]] = ()
    """Other options that limit a training, by a number of what else the learner counts."""

    def __post_init__(self) -> None:
        self._check_seed()
        for each in option_fields(type(self)):
            if each.name != "seed":
                checked = check_value(each, getattr(self, each.name))
                object.__setattr__(self, each.name, checked)

    def _check_seed(self) -> None:
        """Raise a `ValueError` unless the seed is one."""
        if type(self.seed) is not int or not 0 <= self.seed <= SEEDS:
            raise ValueError(f"the seed of a training is a number from 0 to {SEEDS}")

    @classmethod
    def of(cls, rules: Rules, **given: Any) -> Self:
        """Return the usual settings, some of them changed."""
        return cls(rules, **given)

    @classmethod
    def from_options(cls, given: Mapping[str, Any]) -> Self:
        """Return the settings that options ask for, `board` and `p4` among them."""
        asked = dict(given)
        rules = Rules.parse(asked.pop("board", cls.board), asked.pop("p4", P4))
        return cls.of(rules, **asked)

    @property
    def facts(self) -> Facts:
        """The settings as they are stored with what was learnt."""
        found = {e.name: getattr(self, e.name) for e in option_fields(type(self)) if is_stored(e)}
        return {"board": self.rules.name, "p4": self.rules.p4, **found}

    @classmethod
    def from_facts(cls, facts: Facts) -> Self:
        """Return the settings of a training that was stored; a `ValueError` if one cannot be.

        Each is of the type of its default.
        """
        found: dict[str, Any] = {}
        for each in option_fields(cls):
            if is_stored(each):
                value, kind = facts.get(each.name), each.metadata["kind"]
                if type(value) is not kind and (kind, type(value)) != (float, int):
                    raise ValueError(f"it does not say what {each.name} is")
                found[each.name] = value
        return cls(Rules.parse(facts["board"], facts["p4"]), **found)

    def resumed(self, given: Mapping[str, Any], name: str, run: int = 0) -> Self:
        """Return these settings with those options changed that may; a `ValueError` names others.

        Run number `run` of several has a seed that is larger by `run`.
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
        """The value of an option."""
        places = {"board": self.rules.name, "p4": self.rules.p4}
        return places[key] if key in places else getattr(self, key)

    def _as_held(self, key: str, value: Any) -> Any:
        """The value of an option as the settings hold it."""
        if key == "board":
            return Rules.parse(value).name
        each = {field.name: field for field in option_fields(type(self))}.get(key)
        return value if each is None or key == "seed" else check_value(each, value)

    def default_name(self, kind: str) -> str:
        """Return the name of a training that nobody named."""
        return f"{self.rules.name}-{kind}"

    @classmethod
    def describe(cls, facts: Facts) -> str:
        """Say in a few words what was trained."""
        names = [e.name for e in option_fields(cls) if is_stored(e) and e.name != "seed"]
        return ", ".join(f"{name} {facts[name]}" for name in names)

    @classmethod
    def trained(cls, facts: Facts) -> str:
        """Say for how long it was trained."""
        return f"{facts[cls.counted]:,} {cls.counted}"


def is_stored(each: Field[Any]) -> bool:
    """Return whether a setting is part of what was begun."""
    return bool(each.metadata["stored"])


def check_value(each: Field[Any], value: Any) -> Any:
    """Return the value of a setting as it is held; a `ValueError` if it cannot be.

    Whole numbers that are to be fractions become such, and a text such as 200k a number of things.
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
        return facts["kind"](value)
    if facts["choices"] and value not in facts["choices"]:
        near = nearest(str(value), facts["choices"])
        raise ValueError(f"there is no {each.name} {str(value)[:40]!r}; {near}")
    return value


def spanning(low: float, high: float) -> str:
    """Say in words from where to where numbers are, as far as there are bounds."""
    if math.isinf(low) and math.isinf(high):
        return ""
    if math.isinf(high):
        return f" of at least {low:g}"
    return f" from {low:g} to {high:g}"


def help_of(each: Field[Any]) -> str:
    """Return the help of a setting: what it is, what it may be, and its default."""
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
    """Return what is left of a learning rate that falls along half a cosine to a hundredth."""
    falling = (1 + math.cos(math.pi * min(1.0, share))) / 2
    return LAST_RATE + (1 - LAST_RATE) * falling
