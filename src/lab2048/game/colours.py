"""The colours of the tiles, in the terminal and in pictures, and of lines in plots."""

from __future__ import annotations

from typing import Any

Colour = tuple[int, int, int]

BACKGROUND: Colour = (187, 173, 160)

# From yellow through red to violet, each darker than the one before, so that the order of the tiles
# can be seen without telling hues apart.
_TILES: list[Colour] = [
    (205, 193, 180),  # empty
    (243, 235, 213),  # 2
    (238, 214, 173),
    (244, 191, 129),
    (248, 167, 96),
    (250, 141, 74),
    (246, 118, 70),  # 64
    (238, 95, 77),
    (226, 76, 88),
    (209, 61, 99),
    (189, 51, 108),
    (169, 43, 115),  # 2048
    (147, 37, 120),
    (126, 31, 122),
    (104, 29, 120),
    (82, 29, 113),
    (61, 29, 101),
    (42, 28, 86),  # 131072
]


def tile_colour(rank: int) -> Colour:
    """The colour of a tile by its rank, 0 for an empty cell."""
    return _TILES[rank]


def text_colour(rank: int) -> Colour:
    """The colour of the number on a tile, by its rank."""
    return (75, 65, 55) if rank <= 6 else (255, 255, 255)


def css(colour: Colour) -> str:
    """A colour in CSS notation."""
    return f"rgb({', '.join(map(str, colour))})"


COLOURS = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#e69f00",
    "#56b4e9",
    "#7f7f7f",
    "#000000",
    "#8c564b",
    "#9467bd",
    "#bcbd22",
    "#17becf",
)
MARKERS = "osD^vP*XhH<>"


def line_style(number: int) -> dict[str, Any]:
    """The style of line `number` in a plot: its colour and marker."""
    look = {"color": COLOURS[number % len(COLOURS)], "marker": MARKERS[number % len(MARKERS)]}
    return {**look, "ms": 4.5, "lw": 1.3}
