"""A board as a picture in SVG or as an HTML table, for notebooks and pages."""

from __future__ import annotations

from collections.abc import Sequence

from lab2048.game.colours import BACKGROUND, css, text_colour, tile_colour

TILE, GAP = 48, 6
"""The side of a tile and the gap between tiles, in pixels."""
SIZES = {1: 26, 2: 24, 3: 20, 4: 16, 5: 13, 6: 11}
"""The font size by the number of digits, on a tile of side TILE."""
RANKS = range(18)
"""The ranks of an empty cell and of all tiles, up to 131072."""


def svg(ranks: Sequence[int], cols: int, title: str) -> str:
    """Return a board as an SVG picture; screen readers read its title."""
    width, height = (n * (TILE + GAP) + GAP for n in (cols, len(ranks) // cols))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" font-family="sans-serif" font-weight="bold" '
        f'text-anchor="middle"><title>{title}</title>'
        f'<rect width="{width}" height="{height}" rx="{GAP}" fill="{css(BACKGROUND)}"/>'
        f"{svg_tiles(ranks, cols)}</svg>"
    )


def svg_tiles(ranks: Sequence[int], cols: int, tile: float = TILE, gap: float = GAP) -> str:
    """Return the cells of a board as SVG elements, the first at (`gap`, `gap`).

    The enclosing element must have `text-anchor="middle"`.
    """
    parts = []
    for cell, rank in enumerate(ranks):
        row, col = divmod(cell, cols)
        parts.append(_tile(gap + col * (tile + gap), gap + row * (tile + gap), tile, rank))
    return "".join(parts)


def _tile(left: float, top: float, side: float, rank: int) -> str:
    """A cell, with its number if there is one."""
    square = (
        f'<rect x="{left:g}" y="{top:g}" width="{side:g}" height="{side:g}" rx="{side / 12:.2g}" '
        f'fill="{css(tile_colour(rank))}"/>'
    )
    if not rank:
        return square
    text = str(1 << rank)
    size = SIZES[len(text)] * side / TILE
    middle, base = left + side / 2, top + side / 2 + 0.36 * size
    return (
        f'{square}<text x="{middle:g}" y="{base:.4g}" font-size="{size:.3g}" '
        f'fill="{css(text_colour(rank))}">{text}</text>'
    )


def html_table(ranks: Sequence[int], cols: int, attributes: str = "") -> str:
    """Return a board as an HTML table, for a page that includes `tile_styles`."""
    cells = [f'<td class="r{rank}">{1 << rank if rank else ""}</td>' for rank in ranks]
    rows = [cells[start : start + cols] for start in range(0, len(cells), cols)]
    body = "".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    return f'<table class="board" {attributes}>{body}</table>'


def tile_styles(ranks: Sequence[int] = RANKS) -> str:
    """Return a style sheet with the colours of tiles: a class `.r<rank>` for each rank."""
    return "".join(
        f".r{rank} {{ background: {css(tile_colour(rank))}; color: {css(text_colour(rank))}; }}\n"
        for rank in ranks
    )
