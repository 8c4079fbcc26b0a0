"""Limits of requests: the players and their options, sizes, times and numbers.

Each limit of an option is chosen so that a move on 4x4 takes less than a second; a search that
takes longer anyway, on a slow machine or an open board, is stopped after `MOVE_SECONDS`.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from lab2048.game import Rules
from lab2048.learn.registry import find_learner, is_learner
from lab2048.players.player import Player, PlayerError, format_value
from lab2048.players.registry import (
    CUSTOM,
    make_player,
    parse_spec,
    player_class,
    player_names,
)

MOST = {
    ("expectimax", "depth"): 5,
    ("expectiminimax", "depth"): 3,
    ("minimax", "depth"): 4,
    ("sparse", "depth"): 4,
    ("sparse", "samples"): 10,
    ("ntuple", "depth"): 4,
    ("montecarlo", "rollouts"): 20_000,
    ("mcts", "simulations"): 10_000,
    ("mcts", "rollouts"): 2,
    ("zero", "simulations"): 400,
    ("expectimax", "time"): 1.0,
    ("ntuple", "time"): 1.0,
}
"""The largest values of options in a request; the players themselves allow more."""
REFUSED = ("device",)
"""Options that a request may not choose."""
SPEC = 200
"""The longest spec of a player, in characters."""
PLAYERS_AT_ONCE = 4
"""The most players that one request may name."""
BODY = 1 << 20
"""The largest body of a request, in bytes: a 4x4 game up to 131072 takes 400,000."""
MESSAGE = 4096
"""The largest message to a watched game, in characters."""
WATCHED = 64
"""The most games watched at a time."""
WATCHED_BY_ONE = 32
"""The most of them from one address."""
IDLE = 600.0
"""Seconds without an order after which a game is dropped, unless it is being played."""
WAITING = 64
"""The most pieces of work from one address that may wait."""
WAITING_IN_ALL = 1024
MOVE_SECONDS = 1.0
"""Seconds that a player may search for a move, whatever its options say."""
REQUEST_SECONDS = 10.0
"""Seconds from the first byte of a request, or a new connection, until all of it has arrived."""
CONNECTIONS = 1000
LINES = 100
"""Log lines about clients and errors of the application, per hour."""
SOLVES = 32
"""Tables with another p4 than the default that a running studio makes on request."""
SOLVED_BYTES = 512_000_000
"""The disk space that these tables may take, by estimate."""


def checked_player(spec: str, rules: Rules) -> Player:
    """Return the player of a spec, or raise a `ValueError` if a request may not use it."""
    name = spec.strip().partition(":")[0]
    if len(spec) > SPEC:
        raise ValueError(f"a player's spec has at most {SPEC} characters")
    if name == CUSTOM:
        raise ValueError("your own players (python:…) cannot be used over the network")
    _, given = parse_spec(spec)
    for option, value in given.items():
        if option in REFUSED:
            raise ValueError(f"{name}: {option} cannot be chosen here")
        _check_amount(name, option, value)
    if given.get("network"):
        from lab2048.learn.network_files import network_folder

        network_folder(given["network"])  # a name, not the path of a file
    return make_player(spec, rules)


def _check_amount(name: str, option: str, value: Any) -> None:
    """Raise a `PlayerError` if an option asks for too much work."""
    most = MOST.get((name, option))
    if most is not None and isinstance(value, int | float) and value > most:
        shown = format_value(most, "seconds" if option == "time" else "")
        raise PlayerError(f"{name}: {option} is at most {shown} here; the command line takes more")


def describe_players(rules: Rules) -> list[dict[str, Any]]:
    """Describe every player: its options, and whether it can play on a board."""
    return [_describe(name, rules) for name in player_names()]


def _describe(name: str, rules: Rules) -> dict[str, Any]:
    try:
        cls = player_class(name)
    except ValueError as error:  # from another distribution, which cannot be loaded
        return {"name": name, "about": "", "values": "", "options": [], "trouble": str(error)}
    options = [
        {
            "name": each.name,
            "about": each.metadata["about"],
            "default": each.default,
            "choices": list(each.metadata["choices"]),
            "most": MOST.get((name, each.name)),
        }
        for each in cls.options()
        if each.name not in REFUSED
    ]
    return {
        "name": name,
        "about": cls.about,
        "values": cls.meaning,
        "options": options,
        "trouble": _trouble(name, rules),
    }


def _trouble(name: str, rules: Rules) -> str | None:
    """Return why a player cannot play on a board at present; None if it can."""
    if is_learner(name):
        from lab2048.players.shipped import shipped

        if not shipped(name, rules.name).exists():
            return f"there is no {name} network for {rules.name} in the package"
        if find_learner(name).neural and find_spec("torch") is None:
            return "it needs torch: pip install 'lab2048[neural]'"
    if name == "optimal":
        from lab2048.solver.problem import Problem
        from lab2048.solver.tables import find_table, is_made_when_needed

        try:
            problem = Problem.of(rules)
            solved = is_made_when_needed(problem) or find_table(problem) is not None
        except ValueError as error:
            return str(error)
        return None if solved else f"{rules.name} is not solved yet"
    return None
