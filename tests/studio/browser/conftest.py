"""A browser, a page of the studio, and results to look at."""

from __future__ import annotations

import json
import os
import shutil

import pytest
from playwright.sync_api import expect, sync_playwright

expect.set_options(timeout=60_000)  # a player may have to be compiled


@pytest.fixture(scope="module")
def browser():
    """Debian's chromium; where there is none, only CI insists on it."""
    path = shutil.which("chromium")
    if path is None:
        missing = "there is no chromium; `make browser` installs it"
        pytest.fail(missing) if os.environ.get("CI") else pytest.skip(missing)
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def context(browser, address):
    found = browser.new_context(
        base_url=address, viewport={"width": 1280, "height": 900}, reduced_motion="reduce"
    )
    found.set_default_timeout(60_000)
    yield found
    found.close()


@pytest.fixture
def page(context):
    """A page; whatever goes wrong in it fails the test."""
    found = context.new_page()
    troubles = []
    found.on("pageerror", lambda error: troubles.append(str(error)))
    found.on("console", lambda line: troubles.append(line.text) if line.type == "error" else None)
    yield found
    assert troubles == []


LONG = "expectimax:depth=2,cutoff=0.001,heuristic=snake,cells=4,ties=split"


@pytest.fixture
def results(solved_home, command):
    """Kept results on 3x2 of players with long names; the first is made to look exact."""
    kept = solved_home / "results"
    before = {*kept.glob("*.json")}
    assert command("evaluate", "random", "greedy", "--board", "3x2", "--games", "40")[0] == 0
    (path,) = {*kept.glob("*.json")} - before
    content = json.loads(path.read_text())
    for each, name in zip(content["results"], (LONG, f"{LONG},time=0.25"), strict=True):
        each |= {"player": name, "scores": each["quantiles"]}
    exact = {"value": 61.168, "optimal_value": 480.258, "regret": 419.09}
    content["results"][0]["exact"] = exact
    path.write_text(json.dumps(content))
    yield content["results"]
    path.unlink()
