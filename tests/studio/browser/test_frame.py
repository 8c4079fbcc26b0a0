"""What all views share: keys, addresses, phones, speed."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from lab2048.game import Game
from lab2048.studio import app, pages
from tests.serving import serving
from tests.studio.browser.views import RULES, VIEWS, arrived, begin, first_moves, ranks

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


# -- tables --------------------------------------------------------------------------------------


# -- everywhere ----------------------------------------------------------------------------------


OVER = '.side .note:has-text("Game over")'


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_everything_without_overflow(browser, address, scheme):
    context = browser.new_context(
        base_url=address,
        viewport={"width": 375, "height": 720},
        color_scheme=scheme,
        has_touch=True,
    )
    context.set_default_timeout(60_000)
    page = context.new_page()
    for path, last, count in (
        ("/play?rules=4x4&seed=1", "option[title]", None),
        ("/watch?rules=3x2&player=greedy&player=random&seed=1&speed=0", OVER, 2),
        ("/analyse?board=643110&rules=3x2&player=greedy&after=right", ".reach-list", 1),
        ("/review?rules=3x2&seed=7#1Q", ".chip", None),
        ("/results", ".boards", 1),
        ("/api/docs", "table", None),
    ):
        page.goto(path)
        arrived(page, last, count)
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= 375, path
        back = page.evaluate("getComputedStyle(document.body).backgroundColor")
        light = sum(map(int, re.findall(r"\d+", back)[:3])) > 3 * 128
        assert light == (scheme == "light"), path
    context.close()


def test_keys_help_and_theme(page):
    page.goto("/play")
    for number, view in enumerate(VIEWS, 1):
        page.keyboard.press(str(number))
        expect(page.locator(f".view.{view}")).to_be_visible()
        expect(page.locator("nav a[aria-current]")).to_have_text(view.title())
        page.keyboard.press("?")
        expect(page.locator("dialog")).to_contain_text(view)
        page.keyboard.press("Escape")
        expect(page.locator("dialog")).not_to_be_visible()
    before = page.locator("html").get_attribute("data-theme")
    page.keyboard.press("t")
    expect(page.locator("html")).not_to_have_attribute("data-theme", before)
    page.reload()
    expect(page.locator("html")).not_to_have_attribute("data-theme", before)


EXTRA = """
export const TITLE = "Extra";
export const KEYS = [["z", "nothing yet"]];
export function open(root) {
  root.textContent = "something new";
  return {};
}
"""


def test_a_new_view_is_a_module_and_a_name(browser, solved_home, monkeypatch):
    files = pages.page_files
    monkeypatch.setattr(pages, "VIEWS", (*VIEWS, "extra"))
    monkeypatch.setattr(app, "page_files", lambda: {**files(), "views/extra.js": EXTRA.encode()})
    page = browser.new_page()
    with serving() as address:
        page.goto(f"{address}/play?rules=3x2&seed=7")
        expect(page.locator(".board .tile")).to_have_count(2)
        page.keyboard.press("6")
        expect(page.locator(".view.extra")).to_have_text("something new")
        expect(page.locator("nav a[aria-current]")).to_have_text("Extra")
        page.keyboard.press("?")
        expect(page.locator("dialog")).to_contain_text("Results, Extra")
        page.goto(f"{address}/extra")
        expect(page.locator(".view.extra")).to_be_visible()
        page.close()


def test_what_comes_late_changes_nothing(page):
    """A view that was left does not write its address; the link past the menu keeps the game."""
    page.clock.install()
    held = []
    facts = re.compile(r"/api\?$")
    page.route(facts, lambda route: held.append(route))  # noqa: PLW0108
    begin(page)
    page.keyboard.press("2")
    expect(page.locator(".view.watch")).to_be_visible()
    page.keyboard.press("5")
    expect(page.locator(".view.results")).to_be_visible()
    with page.expect_response(facts):
        held[0].continue_()
    page.clock.run_for(1000)  # the address is written a while after it has changed
    assert page.url.endswith("/results")
    page.keyboard.press("1")  # a view that was there before takes keys at once
    game = Game(RULES, 7)
    for key in first_moves(game, 6):
        page.keyboard.press(key)
    page.locator(".skip").focus()
    page.keyboard.press("Enter")
    assert ranks(page) == game.board.ranks


def test_keys_never_reach_a_view_that_was_left(page):
    """While another one is on its way; where it does not come, the old one goes on."""
    begin(page)
    held = []
    page.route("**/watch.js", lambda route: held.append(route))  # noqa: PLW0108
    page.keyboard.press("2")
    expect(page).to_have_url(re.compile("/watch"))
    game = Game(RULES, 7)
    (key,) = first_moves(game, 1)
    page.keyboard.press(key)
    assert ranks(page) == Game(RULES, 7).board.ranks
    held[0].fulfill(content_type="text/javascript", body="throw 1")
    expect(page.locator("#toast")).to_contain_text("does not answer")
    assert "/play?rules=3x2&seed=7" in page.url
    page.keyboard.press(key)
    assert ranks(page) == game.board.ranks


def test_p4_of_any_size(page):
    page.clock.install()
    begin(page)
    field = page.get_by_label("p4, the chance that a new tile is a 4")
    field.fill("0.13")
    field.press("Enter")
    expect(page).to_have_url(re.compile("p4=0.13"))
    field.fill("7")
    field.press("Enter")
    page.clock.run_for(1000)
    assert "p4=0.13" in page.url


def test_a_wrong_address_says_what_is_wrong(page):
    page.goto("/play?rules=9x9")
    expect(page.locator("#toast")).to_contain_text("9x9")
    page.goto("/analyse?board=zz")
    expect(page.locator("#toast")).to_contain_text("no rank")
    page.goto("/review?rules=3x2&seed=7#9!!")
    expect(page.locator("#toast")).to_contain_text("damaged")


def test_a_page_that_is_not_there(context):
    page = context.new_page()  # its status is an error in the console
    page.goto("/nowhere")
    expect(page.locator("#toast")).to_contain_text("there is no page /nowhere")
    expect(page.locator(".view.play")).to_be_visible()


def test_every_element_that_acts_has_a_name(page):
    """What a screen reader meets: buttons, links, fields."""
    for path, last in (
        ("/play?seed=1", "option[title]"),
        ("/analyse?board=643110&rules=3x2&player=greedy", ".reach-list"),
        ("/results", ".boards"),
    ):
        page.goto(path)
        arrived(page, last)
        nameless = page.evaluate(
            """() => [...document.querySelectorAll("button, a, input, select")].filter((each) =>
                 !(each.textContent.trim() || each.ariaLabel || each.title || each.labels?.length))
               .map((each) => each.outerHTML)"""
        )
        assert nameless == [], path


def test_the_page_is_small_and_quick(page):
    sizes = []
    page.on("response", lambda response: sizes.append(len(response.body())))
    begin(page)
    expect(page.locator(".board .tile")).to_have_count(2)
    page.wait_for_load_state("networkidle")
    assert sum(sizes) < 300_000
    for view in VIEWS:
        page.goto(f"/{view}")
    assert sum(sizes) < 600_000
