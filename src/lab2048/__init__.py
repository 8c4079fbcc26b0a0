"""lab2048: a laboratory for the game 2048.

The names below are the public API. They are found when they are first used, so that importing
the package loads no kernel and no large library.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lab2048.arena import play_match as play_match
    from lab2048.bulk import Results as Results
    from lab2048.bulk import random_games as random_games
    from lab2048.custom import Custom as Custom
    from lab2048.game import Board as Board
    from lab2048.game import Canonical as Canonical
    from lab2048.game import Direction as Direction
    from lab2048.game import Game as Game
    from lab2048.game import Move as Move
    from lab2048.game import Rules as Rules
    from lab2048.game import Spawn as Spawn
    from lab2048.game import direction_from_image as direction_from_image
    from lab2048.game import direction_on_image as direction_on_image
    from lab2048.learn.ntuple import Network as Network
    from lab2048.learn.training import Settings as Settings
    from lab2048.learn.training import Training as Training
    from lab2048.learn.weights import read_weights as read_weights
    from lab2048.learn.weights import write_weights as write_weights
    from lab2048.measure import evaluate as evaluate
    from lab2048.player import Player as Player
    from lab2048.players import make_player as make_player
    from lab2048.solve.policy import evaluate_policy as evaluate_policy
    from lab2048.solve.problem import Problem as Problem
    from lab2048.solve.solver import make_table as make_table
    from lab2048.solve.store import TableError as TableError
    from lab2048.solve.survey import survey as survey
    from lab2048.solve.table import NotInTableError as NotInTableError
    from lab2048.solve.table import Table as Table
    from lab2048.solve.table import open_table as open_table

__version__ = "0.1.0"

_HOMES = {
    "lab2048.game": [
        "Board",
        "Canonical",
        "Direction",
        "Game",
        "Move",
        "Rules",
        "Spawn",
        "direction_from_image",
        "direction_on_image",
    ],
    "lab2048.bulk": ["Results", "random_games"],
    "lab2048.player": ["Player"],
    "lab2048.players": ["make_player"],
    "lab2048.custom": ["Custom"],
    "lab2048.arena": ["play_match"],
    "lab2048.measure": ["evaluate"],
    "lab2048.learn.ntuple": ["Network"],
    "lab2048.learn.training": ["Settings", "Training"],
    "lab2048.learn.weights": ["read_weights", "write_weights"],
    "lab2048.solve.policy": ["evaluate_policy"],
    "lab2048.solve.problem": ["Problem"],
    "lab2048.solve.solver": ["make_table"],
    "lab2048.solve.store": ["TableError"],
    "lab2048.solve.survey": ["survey"],
    "lab2048.solve.table": ["NotInTableError", "Table", "open_table"],
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = ["__version__", *_HOME_OF]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'lab2048' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


if "gymnasium" in sys.modules:
    from lab2048.registration import register_envs

    register_envs()
