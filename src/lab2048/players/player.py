"""What a player is: from boards and random words to moves, one board or thousands at a time.

A player has a name, options that are the fields of its class, and one method of its own that values
the moves of many boards. Everything else follows from that: the move it makes, the probability of
each move, and the values of a single position.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from lab2048.engine.arrays import Bytes, Counts, Floats, Words
from lab2048.game import Direction, Position, Rules

Moves = Counts

TIES = ("first", "split")


class PlayerError(ValueError):
    """A player cannot do something, or cannot be made.

    >>> from lab2048 import exact_value
    >>> try:
    ...     exact_value("montecarlo", "2x2")
    ... except PlayerError as error:
    ...     print(str(error)[:20])
    the chances of the m
    """


def option(
    default: Any,
    about: str,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    choices: Collection[str] = (),
    kind: str = "",
) -> Any:
    """Return a field that is an option of a player: its default, help, and range or choices.

    `choices` may grow later: they are checked when a player is made.

    >>> @dataclass(frozen=True, eq=False)
    ... class Patient(Player):
    ...     seconds: float = option(1.0, "how long it thinks", low=0, high=60)
    >>> [each.name for each in Patient.options()]
    ['seconds']
    """
    facts = {"about": about, "low": low, "high": high, "choices": choices, "kind": kind}
    return field(default=default, metadata=facts)


def ties_option() -> Any:
    """The option that says which of several best moves is made."""
    return option("first", "of equally good moves the lowest direction, or any", choices=TIES)


@dataclass(frozen=True, eq=False)
class Player:
    """A player on a board of these rules.

    A subclass defines at least `values_many` or `choose_many`.

    >>> from lab2048 import player
    >>> greedy = player("greedy", "2x2")
    >>> greedy.values("2 2 / 4 4")[Direction.LEFT]
    12.0
    """

    rules: Rules

    name: ClassVar[str]
    about: ClassVar[str]
    """What it does, in a line."""
    meaning: ClassVar[str]
    """What its values are."""
    tie: ClassVar[float] = 1e-12
    """Values that differ by less, relative to their size, count as equal: sums are rounded."""

    def __post_init__(self) -> None:
        for each in self.options():
            _check(each, getattr(self, each.name))

    @classmethod
    def options(cls) -> list[dataclasses.Field[Any]]:
        """The fields that are options; the one that needs no name in a spec comes first."""
        found = [each for each in dataclasses.fields(cls) if "about" in each.metadata]
        return sorted(found, key=lambda each: each.metadata["kind"] != "name")

    @property
    def spec(self) -> str:
        """The text that makes this player: its name, and the options that are not the default."""
        chosen = []
        for each in self.options():
            found, kind = getattr(self, each.name), each.metadata["kind"]
            if found != each.default:
                named = kind == "name"
                chosen.append(found if named else f"{each.name}={format_value(found, kind)}")
        return f"{self.name}:{','.join(chosen)}" if chosen else self.name

    @property
    def identity(self) -> str:
        """A text of all that its games depend on: a match resumes only with the same player."""
        return self.spec

    @property
    def draws(self) -> bool:
        """Whether its random words decide more than ties."""
        return False

    @property
    def timed(self) -> bool:
        """Whether its moves depend on the speed of the machine."""
        return False

    @property
    def parallel(self) -> bool:
        """Whether several threads may ask it at the same time."""
        return True

    @property
    def together(self) -> int:
        """The number of boards that it is best asked about at a time."""
        return 1

    @property
    def symmetric(self) -> bool:
        """Whether it plays all images of a board alike; then canonical boards tell everything."""
        return False

    @property
    def points(self) -> bool:
        """Whether its values are expected scores, so that a difference is a loss in points."""
        return False

    @property
    def splits(self) -> bool:
        """Whether it draws among moves that are equally good."""
        return getattr(self, "ties", "first") == "split"

    def __str__(self) -> str:
        return self.spec

    # -- many boards -----------------------------------------------------------------------------

    def prepare(self) -> None:
        """Compile and load what is needed, so that no later call has to."""
        from lab2048.game import Game

        self.choose(Game(self.rules, 0).board)

    def values_many(self, boards: Words, words: Words) -> Floats:
        """The values of the four moves on each packed board; NaN where a move is illegal."""
        raise PlayerError(f"{self.name} has no values")

    def choose_many(self, boards: Words, words: Words) -> Moves:
        """The move on each packed board, each with its own random word; -1 if none is legal."""
        from lab2048.players.ties import pick

        return pick(self.values_many(boards, words), words, self.splits, self.tie)

    def play_on(self, state: Words, four: Words, moves: Bytes, results: Moves) -> bool:
        """Make several moves in each of many games at once; return whether the player can.

        `state` and `four` are those of `engine.batch.step_kernel`. `moves` gets the moves of each
        game in a row, as many as fit; `results` how many they were, what they scored, and whether
        the next one makes a tile that is too large.
        """
        return False

    def probabilities(self, boards: Words) -> Floats:
        """The probability of each of the four moves on each packed board."""
        from lab2048.players.ties import shares

        if self.draws or self.timed:
            raise PlayerError(f"the chances of the moves of {self.spec} are not known: {self.why}")
        return shares(self.values_many(boards, np.zeros_like(boards)), self.splits, self.tie)

    @property
    def why(self) -> str:
        """Why the probabilities of its moves are not known."""
        return "it depends on time" if self.timed else "it draws random games or spawns"

    # -- one board -------------------------------------------------------------------------------

    def choose(self, board: Position, word: int = 0) -> Direction:
        """The move on a board in any form; players that draw do so with this random word."""
        move = int(self.choose_many(self._packed(board), np.array([word], np.uint64))[0])
        if move < 0:
            raise ValueError(f"no move is legal on {self.rules.position(board)}")
        return Direction(move)

    def values(self, board: Position, word: int = 0) -> dict[Direction, float]:
        """The player's value of every legal move on a board; `meaning` says what that is."""
        found = self.values_many(self._packed(board), np.array([word], np.uint64))[0]
        return {d: float(found[d]) for d in Direction if not np.isnan(found[d])}

    def _packed(self, board: Position) -> Words:
        """One board as an array; if its tiles are too large, its `stand_in`."""
        position = self.rules.position(board)
        self.rules.check(position)
        return np.array([position.stand_in().packed], np.uint64)


