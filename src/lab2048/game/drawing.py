"""A board as a picture in SVG, for notebooks and pages."""

from __future__ import annotations

from collections.abc import Sequence

from lab2048.game.colours import BACKGROUND, css, text_colour, tile_colour

TILE, GAP = 48, 6
"""Pixels: the side of a tile, and the room between two."""
SIZES = {1: 26, 2: 24, 3: 20, 4: 16, 5: 13, 6: 11}
"""The height of a number by its digits."""


def svg(ranks: Sequence[int], cols: int, title: str) -> str:
    """Return a board as an SVG picture; its title is what a screen reader reads."""
    width, height = (n * (TILE + GAP) + GAP for n in (cols, len(ranks) // cols))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" font-family="sans-serif" font-weight="bold" '
        f'text-anchor="middle"><title>{title}</title>',
        f'<rect width="{width}" height="{height}" rx="{GAP}" fill="{css(BACKGROUND)}"/>',
    ]
    for cell, rank in enumerate(ranks):
        row, col = divmod(cell, cols)
        parts.append(_tile(GAP + col * (TILE + GAP), GAP + row * (TILE + GAP), rank))
    return "".join([*parts, "</svg>"])


def _tile(left: int, top: int, rank: int) -> str:
    """A cell, with its number if there is one."""
    square = (
        f'<rect x="{left}" y="{top}" width="{TILE}" height="{TILE}" rx="4" '
        f'fill="{css(tile_colour(rank))}"/>'
    )
    if not rank:
        return square
    text = str(1 << rank)
    size = SIZES[len(text)]
    middle, base = left + TILE // 2, top + TILE // 2 + round(0.36 * size)
    return (
        f'{square}<text x="{middle}" y="{base}" font-size="{size}" '
        f'fill="{css(text_colour(rank))}">{text}</text>'
    )
