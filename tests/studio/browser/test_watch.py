"""The view Watch in a browser."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from lab2048.game import Game, Rules
from tests.studio.browser.views import RULES

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


# -- watch ---------------------------------------------------------------------------------------


def test_another_board_is_watched_with_its_own_usual_player(page):
    """There is no network for 5x2: the usual player of 4x4 could not play there."""
    page.goto("/watch?rules=4x4&seed=5&at=1")
    expect(page.locator(".player-name")).to_have_text("ntuple:depth=3")
    page.get_by_label("Board size").select_option("5x2")
    expect(page.locator(".player-name")).to_have_text(re.compile("^expectimax"))
    expect(page.locator(".side .note")).to_have_text("")
    page.get_by_label("Board size").select_option("4x4")
    expect(page.locator(".player-name")).to_have_text("ntuple:depth=3")


@pytest.mark.parametrize("width", [375, 414])
def test_a_player_who_is_watched_on_a_phone(browser, address, width):
    context = browser.new_context(base_url=address, viewport={"width": width, "height": 720})
    page = context.new_page()
    page.goto("/watch?rules=3x2&player=greedy&seed=5&at=3")
    expect(page.locator(".bars .best")).to_contain_text("its move")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    beyond = "each => each.scrollWidth - each.clientWidth"
    assert {row.evaluate(beyond) for row in page.locator(".bars .bar-row").all()} == {0}
    context.close()


FRAMES = """
async () => {
  const found = [];
  const bars = [...document.querySelectorAll(".bars .bar")];
  for (const begin = performance.now(); performance.now() < begin + 600;) {
    await new Promise(requestAnimationFrame);
    const share = (bar) => 100 * bar.offsetWidth / bar.parentElement.clientWidth;
    found.push(Math.max(...bars.map((bar) => Math.abs(share(bar) - parseFloat(bar.style.width)))));
  }
  return found;
}
"""


def test_bars_change_together_with_their_numbers(browser, address):
    """In every frame of a game a bar is as long as it was made when its number was written."""
    context = browser.new_context(base_url=address, reduced_motion="no-preference")
    page = context.new_page()
    page.goto("/watch?rules=4x4&player=greedy&seed=5&speed=30")
    expect(page.locator(".bars .best")).to_have_count(1)
    assert max(page.evaluate(FRAMES)) <= 1
    assert int(page.locator(".scores output").nth(1).inner_text()) > 3
    context.close()


def test_a_game_at_full_speed_ends_as_it_should(page):
    page.goto("/watch?rules=3x2&player=greedy&player=random&seed=5&speed=0")
    for place, spec in enumerate(("greedy", "random")):
        from lab2048.players.registry import make_player

        game = Game(RULES, 5)
        player = make_player(spec, RULES)
        while not game.over:
            game.play(player.choose(game.board, game.own_word))
        side = page.locator(".side").nth(place)
        expect(side.locator(".note")).to_contain_text(f"Game over: {game.score:,} points")
        expect(side.locator(".scores output").nth(1)).to_have_text(str(len(game.moves)))


def test_watching_step_by_step(page):
    page.goto("/watch?rules=3x2&player=greedy&seed=5&at=3")
    moves = page.locator(".scores output").nth(1)
    expect(moves).to_have_text("3")
    expect(page.get_by_role("button", name="Play", exact=True)).to_be_visible()
    page.keyboard.press(".")
    expect(moves).to_have_text("4")
    expect(page.locator(".bars .best")).to_have_count(1)
    expect(page).to_have_url(re.compile("at=4"))
    page.keyboard.press("f")
    page.keyboard.press(" ")
    expect(page.locator(".side .note")).to_contain_text("Game over")
    page.keyboard.press("r")
    expect(page.locator(".review .verdict")).to_contain_text("greedy")


def test_a_watched_game_waits_for_who_comes_back(page):
    page.goto("/watch?rules=4x4&player=random&seed=5")
    expect(page.locator(".scores output").nth(1)).not_to_have_text(re.compile("^[012]?$"))
    page.keyboard.press("5")
    expect(page.locator(".view.results")).to_be_visible()
    page.keyboard.press("2")
    expect(page.get_by_role("button", name="Play", exact=True)).to_be_visible()
    expect(page).to_have_url(re.compile("at="))
    at = re.search(r"at=(\d+)", page.url)[1]
    assert int(at) >= 3
    expect(page.locator(".scores output").nth(1)).to_have_text(at)


def test_two_clients_never_see_each_other_s_games(browser, address):
    pages = []
    for seed in (5, 6):
        context = browser.new_context(base_url=address)
        pages.append(context.new_page())
        pages[-1].goto(f"/watch?rules=4x4&player=random&seed={seed}&speed=0")
    for seed, page in zip((5, 6), pages, strict=True):
        game = Game(Rules(4, 4), seed)
        from lab2048.players.registry import make_player

        player = make_player("random", game.rules)
        while not game.over:
            game.play(player.choose(game.board, game.own_word))
        expect(page.locator(".side .note")).to_contain_text(f"{game.score:,} points", timeout=60000)
        page.goto("/review")
        expect(page.locator(".game")).to_have_count(1)
        expect(page.locator(".game")).to_contain_text(f"{game.score:,}")
        page.context.close()


# -- tables --------------------------------------------------------------------------------------