def _check(each: dataclasses.Field[Any], value: Any) -> None:
    """Raise a `PlayerError` unless an option may have this value."""
    facts = each.metadata
    if value is each.default:
        return
    if facts["choices"]:
        if value not in facts["choices"]:
            choices = either(tuple(facts["choices"]))
            raise PlayerError(f"{each.name} is {choices}, not {str(value)[:40]}")
        return
    if isinstance(each.default, str):
        return
    whole = facts["kind"] != "seconds" and isinstance(each.default, int)
    fits = isinstance(value, Integral if whole else Real)
    if isinstance(value, bool) or not fits or not facts["low"] <= value <= facts["high"]:
        kind = facts["kind"]
        low, high = (format_value(facts[end], kind) for end in ("low", "high"))
        number = "a whole number" if whole else "a time" if kind == "seconds" else "a number"
        raise PlayerError(
            f"{each.name} is {number} from {low} to {high}, not {format_value(value, kind)}"
        )


def either(words: tuple[str, ...]) -> str:
    """Words as a choice: `a, b or c`."""
    return " or ".join([", ".join(words[:-1])] * (len(words) > 1) + [words[-1]])


def format_value(value: Any, kind: str = "") -> str:
    """An option's value as it is written in a spec."""
    if kind == "seconds" and isinstance(value, int | float):
        return f"{value * 1000:.12g}ms" if value < 1 else f"{value:.12g}s"
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)[:40]
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)[:40]
