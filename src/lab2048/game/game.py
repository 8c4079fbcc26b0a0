"""One game, move by move: seeded, and exact through the 131072 tile."""

from __future__ import annotations

import secrets
from typing import SupportsIndex

from lab2048.game import randomness
from lab2048.game.board import Board, Direction, checked_direction, trusted
from lab2048.game.rules import Rules
from lab2048.game.spawns import four_threshold, spawned


class Game:
    """One game, move by move; the same rules, seed and moves always give the same game.

    >>> game = Game(Rules(3, 3), seed=7)
    >>> print(game.board)
    . . . / . . . / 2 . 2
    >>> game.play(Direction.LEFT)
    4
    >>> game.score, len(game.moves), game.over
    (4, 1, False)
    """

    def __init__(
        self,
        rules: Rules,
        seed: int | None = None,
        *,
        index: int = 0,
        start: Board | None = None,
    ) -> None:
        """Start game number `index` of a seed; `start` replaces the first two tiles.

        Without a seed, one is drawn and kept in `self.seed`.
        """
        self.rules = rules
        self.seed = secrets.randbits(32) if seed is None else randomness.checked_seed(seed)
        self.index = randomness.checked_seed(index, "the index of a game")
        self.key = randomness.game_key(self.seed, self.index)
        self.moves: list[Direction] = []
        self.spawns: list[tuple[int, int]] = []
        self.score = 0
        self._threshold = four_threshold(rules.p4)
        self._past: list[tuple[Board, int]] = []
        self.start = start
        if start is None:
            self.board = trusted((0,) * rules.cells, rules.rows, rules.cols)
            self._spawn()
            self._spawn()
        else:
            rules.check(start)
            self.board = start

    @property
    def over(self) -> bool:
        """Whether no move is legal."""
        return self.board.is_terminal

    @property
    def own_word(self) -> int:
        """The player's random word for the next move."""
        return randomness.word(randomness.player_key(self.key), len(self.moves))

    def __repr__(self) -> str:
        rules, moves = self.rules, len(self.moves)
        return f"<Game {rules.name}, seed {self.seed}, {moves} moves, score {self.score}>"

    def _repr_html_(self) -> str:
        """The board, the number of moves and the score, for notebooks."""
        over = ", over" * self.over
        facts = f"{self.rules.name}, {len(self.moves):,} moves, score {self.score:,}{over}"
        return f"{self.board._repr_svg_()}<p>{facts}, seed {self.seed}</p>"

    def play(self, direction: SupportsIndex | str) -> int:
        """Make a legal move, let a tile spawn, and return the reward."""
        direction = Direction(checked_direction(direction))
        legal, reward, after = self.board.move(direction)
        if not legal:
            raise ValueError(f"{direction} is not legal on {self.board}")
        self._past.append((self.board, self.score))
        self.moves.append(direction)
        self.board = after
        self.score += reward
        self._spawn()
        return reward

    def undo(self) -> bool:
        """Undo the last move; False if there is none. The same move spawns the same tile again."""
        if not self._past:
            return False
        self.board, self.score = self._past.pop()
        self.moves.pop()
        self.spawns.pop()
        return True

    def _spawn(self) -> None:
        """Put the next tile on the board."""
        word = randomness.word(self.key, len(self.spawns))
        self.board, cell, rank = spawned(self.board, word, self._threshold)
        self.spawns.append((cell, rank))


def random_move(board: Board, word: int) -> Direction:
    """Draw a legal move from a random word, uniformly."""
    moves = board.legal_moves
    k, _ = randomness.bounded(word, len(moves))
    return moves[k]
