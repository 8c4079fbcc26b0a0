"""The rules in plain Python, without Numba: `Rules`, `Board`, `Game`, notation, randomness."""

from lab2048.game.board import (
    MAX_AGE,
    MAX_PACKED_RANK,
    Board,
    Canonical,
    Direction,
    Move,
    direction_from_image,
    direction_on_image,
)
from lab2048.game.game import Game, random_move
from lab2048.game.rules import P4, Position, Rules, Spawn
from lab2048.game.spawns import spawned as spawned

__all__ = [
    "MAX_AGE",
    "MAX_PACKED_RANK",
    "P4",
    "Board",
    "Canonical",
    "Direction",
    "Game",
    "Move",
    "Position",
    "Rules",
    "Spawn",
    "direction_from_image",
    "direction_on_image",
    "random_move",
    "spawned",
]
