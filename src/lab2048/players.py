"""Players: from a board and a random word to a move.

`PLAYERS` maps the name of a player to the player. A player that is not random ignores the word.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable

from lab2048 import chance
from lab2048.game import Board, Direction, Game

Player = Callable[[Board, int], Direction]


def random_player(board: Board, word: int) -> Direction:
    """A legal move, each with the same chance."""
    moves = board.legal_moves
    k, _ = chance.bounded(word, len(moves))
    return moves[k]


def take_turn(game: Game, player: Player) -> int:
    """Let a player make its move in a game, with its own word for it; returns the reward."""
    word = chance.word(chance.player_key(game.key), len(game.moves))
    return game.play(player(game.board, word))


PLAYERS: dict[str, Player] = {"random": random_player}


def find_player(name: str) -> Player:
    """The player of that name, or a `ValueError` that names the nearest."""
    if name in PLAYERS:
        return PLAYERS[name]
    near = difflib.get_close_matches(name, PLAYERS, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there is {', '.join(PLAYERS)}"
    raise ValueError(f"there is no player {name[:40]!r}; {hint}")
