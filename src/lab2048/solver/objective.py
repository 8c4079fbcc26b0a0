"""What a solve maximises: the base class of objectives, and the three that come with lab2048.

A new objective takes one class and one call of `register_objective`, which shows an example. The
same kernels, commands and table files then serve it.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, fields, replace
from numbers import Real
from typing import Any, ClassVar, Self, TypeVar

from lab2048.game import Board, Rules
from lab2048.game.notation import short

NEVER = 15
"""The rank of a tile that nobody makes on a board small enough to be solved."""
WON = 1.0
"""The value of an afterstate that holds the tile which ends the game."""
GROUP = "lab2048.objectives"
"""The entry-point group of objectives in other distributions."""
SIZE_OF_SUMS = {"float64": 1024.0, "float32": 1.0}
"""Rounding errors of values that count points are relative to numbers at least this large."""

C = TypeVar("C", bound="type[Objective]")


@dataclass(frozen=True)
class Objective:
    """What a solve maximises.

    With V the value of a state s, W the value of the afterstate x of a move, and r the reward of
    that move,

        V(s) = the largest of  points * r + per_move + gamma * W(x)  over the legal moves
        W(x) = (1 - worst) * mean + worst * least  of V over the spawns on x

    A state without a legal move is worth 0. If there is a `tile`, the game ends as soon as it is
    made, and W is 1 there. All values are at least 0.

    A subclass assigns other values to these attributes. To take one from the user, it annotates it,
    which makes it an argument of the class, and overrides `parse` and `argument`.

    >>> from lab2048 import Problem
    >>> Problem.of("3x3", objective="reach:512").objective.tile
    512
    """

    name: ClassVar[str] = ""
    """The name on the command line: lower-case letters, digits and dashes."""
    form: ClassVar[str] = ""
    """How it is written if it takes an argument, such as `reach:TILE`."""
    about: ClassVar[str] = ""
    """What it means, in a few words for the help, if its name does not say it."""

    points: float = field(default=1.0, init=False, repr=False)
    """The weight of a move's reward."""
    per_move: float = field(default=0.0, init=False, repr=False)
    """What every move adds."""
    worst: float = field(default=0.0, init=False, repr=False)
    """The weight of the worst spawn: 0 for the expectation, 1 for the worst case."""
    tile: int = field(default=0, init=False, repr=False)
    """The tile that ends the game when it is made; 0 if there is none."""
    gamma: float = field(default=1.0, init=False, repr=False)
    """The discount per move, from 0 to 1. A class that annotates it lets users set it."""
    chances: bool = field(default=False, init=False, repr=False)
    """Whether values are probabilities, so that a regret counts relative to them."""

    @property
    def unit(self) -> str:
        """The unit of a regret, as in `lost 12 points`."""
        return "points"

    @property
    def is_score(self) -> bool:
        """Whether it is the expected score, discounted or not, whatever its name."""
        return (self.points, self.per_move, self.worst, self.tile) == (1, 0, 0, 0)

    # -- as text ---------------------------------------------------------------------------------

    @classmethod
    def parse(cls, argument: str | None) -> Self:
        """The objective with an argument, the part after the colon; a `ValueError` if it is wrong.

        The argument is None if there is no colon.
        """
        if argument is not None:
            raise ValueError
        return cls()

    @property
    def argument(self) -> str | None:
        """The argument that `parse` takes."""
        return None

    @property
    def text(self) -> str:
        """The objective as it is written on the command line, without the discount."""
        return self.name if self.argument is None else f"{self.name}:{self.argument}"

    # -- checks and values -----------------------------------------------------------------------

    def check(self, rules: Rules) -> None:
        """Raise a `ValueError` unless the objective makes sense on a board."""
        if not re.fullmatch(r"[a-z][a-z0-9-]*(:[\w.+-]+)?", self.text, re.ASCII):
            raise ValueError(f"an objective names a folder, so {short(self.text)} cannot be one")
        if not 0 <= self.worst <= 1 or not 0 <= self.gamma <= 1:
            raise ValueError(f"worst and gamma of the objective {self.text} are from 0 to 1")
        if not (0 <= self.points < math.inf and 0 <= self.per_move < math.inf):
            raise ValueError(f"points and per_move of the objective {self.text} are 0 or more")
        if self.tile and self.points:
            raise ValueError(f"the objective {self.text} ends with a tile, so points must be 0")
        if self.tile:
            check_tile(self.tile, rules)

    def discounted(self, gamma: float) -> Self:
        """The same with a discount per move (1: unchanged); a `ValueError` if it takes none."""
        gamma = checked_gamma(gamma)
        if gamma in (1, self.gamma):
            return self
        if not _takes_gamma(type(self)):
            names = " or ".join(each.name for each in objectives().values() if _takes_gamma(each))
            raise ValueError(f"gamma belongs to the objective {names}, not to {self.name}")
        return replace(self, gamma=gamma)

    @property
    def stop(self) -> int:
        """The rank that ends the game when it is made; one out of reach if there is none."""
        return self.tile.bit_length() - 1 if self.tile else NEVER

    def is_won(self, board: Board) -> bool:
        """Whether the tile that ends the game is on a board; such boards are not in the files."""
        return self.tile > 0 and board.max_tile >= self.tile

    def q(self, reward: Any, after_value: Any) -> Any:
        """The value of moves, from their rewards and the values of their afterstates."""
        return self.points * reward + self.gamma * after_value + self.per_move

    def fold(self, mean: Any, least: Any) -> Any:
        """The value of afterstates, from the mean and the least value over the spawns."""
        if self.worst in (0, 1):
            return least if self.worst else mean
        return mean + self.worst * (least - mean)

    def rule(self, p4: float) -> tuple[float, float, float, float, float, float]:
        """The parameters of kernels: p4, gamma, worst, points, per_move, q of a move that wins."""
        won = float(self.q(0.0, WON))
        return p4, self.gamma, float(self.worst), float(self.points), float(self.per_move), won

    def size_of_sums(self, kind: str) -> float:
        """The size of the numbers whose differences are values; 0 if values are not differences.

        Points are counted as a difference of two potentials (`lab2048.solver.induction`).
        """
        return self.points * SIZE_OF_SUMS[kind]


