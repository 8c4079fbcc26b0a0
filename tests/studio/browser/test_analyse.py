"""The view Analyse in a browser."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from lab2048.game import Board
from lab2048.solver.table import Table

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def hexadecimal(board):
    return Board.parse(board).hex


# -- analyse -------------------------------------------------------------------------------------


def test_an_analysis_shows_the_table_s_figures(page, made):
    board = Board.parse("16 4 / 2 8 / . 2")
    page.goto(f"/analyse?board={board.hex}&rules=3x2&player=greedy")
    with Table(made) as table:
        for direction, move in table.moves(board).items():
            row = page.locator(f"tr[data-move={direction}]")
            regret = "best" if move.optimal else f"−{move.regret:,.2f}"
            expect(row).to_contain_text(regret)
            cells = row.locator("td").all_inner_texts()
            assert cells[:3] == [str(move.reward), f"{move.after_value:,.2f}", f"{move.q:,.2f}"]
        best = table.best(board)[0]
    expect(page.locator(".verdict")).to_contain_text(f"{str(best).title()} is best")
    expect(page.locator("th.player")).to_have_text("greedy")
    expect(page.locator("td.player .choice")).to_have_count(1)


def test_a_walk_through_a_spawn_and_back(page, made):
    board = Board.parse("16 4 / 2 8 / . 2")
    page.goto(f"/analyse?board={board.hex}&rules=3x2&player=none")
    page.locator("tr[data-move=down] button").click()
    after = board.move("down").after
    with Table(made) as table:
        spawns = table.spawns(after)
        expect(page.locator(".spawn")).to_have_count(len(spawns))
        spawn, value = spawns[-1]
        there = page.locator(f'.spawn[data-board="{spawn.board}"]')
        expect(there).to_contain_text(f"{100 * spawn.probability:.1f}%")
        expect(there).to_contain_text(f"{value:,.1f}")
        there.click()
        expect(page.locator("input.text")).to_have_value(str(spawn.board))
        expect(page.locator(".verdict")).to_contain_text(f"{table.value(spawn.board):,.2f}")
    page.go_back()
    expect(page.locator("input.text")).to_have_value(str(board))
    expect(page.locator(".spawn")).to_have_count(len(spawns))
    page.keyboard.press("Backspace")
    expect(page.locator(".spawn")).to_have_count(0)
    assert page.url.endswith(f"board={board.hex}&rules=3x2&player=none")


def test_the_editor_and_pasted_text_set_up_a_position(page):
    page.goto("/analyse?board=000000&rules=3x2&player=none")
    expect(page.locator(".verdict")).to_contain_text("Set up a position")
    page.get_by_role("radio", name="16", exact=True).click()
    page.locator("[data-cell='0']").click()
    page.locator("[data-cell='3']").click()
    page.locator("[data-cell='3']").click(button="right")
    page.locator("[data-cell='1']").focus()
    page.keyboard.press("+")
    page.keyboard.press("+")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("+")
    expect(page.locator("input.text")).to_have_value("16 4 / . 2 / . .")
    page.keyboard.press("Delete")
    expect(page.locator("input.text")).to_have_value("16 4 / . . / . .")
    text = page.locator("input.text")
    text.fill("[[2, 4], [8, 16], [0, 2]]")
    text.press("Enter")
    assert f"board={hexadecimal('2 4 / 8 16 / . 2')}" in page.url
    text.fill("2 3 / 4 5")
    text.press("Enter")
    expect(page.locator("#toast")).to_contain_text("“3” is no tile")


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_board_of_several_lines_is_pasted(page, end):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto("/analyse?board=000000&rules=3x2&player=none")
    text = page.locator("input.text")
    for lines in (["2 4 .", ". 8 16"], ["[[2, 4, 0],", " [0, 8, 16]]", ""]):
        page.get_by_role("button", name="Clear").click()
        page.evaluate("text => navigator.clipboard.writeText(text)", end.join(lines))
        text.focus()
        page.keyboard.press("Control+A")
        page.keyboard.press("Control+V")
        expect(text).to_have_value("2 4 . / . 8 16")
        expect(page).to_have_url(re.compile(f"board={hexadecimal('2 4 . / . 8 16')}&rules=2x3"))


def test_another_player_is_one_that_was_not_asked_yet(page):
    """The usual player of 3x3 has an option: it is still the same player."""
    page.goto("/analyse?board=643512114&rules=3x3")
    expect(page.get_by_label("Player 1", exact=True)).to_have_value("ntuple")
    page.get_by_role("button", name="+ Player").click()
    expect(page.get_by_label("Player 2", exact=True)).to_have_value("expectimax")


# -- tables --------------------------------------------------------------------------------------


def test_a_phone_shows_what_players_think_of_a_board_that_is_not_solved(page):
    page.set_viewport_size({"width": 375, "height": 720})
    page.goto("/analyse?board=643512114&rules=3x3&player=greedy")
    board = Board.parse("643512114")
    for direction in board.legal_moves:
        value = page.locator(f"tr[data-move={direction}] td.player")
        expect(value).to_be_visible()
        expect(value).to_contain_text(f"{board.move(direction).reward:.1f}")
    expect(page.locator("th.player")).to_be_visible()
