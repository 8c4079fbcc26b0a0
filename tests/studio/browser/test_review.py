"""The view Review in a browser, and the page of a review."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from lab2048.game import Game
from lab2048.game.record import Record
from lab2048.measure.review import review
from lab2048.report.review_page import write_review
from lab2048.solver.table import Table
from tests.studio.browser.views import KEYS, RULES, begin, first_moves, ranks

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
def bad_game(made, tmp_path):
    """A game in which perfect play makes one mistake, at its tenth move; its file."""
    game = Game(RULES, 3)
    with Table(made) as table:
        while not game.over:
            moves = table.moves(game.board)
            choose = max if len(game.moves) == 9 else min
            game.play(choose(moves, key=lambda d: moves[d].regret))
    path = tmp_path / "games.jsonl"
    path.write_text(Record.of(game, "me").to_json() + "\n")
    return path


def test_a_review_marks_the_mistake(page, bad_game, made):
    page.goto("/review")
    page.locator("input[type=file]").set_input_files(bad_game)
    record = Record.from_json(bad_game.read_text())
    turn = list(record.turns())[9]
    with Table(made) as table:
        regret = table.moves(turn.board)[turn.move].regret
        better = table.best(turn.board)[0]
    mistakes = page.locator("button.mistake-card")
    expect(mistakes).to_have_count(1)
    expect(mistakes).to_contain_text("Move 10 ")
    expect(mistakes).to_contain_text(f"{turn.move}, better {better}")
    expect(mistakes).to_contain_text(f"lost {regret:,.1f}")
    expect(page.locator(".review .scores output").nth(2)).to_have_text(f"{regret:,.1f}")
    expect(page.locator("circle.event")).to_have_count(2)  # one in each graph
    page.keyboard.press("m")
    assert ranks(page, ".board-side .board") == turn.board.ranks
    expect(page.locator(".mark")).to_contain_text(f"better {better}")
    expect(page).to_have_url(re.compile("at=9"))
    page.reload()
    expect(mistakes).to_have_count(1)
    assert ranks(page, ".board-side .board") == turn.board.ranks
    page.get_by_role("button", name="Practise this").click()
    expect(page.locator(".play")).to_be_visible()
    assert ranks(page) == turn.board.ranks
    page.keyboard.press(KEYS[turn.move])
    expect(page.locator(".scores output").nth(2)).to_have_text("1")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator(".scores output").nth(2)).to_have_text("0")
    assert ranks(page) == turn.board.ranks


def test_a_judge_that_may_be_wrong_counts_marks_and_no_points(page, bad_game):
    page.goto("/review")
    page.locator("input[type=file]").set_input_files(bad_game)
    expect(page.get_by_test_id("counts")).to_contain_text("best")
    expect(page.locator(".review .scores")).to_contain_text("points lost")
    expect(page.locator(".graphs svg")).to_have_count(2)
    page.get_by_label("Judge", exact=True).select_option("greedy")
    expect(page.locator(".review .verdict")).to_contain_text("judged by greedy")
    expect(page.get_by_test_id("counts")).to_contain_text("not the judge's move")
    expect(page.locator(".review .scores")).not_to_contain_text("points lost")
    expect(page.locator(".review")).to_contain_text("only tells which moves are its own")
    expect(page.locator(".graphs svg")).to_have_count(1)


def test_the_page_of_a_review_steps_through_the_game(browser, bad_game, made, tmp_path):
    record = Record.from_json(bad_game.read_text())
    turns = list(record.turns())
    with Table(made) as table:
        found = review(record, table)
    write_review(record, found, tmp_path / "review.html", [])
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto((tmp_path / "review.html").as_uri())
    said, cells = page.locator("#said"), page.locator("#board td")
    shown = lambda: [int(text or 0) for text in cells.all_inner_texts()]  # noqa: E731
    expect(said).to_contain_text(f"Move 1 of {len(turns)}: {turns[0].move}, best")
    page.keyboard.press("m")
    expect(said).to_contain_text(f"Move 10 of {len(turns)}: {turns[9].move}, slip")
    assert shown() == [tile for row in turns[9].board.tiles for tile in row]
    page.keyboard.press("ArrowRight")
    expect(said).to_contain_text("Move 11 ")
    page.keyboard.press("End")
    expect(said).to_contain_text(f"Move {len(turns)} ")
    page.locator("[data-move='10']").click()
    expect(said).to_contain_text("Move 10 ")
    assert page.evaluate("document.documentElement.scrollHeight") < 2500
    page.close()


def test_the_game_just_played_is_reviewed(page):
    begin(page)
    game = Game(RULES, 7)
    for key in first_moves(game):
        page.keyboard.press(key)
    page.keyboard.press("r")
    expect(page.locator(".review .verdict")).to_contain_text(f"you: {game.score:,} points")
    expect(page.locator(".chip")).to_have_count(len(game.moves))
    page.goto("/review")
    page.locator(".game").click()
    expect(page.locator(".chip")).to_have_count(len(game.moves))


def test_a_file_that_holds_no_game_is_refused(page, tmp_path):
    page.goto("/review")
    expect(page.locator(".empty")).to_contain_text("None yet")
    (tmp_path / "x.jsonl").write_text("no\n")
    page.locator("input[type=file]").set_input_files(tmp_path / "x.jsonl")
    expect(page.locator("#toast")).to_contain_text("no file of games")