def tiles_to_reach(rules: Rules) -> list[int]:
    """The tiles that an objective may ask for on a board, smallest first."""
    return [1 << rank for rank in range(3, rules.cells + 2)]


def check_tile(tile: int, rules: Rules) -> None:
    """Raise a `ValueError` unless an objective may ask for a tile on a board."""
    tiles = tiles_to_reach(rules)
    if tile not in tiles:
        raise ValueError(
            f"a tile to reach on {rules.name} is a power of two from 8 to {tiles[-1]}, "
            f"not {short(tile)}"
        )


def checked_gamma(gamma: object) -> float:
    """The discount as a float, or a `ValueError`."""
    real = isinstance(gamma, Real) and not isinstance(gamma, bool)
    if not real or not 0 <= float(gamma) <= 1:  # type: ignore[arg-type]
        raise ValueError(f"gamma is a number from 0 to 1, not {short(gamma)}")
    return float(gamma) + 0.0  # type: ignore[arg-type]  # -0.0 is 0.0


def discount_text(gamma: float, form: str = "gamma {:g}") -> list[str]:
    """The part of a text that names a discount, in a list; empty if nothing is discounted."""
    return [] if gamma == 1 else [form.format(gamma)]


def _takes_gamma(kind: type[Objective]) -> bool:
    """Whether users may set the discount of an objective."""
    return any(each.name == "gamma" and each.init for each in fields(kind))


# -- the registry --------------------------------------------------------------------------------

_objectives: dict[str, type[Objective]] = {}


def register_objective(kind: C) -> C:
    """Register a class of objectives, so that its `name` can be solved for. Return the class.

    A class that is defined again, as in a notebook, replaces its earlier definition. Another
    distribution registers its objectives permanently, for the command line too, by naming their
    classes in the entry-point group `lab2048.objectives`.

    >>> from dataclasses import dataclass
    >>> from lab2048 import Objective, register_objective, solve
    >>> @register_objective
    ... @dataclass(frozen=True)
    ... class Moves(Objective):
    ...     "The expected number of moves until the game ends."
    ...     name, unit = "moves", "moves"
    ...     points, per_move = 0.0, 1.0
    >>> with solve("2x2", objective="moves") as table:
    ...     round(table.start_value["start"], 3)
    11.96
    """
    name = getattr(kind, "name", None)
    if not isinstance(kind, type) or not issubclass(kind, Objective):
        raise TypeError(f"an objective is a subclass of lab2048.Objective, not {short(kind)}")
    if not isinstance(name, str) or not re.fullmatch(r"[a-z][a-z0-9-]*", name):
        raise ValueError(
            f"the name of an objective is of lower-case letters, digits and dashes, not "
            f"{short(name)}"
        )
    if _takes_gamma(kind) and kind.gamma != 1:
        raise ValueError(f"users set the gamma of the objective {name}, so its default must be 1")
    known = _objectives.get(name)
    if known is not None and (known.__module__, known.__qualname__) != (
        kind.__module__,
        kind.__qualname__,
    ):
        raise ValueError(f"there is an objective {name} already, in {known.__module__}")
    _objectives[name] = kind
    return kind


