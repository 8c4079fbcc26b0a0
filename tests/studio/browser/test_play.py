"""The view Play in a browser."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from lab2048.game import Direction, Game, Rules
from lab2048.solver.table import Table
from tests.studio.browser.views import KEYS, RULES, begin, first_moves, ranks

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


PACKED = 'async (moves) => (await import("/static/game.js")).packMoves(moves)'
"""The moves of a game as an address has them."""


@pytest.mark.parametrize(("size", "p4", "seed"), [("3x2", 0.1, 7), ("4x4", 0.37, 2**64 - 1)])
def test_a_game_by_keyboard_is_the_engine_s(page, size, p4, seed):
    page.goto(f"/play?rules={size}&p4={p4}&seed={seed}")
    game = Game(Rules.parse(size, p4), seed)
    expect(page.locator(".board")).to_have_attribute(
        "data-ranks", " ".join(map(str, game.board.ranks))
    )
    for number, key in enumerate(first_moves(game, 150)):
        page.keyboard.press(key)
        if number % 25 == 0:
            ranks(page)
    assert ranks(page) == game.board.ranks
    expect(page.locator(".scores output").first).to_have_text(f"{game.score:,}")
    expect(page.locator(".ending")).to_be_visible(visible=game.over)
    packed = page.evaluate(PACKED, list(map(int, game.moves)))
    expect(page).to_have_url(re.compile(f"#{packed}$"))  # written three times a second, at most
    page.reload()  # it has the whole game
    expect(page.locator(".scores output").nth(2)).to_have_text(str(len(game.moves)))
    assert ranks(page) == game.board.ranks


def test_undo_and_a_move_that_moves_nothing(page):
    begin(page)
    game = Game(RULES, 7)
    start = game.board
    (key,) = first_moves(game, 1)
    page.keyboard.press(key)
    assert ranks(page) == game.board.ranks
    page.keyboard.press("u")
    assert ranks(page) == start.ranks
    expect(page.get_by_test_id("mark")).to_contain_text("taken back")
    illegal = next(d for d in Direction if not start.move(d).legal)
    page.keyboard.press(KEYS[illegal])
    expect(page.get_by_test_id("mark")).to_contain_text("moves nothing")
    page.keyboard.press(key)  # the same move brings the same tile
    assert ranks(page) == game.board.ranks


def test_swipes_and_letters_move_too(page):
    begin(page)
    game = Game(RULES, 7)
    box = page.locator(".board").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    for key in first_moves(game, 6):
        dx, dy = {"ArrowUp": (0, -90), "ArrowRight": (90, 0), "ArrowDown": (0, 90)}.get(
            key, (-90, 0)
        )
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x + dx, y + dy, steps=4)
        page.mouse.up()
    assert ranks(page) == game.board.ranks
    letters = dict(zip(KEYS, "wdsa", strict=True))
    for key in first_moves(game, 4):
        page.keyboard.press(letters[key])
    assert ranks(page) == game.board.ranks


def test_hints_and_marks_are_the_table_s(page, made):
    begin(page)
    game = Game(RULES, 7)
    page.keyboard.press("i")
    with Table(made) as table:
        for _ in range(8):
            moves = table.moves(game.board)
            worst = max(moves, key=lambda d: moves[d].regret)
            rows = page.locator(".bars .bar-row")
            for direction, move in moves.items():
                shown = rows.nth(int(direction)).locator(".value")
                expect(shown).to_have_text(f"{move.q:,.1f}")
                best = rows.nth(int(direction)).locator(".lost")
                small = "≈ 0" if move.regret < 0.05 else "−"
                expect(best).to_contain_text("best" if move.optimal else small)
            page.keyboard.press(KEYS[worst])
            if moves[worst].optimal:
                expect(page.get_by_test_id("mark")).to_contain_text(f"{worst}: best")
            else:
                better = table.best(game.board)[0]
                expect(page.get_by_test_id("mark")).to_contain_text(f"better {better}")
            game.play(worst)
            assert ranks(page) == game.board.ranks
    marks = page.locator(".marks .grade")
    assert marks.count() == 8


def test_the_live_region_tells_the_moves(page):
    begin(page)
    game = Game(RULES, 7)
    (key,) = first_moves(game, 1)
    page.keyboard.press(key)
    expect(page.locator("#live")).to_contain_text(f"score {game.score}")
    tiles = str(game.board).replace(".", "empty").replace(" / ", "; ")
    expect(page.locator(".board")).to_have_attribute("aria-label", f"Board: {tiles}")


def test_arrows_on_a_list_or_a_number_move_tiles(page):
    """They neither choose another board nor another p4; a number that is edited keeps its keys."""
    begin(page)
    game = Game(RULES, 7)
    size = page.get_by_label("Board size")
    p4 = page.get_by_label("p4, the chance that a new tile is a 4")
    for field, value in (
        (size, "3x2"),
        (page.get_by_label("Judge", exact=True), "auto"),
        (p4, "0.1"),
    ):
        field.focus()
        for key in first_moves(game, 3):
            page.keyboard.press(key)
        assert ranks(page) == game.board.ranks
        expect(field).to_have_value(value)
        expect(field).to_be_focused()
    p4.fill("0.25")
    page.keyboard.press("ArrowLeft")
    page.keyboard.type("1")  # before the 5
    expect(p4).to_have_value("0.215")
    assert ranks(page) == game.board.ranks


def test_a_running_game_is_left_only_when_that_is_said(page):
    begin(page)
    game = Game(RULES, 7)
    size = page.get_by_label("Board size")
    p4 = page.get_by_label("p4, the chance that a new tile is a 4")
    question = page.get_by_role("alertdialog")
    ways = {
        "key": lambda: page.keyboard.press("n"),
        "button": lambda: page.get_by_role("button", name="New game").click(),
        "size": lambda: size.select_option("2x2"),
        "p4": lambda: (p4.fill("0.5"), p4.press("Enter")),
        "menu": lambda: page.locator("nav a[data-view=play]").click(),
    }
    for way, leave in ways.items():
        for key in first_moves(game, 2):
            page.keyboard.press(key)
        leave()
        expect(question, way).to_be_visible()
        expect(question).to_contain_text(f"{len(game.moves)} moves")
        page.keyboard.press("ArrowUp")  # moves nothing while one is asked
        page.keyboard.press("Escape" if way == "key" else "Enter")  # the button that keeps it
        expect(question).not_to_be_visible()
        assert ranks(page) == game.board.ranks
        expect(size).to_have_value("3x2")
        expect(p4).to_have_value("0.1")
    page.keyboard.press("x")
    page.get_by_role("button", name="Play from here").click()
    page.get_by_role("button", name="Keep this one").click()
    expect(page.locator(".view.analyse")).to_be_visible()
    page.keyboard.press("1")
    assert ranks(page) == game.board.ranks
    page.keyboard.press("n")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator(".scores output").nth(2)).to_have_text("0")
    page.keyboard.press("n")  # there is nothing to lose
    expect(question).not_to_be_visible()
    page.go_back()
    page.go_back()  # what was left can still be found
    expect(page.locator(".scores output").nth(2)).to_have_text(str(len(game.moves)))
    assert ranks(page) == game.board.ranks
