"""The replay buffer of self-play: the last positions, which are learnt from in a random order."""

from __future__ import annotations

import numpy as np

from lab2048.learn.algorithm import GAME
from lab2048.learn.network_files import Tensors
from lab2048.learn.selfplay import Lessons


class Replay:
    """The last positions, in a ring."""

    def __init__(self, size: int) -> None:
        self.size, self.filled, self.following = size, 0, 0
        none = Lessons(
            np.zeros(0, np.uint64),
            np.zeros((0, 4), np.float32),
            np.zeros(0, np.float32),
            np.zeros(0, np.uint64),
            np.zeros(0, np.float32),
        )
        self._columns = {
            name: np.zeros((size, *each.shape[1:]), each.dtype)
            for name, each in none._asdict().items()
        }

    def add(self, new: Lessons) -> None:
        """Put positions in the place of the oldest."""
        places = (self.following + np.arange(len(new.states))) % self.size
        for name, each in new._asdict().items():
            self._columns[name][places] = each
        self.following = int((self.following + len(places)) % self.size)
        self.filled = min(self.size, self.filled + len(places))

    def sample(self, size: int, draw: np.random.Generator) -> Lessons:
        """Positions at random."""
        places = draw.integers(0, self.filled, size)
        return Lessons(**{name: each[places] for name, each in self._columns.items()})

    def tensors(self) -> Tensors:
        """The positions, as they are in the ring."""
        return {f"{GAME}{name}": each[: self.filled] for name, each in self._columns.items()}

    def load(self, tensors: Tensors, following: int) -> None:
        """Take positions that were stored; the next one goes to this place."""
        if not 0 <= following < self.size:
            raise ValueError(f"there is no place {following} among {self.size} positions")
        self.add(Lessons(*(tensors[f"{GAME}{name}"] for name in Lessons._fields)))
        self.following = following