def objectives() -> dict[str, type[Objective]]:
    """All registered objectives, by name."""
    return dict(_objectives)


class UnknownObjectiveError(ValueError):
    """The name of an objective that is not registered."""


def parse_objective(text: object) -> Objective:
    """The objective that is written like `score` or `reach:512`, or a `ValueError`."""
    name, colon, argument = text.partition(":") if isinstance(text, str) else ("", "", "")
    if name not in _objectives:
        _load(name)
    if name not in _objectives:
        raise UnknownObjectiveError(_not_an_objective(text))
    try:
        return _objectives[name].parse(argument if colon else None)
    except ValueError as error:
        why = f": {error}" if str(error) else ""
        raise ValueError(_not_an_objective(text) + why) from None


def _load(name: str) -> None:
    """Register the objective that another distribution provides under this name."""
    from importlib.metadata import entry_points  # slow to import

    for entry in entry_points(group=GROUP, name=name):
        try:
            register_objective(entry.load())
        except Exception as error:  # whatever another distribution does when it is imported
            raise ValueError(f"the objective {name} cannot be loaded: {error}") from error
        if name not in _objectives:
            raise ValueError(f"the class that {entry.value} names has not the name {name}")


def _not_an_objective(found: object) -> str:
    """The error message that lists the known objectives."""
    more = [_form(kind) for kind in _objectives.values() if kind.__module__ != __name__]
    also = f", or one that was registered, {', '.join(more)}" if more else ""
    return f"an objective is {usual_objectives()}, such as reach:512{also}, not {short(found)}"


def usual_objectives(*, explained: bool = False) -> str:
    """How the objectives that come with lab2048 are written, and what they mean if `explained`."""
    kinds = [kind for kind in _objectives.values() if kind.__module__ == __name__]
    forms = [
        f"{_form(kind)} ({kind.about})" if explained and kind.about else _form(kind)
        for kind in kinds
    ]
    return f"{', '.join(forms[:-1])} or {forms[-1]}"


def _form(kind: type[Objective]) -> str:
    """How an objective is written."""
    return kind.form or kind.name


# -- those that come with lab2048 ----------------------------------------------------------------


@register_objective
@dataclass(frozen=True)
class Score(Objective):
    """The expected score of the rest of the game, discounted by `gamma` per move."""

    name = "score"
    gamma: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "gamma", checked_gamma(self.gamma))


@register_objective
@dataclass(frozen=True)
class WorstCase(Objective):
    """The score that is guaranteed, whatever spawns."""

    name, about = "worst-case", "any spawns"
    worst = 1.0


@register_objective
@dataclass(frozen=True)
class Reach(Objective):
    """The probability of making a tile; the game ends when it is made."""

    name, form, about = "reach", "reach:TILE", "the chance to make it"
    points = 0.0
    chances = True
    tile: int = 0

    def check(self, rules: Rules) -> None:
        """Raise a `ValueError` unless the tile is one to reach on a board."""
        super().check(rules)
        check_tile(self.tile, rules)  # refuses 0 too, which the base class takes for no tile

    @property
    def unit(self) -> str:
        """The unit of a regret."""
        return f"of the chance to make {self.tile}"

    @classmethod
    def parse(cls, argument: str | None) -> Self:
        """The objective of making a tile, written in digits."""
        if not argument or not (argument.isascii() and argument.isdigit() and len(argument) < 10):
            raise ValueError
        return cls(int(argument))

    @property
    def argument(self) -> str:
        """The tile."""
        return str(self.tile)
