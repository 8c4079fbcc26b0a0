"""Players by name: a spec such as `expectimax:depth=3,heuristic=snake` makes one."""

from __future__ import annotations

import importlib
import re
from typing import TYPE_CHECKING, Any

from lab2048.game import Rules
from lab2048.notation import parse_number
from lab2048.wording import nearest

if TYPE_CHECKING:
    from dataclasses import Field

    from lab2048.player import Player

PLAYERS = {
    "random": "lab2048.search.simple:Random",
    "greedy": "lab2048.search.simple:Greedy",
    "corner": "lab2048.search.simple:Corner",
    "minimax": "lab2048.search.minimax:Minimax",
    "expectimax": "lab2048.search.expectimax:Expectimax",
    "expectiminimax": "lab2048.search.minimax:Expectiminimax",
    "sparse": "lab2048.search.sampling:Sparse",
    "montecarlo": "lab2048.search.rollout:MonteCarlo",
    "mcts": "lab2048.search.mcts:TreeSearch",
    "ntuple": "lab2048.learn.play:NTuple",
    "supervised": "lab2048.learn.neural:Supervised",
    "zero": "lab2048.learn.neural:Zero",
    "optimal": "lab2048.solve.optimal:Optimal",
}
"""Where the class of each player is; it is imported when it is needed."""
CUSTOM = "python"

SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}


def player_class(name: str) -> type[Player]:
    """The class of a player, or a `ValueError` that names the nearest."""
    if name not in PLAYERS:
        raise ValueError(f"there is no player {name[:40]!r}; {nearest(name, [*PLAYERS, CUSTOM])}")
    module, _, attribute = PLAYERS[name].partition(":")
    found: type[Player] = getattr(importlib.import_module(module), attribute)
    return found


def make_player(spec: str, rules: Rules) -> Player:
    """The player that a spec describes: a name, and options as `name:option=value,...`.

    >>> make_player("expectimax:depth=2,heuristic=snake", Rules(3, 3)).spec
    'expectimax:depth=2,heuristic=snake'
    """
    name, _, rest = spec.strip().partition(":")
    if name == CUSTOM:
        from lab2048.custom import load

        return load(rest, rules)
    cls, given = parse_spec(spec)
    try:
        return cls(rules, **given)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def parse_spec(spec: str) -> tuple[type[Player], dict[str, Any]]:
    """The class and the options that a spec names; whether these have good values, it does not say.

    A `ValueError` if there is no such player, or it has no such option.
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
    """An option's value from its text; what is not a number of the right kind stays text."""
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
