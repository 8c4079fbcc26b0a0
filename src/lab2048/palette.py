"""The colours of the tiles, in the terminal and in pictures."""

from __future__ import annotations

Colour = tuple[int, int, int]

BACKGROUND: Colour = (187, 173, 160)
DARK_TEXT: Colour = (110, 100, 90)
LIGHT_TEXT: Colour = (255, 255, 255)

# From pale to strong and from yellow to violet: lightness falls all the way, so that the order
# can be told without seeing hues.
_TILES: list[Colour] = [
    (205, 193, 180),  # empty
    (240, 231, 219),  # 2
    (237, 220, 190),  # 4
    (229, 160, 95),
    (222, 132, 70),
    (211, 104, 62),
    (198, 78, 54),
    (190, 140, 40),
    (172, 124, 28),
    (152, 108, 20),
    (132, 94, 14),
    (112, 80, 10),  # 2048
    (20, 120, 120),
    (16, 98, 116),
    (18, 76, 110),
    (60, 58, 120),
    (86, 44, 112),
    (52, 20, 72),  # 131072
]


def tile_colour(rank: int) -> Colour:
    """The colour of the tile of a rank, 0 for an empty cell."""
    return _TILES[rank]
