"""A replay buffer: the latest experiences, sampled at random."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from lab2048.learn.learner import GAME
from lab2048.learn.network_files import Tensors

Columns = Mapping[str, tuple[DTypeLike, tuple[int, ...]]]
"""The columns of a replay buffer: by name the dtype, and the shape of one row."""


class Replay:
    """A ring buffer of the last `size` experiences.

    >>> replay = Replay(3, {"boards": (np.uint64, ()), "values": (np.float32, (4,))})
    >>> replay.add({"boards": np.arange(5), "values": np.zeros((5, 4))})
    >>> sorted(set(replay.sample(100, np.random.default_rng(1))["boards"].tolist()))
    [2, 3, 4]
    """

    def __init__(self, size: int, columns: Columns) -> None:
        self.size, self.filled, self.following = size, 0, 0
        self._columns: Tensors = {
            name: np.zeros((size, *shape), dtype) for name, (dtype, shape) in columns.items()
        }

    def add(self, new: Mapping[str, NDArray[Any]]) -> None:
        """Add rows; once the buffer is full, they replace the oldest."""
        places = (self.following + np.arange(len(next(iter(new.values()))))) % self.size
        for name, column in self._columns.items():
            column[places] = new[name]
        self.following = int((self.following + len(places)) % self.size)
        self.filled = min(self.size, self.filled + len(places))

    def sample(self, size: int, draw: np.random.Generator) -> dict[str, NDArray[Any]]:
        """Return random rows, drawn with replacement."""
        places = draw.integers(0, self.filled, size)
        return {name: column[places] for name, column in self._columns.items()}

    def tensors(self) -> Tensors:
        """Return the filled rows, in the order of the ring."""
        return {f"{GAME}{name}": column[: self.filled] for name, column in self._columns.items()}

    def load(self, tensors: Tensors, following: int) -> None:
        """Restore stored rows; `following` is the place of the next row."""
        if not 0 <= following < self.size:
            raise ValueError(f"there is no place {following} among {self.size} positions")
        self.add({name: tensors[f"{GAME}{name}"] for name in self._columns})
        self.following = following
