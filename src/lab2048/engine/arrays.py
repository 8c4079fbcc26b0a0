"""The arrays that everything works on, by the names that signatures use, and memory for them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

Words = NDArray[np.uint64]
"""Packed boards, keys and random words."""
Counts = NDArray[np.int64]
"""Numbers, places and moves."""
Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
"""What networks and tables of lines have, where half the memory counts for more than digits."""
Halves = NDArray[np.uint32]
"""Half words: lines of at most eight cells, and numbers of keys in a block."""
Ints = NDArray[np.int32]
"""What networks read, and links of trees, where half the memory counts."""
Bytes = NDArray[np.uint8]
Masks = NDArray[np.int8]
"""Legal moves as Gymnasium has them: four 0s and 1s."""
Flags = NDArray[np.bool_]
Slides = Halves
"""Where lines slide, and the reward (`slides.table`)."""
Pairs = Halves | Words
"""Where lines slide to either side (`slides.pairs`)."""


class Buffer:
    """Memory for arrays that are used one after the other: it grows, and is never given back."""

    def __init__(self, dtype: DTypeLike) -> None:
        self._memory = np.empty(0, dtype)

    def take(self, *shape: int) -> NDArray[Any]:
        """An array of this shape; what is in it is left from before. The last one taken is void."""
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
