"""Boards as pictures and tables."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from lab2048.game import Board
from lab2048.game.drawing import html_table, svg, svg_tiles, tile_styles

BOARD = Board.parse("2 131072 . / 64 . 2048")
TEXTS = ["2", "131072", "64", "2048"]


def test_a_picture_has_a_cell_for_each_and_a_number_for_each_tile():
    picture = ElementTree.fromstring(svg(BOARD.ranks, BOARD.cols, str(BOARD)))
    kinds = [each.tag.rpartition("}")[2] for each in picture]
    assert kinds.count("rect") == 1 + 6 and kinds.count("text") == 4
    assert [each.text for each in picture if each.tag.endswith("text")] == TEXTS


@pytest.mark.parametrize("tile", [11, 19, 48])
def test_tiles_of_any_size_stay_inside_and_apart(tile):
    parts = ElementTree.fromstring(f"<g>{svg_tiles(BOARD.ranks, BOARD.cols, tile, 1)}</g>")
    corners = [(float(each.get("x")), float(each.get("y"))) for each in parts.iter("rect")]
    assert corners == [(1 + c * (tile + 1), 1 + r * (tile + 1)) for r in range(2) for c in range(3)]
    for each in parts.iter("text"):  # a digit is about 0.6 times as wide as it is high
        assert 0.6 * float(each.get("font-size")) * len(each.text) < tile


def test_a_table_has_a_class_for_each_rank_that_the_styles_have():
    table = ElementTree.fromstring(html_table(BOARD.ranks, BOARD.cols, 'id="board"'))
    assert table.get("id") == "board" and [len(row) for row in table] == [3, 3]
    assert [cell.text for cell in table.iter("td") if cell.text] == TEXTS
    classes = [cell.get("class") for cell in table.iter("td")]
    assert classes == ["r1", "r17", "r0", "r6", "r0", "r11"]
    assert all(f".{name} {{ background: rgb(" in tile_styles() for name in classes)
