"""Players by name: a spec such as `expectimax:depth=3,heuristic=snake` makes one."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from lab2048.formatting import nearest
from lab2048.game import Rules
from lab2048.game.notation import parse_number
from lab2048.tabular import Tabular

if TYPE_CHECKING:
    from dataclasses import Field

    from lab2048.players.player import Player

PLAYERS = {
    "random": "lab2048.players.simple:Random",
    "greedy": "lab2048.players.simple:Greedy",
    "corner": "lab2048.players.simple:Corner",
    "minimax": "lab2048.players.minimax:Minimax",
    "expectimax": "lab2048.players.expectimax:Expectimax",
    "expectiminimax": "lab2048.players.minimax:Expectiminimax",
    "sparse": "lab2048.players.sparse_sampling:Sparse",
    "montecarlo": "lab2048.players.monte_carlo:MonteCarlo",
    "mcts": "lab2048.players.mcts:TreeSearch",
    "optimal": "lab2048.solver.optimal:Optimal",
}
"""The class of each player, which is imported when it is needed. Learners add theirs."""
LEARNERS = "lab2048.learn.registry"
"""The module that adds the players of learners."""
ENTRY_POINTS = "lab2048.players"
"""The entry-point group in which other distributions name their players."""
CUSTOM = "python"
PlayerLike: TypeAlias = "str | Player | Callable[..., Any]"
"""What `player` accepts."""

_registered: dict[str, type[Player]] = {}

SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}


def register_player(cls: type[Player]) -> type[Player]:
    """Register a class of players, so that its `name` can be used in specs. Return the class.

    Its dataclass fields that are made by `option` are its options. A distribution registers its
    players for good by naming their classes in the entry-point group `lab2048.players`.

    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> from lab2048 import Player, Rules, option, player, register_player
    >>> @register_player
    ... @dataclass(frozen=True, eq=False)
    ... class Fixed(Player):
    ...     first: int = option(0, "the direction that it likes best", low=0, high=3)
    ...     name, about, meaning = "fixed", "one direction wherever it is legal", "1 or 0"
    ...     def values_many(self, boards, words):
    ...         from lab2048 import legal_moves
    ...         legal = legal_moves(boards, self.rules)
    ...         return np.where(legal, np.arange(4) == self.first, np.nan)
    >>> player("fixed:first=2", "2x2").choose("2 . / . 2")
    <Direction.DOWN: 2>
    """
    from lab2048.players.player import Player

    if not (isinstance(cls, type) and issubclass(cls, Player)):
        raise TypeError(f"a player is a subclass of lab2048.Player, not {cls!r}")
    known = {**PLAYERS, **_elsewhere(), CUSTOM: ""}
    if cls.name in known or _same_name(cls):
        raise ValueError(f"there is a player {cls.name} already")
    if not re.fullmatch(r"[a-z][a-z0-9_-]*", cls.name):
        raise ValueError(f"a player's name is of small letters and digits, not {cls.name!r}")
    _registered[cls.name] = cls
    return cls


def _same_name(cls: type[Player]) -> bool:
    """Whether another class has this name; one that is defined again replaces itself."""
    before = _registered.get(cls.name)
    return before is not None and before.__qualname__ != cls.__qualname__


@cache
def _elsewhere() -> dict[str, Any]:
    """The players of other distributions, as entry points by name; learners add theirs before."""
    from importlib.metadata import entry_points

    importlib.import_module(LEARNERS).learners()
    found = {each.name: each for each in entry_points(group=ENTRY_POINTS)}
    return {name: each for name, each in found.items() if name not in PLAYERS}


def player_names() -> list[str]:
    """Return the names of all players: the package's, other distributions', registered ones."""
    elsewhere = _elsewhere()
    return [*PLAYERS, *elsewhere, *_registered]


def player_class(name: str) -> type[Player]:
    """Return the class of a player, or raise a `ValueError` that names the nearest."""
    found: type[Player]
    if name not in PLAYERS and name not in _registered:
        _elsewhere()  # a learner may add it
    if name in PLAYERS:
        module, _, attribute = PLAYERS[name].partition(":")
        found = getattr(importlib.import_module(module), attribute)
        return found
    if name in _registered:
        return _registered[name]
    if name in _elsewhere():
        try:
            found = _elsewhere()[name].load()
        except Exception as error:  # whatever another distribution does when it is imported
            raise ValueError(f"the player {name} cannot be loaded: {error}") from error
        return found
    near = nearest(name, [*player_names(), CUSTOM])
    raise ValueError(f"there is no player {name[:40]!r}; {near}")


class PlayerFacts(NamedTuple):
    """What a kind of player does, what its values are, and its options."""

    about: str
    values: str
    options: dict[str, dict[str, Any]]
    """By their names: `default`, `about`, and `choices` or None."""


class PlayerList(Tabular, Mapping[str, PlayerFacts]):
    """All kinds of players by their names."""

    def __init__(self) -> None:
        self._facts = {name: _facts(player_class(name)) for name in player_names()}

    def __getitem__(self, name: str) -> PlayerFacts:
        return self._facts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._facts)

    def __len__(self) -> int:
        return len(self._facts)

    def as_json(self) -> dict[str, Any]:
        """Return what `lab2048 players --json` prints."""
        return {name: facts._asdict() for name, facts in self.items()}

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per player."""
        return [
            {"player": name, "options": ", ".join(facts.options), "about": facts.about}
            for name, facts in self.items()
        ]


