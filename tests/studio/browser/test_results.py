"""The view Results in a browser, and tables everywhere."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import expect

from lab2048.report.evaluation_page import write_report
from tests.studio.browser.conftest import LONG
from tests.studio.browser.views import arrived

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


# -- results -------------------------------------------------------------------------------------


def test_results_are_listed_sorted_and_drawn(page, solved_home, command):
    page.goto("/results")
    expect(page.locator(".empty")).to_contain_text("No player has been evaluated yet")
    expect(page.locator("text=21,752").first).to_be_visible()
    assert command("evaluate", "random", "greedy", "--board", "3x2", "--games", "40")[0] == 0
    page.reload()
    names = page.locator(".evals td.name")
    expect(names).to_have_count(2)
    page.get_by_role("button", name="mean score").click()
    kept = json.loads(next((solved_home / "results").glob("*.json")).read_text())["results"]
    order = sorted(kept, key=lambda each: -each["score"]["mean"])
    expect(names.first).to_have_text(order[0]["player"])
    page.get_by_role("button", name="mean score").click()
    expect(names.first).to_have_text(order[1]["player"])
    expect(page).to_have_url(re.compile("sort=mean&order=up"))
    expect(page.locator(".charts svg.chart")).to_have_count(3)


# -- tables --------------------------------------------------------------------------------------


WIDE = """
() => [...document.querySelectorAll("table")].filter((each) =>
  Math.max(each.scrollWidth, each.getBoundingClientRect().width) > each.parentElement.clientWidth
).map((each) => each.outerHTML.slice(0, 80))
"""


@pytest.mark.parametrize("width", [375, 768, 1280])
def test_no_table_is_wider_than_its_column(page, results, tmp_path, width):
    page.set_viewport_size({"width": width, "height": 900})
    report = tmp_path / "page.html"
    large = [{**each, "board": "4x4", "exact": None, "optimal": None} for each in results]
    write_report([*results, *large], report, ["evaluate"])
    players = "&player=".join(["", "greedy", "random", "corner", "sparse"])
    for place, last, count in (
        (report.as_uri(), "table", None),
        ("/results", ".charts svg.chart", 3),
        (f"/analyse?board=643110&rules=3x2{players}", "td.player .choice", 4),
        (f"/analyse?board=643512114&rules=3x3{players}", "td.player .choice", 4),
        ("/api/docs", "table", None),
    ):
        page.goto(place)
        arrived(page, last, count)
        assert page.locator("table").count() > 0, place
        assert page.evaluate(WIDE) == [], place
        assert page.evaluate("document.documentElement.scrollWidth") <= width, place


@pytest.mark.parametrize("width", [375, 1280])
def test_what_matters_most_comes_first(page, results, tmp_path, width):
    """The player, its mean score, what it loses, how often it agrees: exact where that is known."""
    page.set_viewport_size({"width": width, "height": 900})
    report = tmp_path / "page.html"
    write_report(results, report, ["evaluate"])
    exact, played = results[0]["exact"], results[1]["score"]["mean"]
    for place, row in ((report.as_uri(), "table.players tr"), ("/results", ".evals tr")):
        page.goto(place)
        for name, mean in (
            (LONG, f"{exact['value']:,.2f}"),
            (f"{LONG},time=0.25", f"{played:.1f}"),
        ):
            cells = page.locator(row).filter(has=page.get_by_text(name, exact=True)).locator("td")
            expect(cells.last).to_be_visible()
            texts = [text for text in cells.all_inner_texts() if text.strip()]
            assert texts[0] == name and texts[1].startswith(mean), place
            assert texts[3].endswith("%"), place
        first = page.locator(row).filter(has=page.get_by_text(LONG, exact=True)).locator("td")
        expect(first.filter(has_text=f"{exact['regret']:,.2f}")).to_be_in_viewport(ratio=1)
