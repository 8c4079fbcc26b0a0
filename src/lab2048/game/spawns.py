"""Where tiles spawn, in plain Python: uniformly among the empty cells, a 4 with probability p4.

`lab2048.engine.spawns` has the same as kernels; tests check that both agree.
"""

from __future__ import annotations

from lab2048.game import randomness
from lab2048.game.board import Board


def four_threshold(p4: float) -> tuple[int, int]:
    """`p4` as a binary fraction of 32 + 64 bits: exact for 0, 1 and every float from 2**-43."""
    numerator, denominator = p4.as_integer_ratio()
    scaled = (numerator << 96) // denominator
    return scaled >> 64, scaled & randomness.MASK64


def is_four(w: int, threshold: tuple[int, int]) -> bool:
    """Whether the tile spawned with word `w` is a 4.

    The lower half of the word is compared with the threshold's first 32 bits; only if they are
    equal is another word compared with the other 64.
    """
    low = w & 0xFFFF_FFFF
    return low < threshold[0] or (low == threshold[0] and randomness.again(w) < threshold[1])


def draw_spawn(w: int, empty: int, threshold: tuple[int, int]) -> tuple[int, int]:
    """The index (from 0) of the empty cell that gets a tile, and the tile's rank."""
    which, w = randomness.bounded(w, empty)
    return which, 2 if is_four(w, threshold) else 1


def spawned(after: Board, word: int, threshold: tuple[int, int]) -> tuple[Board, int, int]:
    """Draw a spawn from a random word; return the board, and the cell and rank of the new tile.

    `threshold` is `four_threshold` of the rules' p4.
    """
    empty = after.empty_cells
    which, rank = draw_spawn(word, len(empty), threshold)
    return after.place(empty[which], rank), empty[which], rank