def _facts(cls: type[Player]) -> PlayerFacts:
    """The facts about a class of players."""
    options = {
        each.name: {
            "default": each.default,
            "about": each.metadata["about"],
            "choices": list(each.metadata["choices"]) or None,
        }
        for each in cls.options()
    }
    return PlayerFacts(cls.about, cls.meaning, options)


def list_players() -> PlayerList:
    """Return all kinds of players: what each does, and its options.

    >>> list_players()["expectimax"].options["depth"]["default"]
    3
    """
    return PlayerList()


def player(
    what: str | Player | Callable[..., Any],
    board: str | Rules = "4x4",
    *,
    p4: float | None = None,
) -> Player:
    """Return the player that a spec or a function describes, on a board.

    A spec is a name with options, such as `"expectimax:depth=2"` (`list_players` shows all). A
    function is given ranks (uint8, N x rows x cols; 0 is empty, 11 is 2048) and which moves are
    legal (bool, N x 4; up, right, down, left), and returns one direction per board, or the
    probability of each move (N x 4). A `Player` of this board is returned unchanged.

    >>> player("greedy", "3x3").choose("2 2 4 / . . . / 8 8 .")
    <Direction.RIGHT: 1>
    >>> first_legal = player(lambda ranks, legal: legal.argmax(axis=1), "3x3")
    >>> first_legal.choose("2 2 4 / . . . / 8 8 .")
    <Direction.UP: 0>
    """
    from lab2048.players.player import Player

    rules = board if isinstance(board, Rules) else Rules.parse(board)
    if p4 is not None:
        rules = Rules(rules.rows, rules.cols, p4)
    if isinstance(what, Player):
        if what.rules != rules:
            raise ValueError(
                f"{what.spec} plays on {what.rules.name} with p4 {what.rules.p4:g}, not on "
                f"{rules.name} with p4 {rules.p4:g}"
            )
        return what
    if isinstance(what, str):
        return make_player(what, rules)
    if callable(what):
        from lab2048.players.custom import Custom

        return Custom(rules, what)
    raise TypeError(f"a player is a spec, a Player or a function, not {what!r}")


def make_player(spec: str, rules: Rules) -> Player:
    """The player that a spec describes: a name, and options as `name:option=value,...`.

    >>> make_player("expectimax:depth=2,heuristic=snake", Rules(3, 3)).spec
    'expectimax:depth=2,heuristic=snake'
    """
    name, _, rest = spec.strip().partition(":")
    if name == CUSTOM:
        from lab2048.players.custom import load

        return load(rest, rules)
    cls, given = parse_spec(spec)
    try:
        return cls(rules, **given)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def parse_spec(spec: str) -> tuple[type[Player], dict[str, Any]]:
    """Return the class and the options that a spec names, without checking the options' ranges.

    Raise a `ValueError` if there is no such player, or it has no such option.
    """
    name, _, rest = spec.strip().partition(":")
    cls = player_class(name)
    fields = {each.name: each for each in cls.options()}
    unnamed = next((each.name for each in cls.options() if each.metadata["kind"] == "name"), "")
    given: dict[str, Any] = {}
    for place, part in enumerate(rest.split(",") if rest else []):
        option, equals, text = part.partition("=")
        option = option.strip()
        if unnamed and place == 0 and not equals:
            given[unnamed] = option
            continue
        if option not in fields:
            options = nearest(option, fields) if fields else "it has none"
            raise ValueError(f"{name} has no option {option[:40]!r}; {options}")
        if option in given or not equals:
            what = "is given twice" if equals else "needs a value"
            raise ValueError(f"{name}: {option} {what}, as in {name}:{option}=...")
        given[option] = parse_value(fields[option], text.strip())
    return cls, given


def parse_value(field: Field[Any], text: str) -> Any:
    """Parse an option's value; text that is not a number of the right kind stays text."""
    if field.metadata["kind"] == "seconds":
        found = re.fullmatch(r"([0-9]+\.?[0-9]*|\.[0-9]+)\s*(us|ms|s)", text)
        if not found:
            raise ValueError(f"{field.name} is a time such as 10ms or 0.5s, not {text[:40]!r}")
        text = str(float(found[1]) * SECONDS[found[2]])
    kind: type[Any] = float if field.default is None else type(field.default)
    try:
        return text if kind is str else parse_number(text, kind)
    except ValueError:
        return text


# Learners are in a lower package, each with one entry in their own registry. It adds their players
# to `PLAYERS`, and imports nothing large.
importlib.import_module(LEARNERS)
