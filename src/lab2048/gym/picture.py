"""A board as an array of pixels, drawn with NumPy alone.

So the extra `gym` needs no graphics library such as pygame.
"""

from __future__ import annotations

import numpy as np

from lab2048.engine.arrays import Bytes
from lab2048.game import Board
from lab2048.game.colours import BACKGROUND, Colour, text_colour, tile_colour

TILE = 64
GAP = 8
_FONT = {
    "0": "###/#.#/#.#/#.#/###",
    "1": ".#./##./.#./.#./###",
    "2": "###/..#/###/#../###",
    "3": "###/..#/###/..#/###",
    "4": "#.#/#.#/###/..#/..#",
    "5": "###/#../###/..#/###",
    "6": "###/#../###/#.#/###",
    "7": "###/..#/..#/.#./.#.",
    "8": "###/#.#/###/#.#/###",
    "9": "###/#.#/###/..#/###",
}


def picture(board: Board) -> Bytes:
    """The board as an RGB image, with tiles of 64 x 64 pixels."""
    height, width = (n * (TILE + GAP) + GAP for n in (board.rows, board.cols))
    image = np.full((height, width, 3), BACKGROUND, np.uint8)
    for cell, rank in enumerate(board.ranks):
        top, left = (GAP + n * (TILE + GAP) for n in divmod(cell, board.cols))
        square = image[top : top + TILE, left : left + TILE]
        square[:] = tile_colour(rank)
        if rank:
            _write(square, str(1 << rank), text_colour(rank))
    return image


def _write(square: Bytes, digits: str, colour: Colour) -> None:
    """Write digits in the middle of a square, as large as they fit."""
    rows = [".".join(_FONT[digit].split("/")[line] for digit in digits) for line in range(5)]
    bits = np.array([[mark == "#" for mark in row] for row in rows])
    scale = max(1, min(6, (TILE - 8) // bits.shape[1]))
    bits = bits.repeat(scale, axis=0).repeat(scale, axis=1)
    top, left = (TILE - bits.shape[0]) // 2, (TILE - bits.shape[1]) // 2
    square[top : top + bits.shape[0], left : left + bits.shape[1]][bits] = colour
