"""The array types used everywhere, as annotations name them, and reusable memory for arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

Words = NDArray[np.uint64]
"""Packed boards, keys and random words."""
Counts = NDArray[np.int64]
"""Counts, indices and moves."""
Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
"""Networks and line tables, where halving the memory matters more than precision."""
Halves = NDArray[np.uint32]
"""Half words: lines of at most eight cells, and indices of keys."""
Ints = NDArray[np.int32]
"""Inputs of networks, and links of trees, where halving the memory matters."""
Bytes = NDArray[np.uint8]
Masks = NDArray[np.int8]
"""Legal moves in Gymnasium's form: four 0s and 1s."""
Flags = NDArray[np.bool_]
Slides = Halves
"""Slid lines and their rewards (`slides.table`)."""
Pairs = Halves | Words
"""Lines slid to both sides (`slides.pairs`)."""


class Buffer:
    """Reusable memory for one array at a time; it grows and never shrinks."""

    def __init__(self, dtype: DTypeLike) -> None:
        self._memory = np.empty(0, dtype)

    def take(self, *shape: int) -> NDArray[Any]:
        """An uninitialised array of this shape, valid until the next call."""
        size = int(np.prod(shape))
        if len(self._memory) < size:
            self._memory = np.empty(size * 5 // 4, self._memory.dtype)
        return self._memory[:size].reshape(shape)


def ranks_of(boards: Words, cells: int) -> Bytes:
    """The rank of every cell of packed boards; the cells are the last axis.

    >>> ranks_of(np.array([0x0021, 0x3000], np.uint64), 4).tolist()
    [[1, 2, 0, 0], [0, 0, 0, 3]]
    """
    shifts = np.arange(0, 4 * cells, 4, dtype=np.uint64)
    return ((boards[..., None] >> shifts) & np.uint64(15)).astype(np.uint8)
