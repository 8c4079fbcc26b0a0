"""How long a browser takes to show the studio's page: from the request to a board with its tiles.

    python benchmarks/studio_page.py

Needs Playwright and chromium. Every load has a new profile, so nothing is in the browser's cache;
but the process that renders the page is already running.
"""

from __future__ import annotations

import shutil
import statistics
from urllib.request import urlopen

from playwright.sync_api import sync_playwright

from lab2048.bench.studio import studio

LOADS = 15
DRAWN = """() => new Promise((resolve) => {
  const look = () => document.querySelector(".board .tile")
    ? resolve(performance.now()) : requestAnimationFrame(look);
  look();
})"""


def main() -> None:
    """Load the page again and again, and print the median."""
    loaded, drawn = [], []
    with studio() as (port, _), sync_playwright() as playwright:
        path = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        urlopen(f"http://127.0.0.1:{port}/api/players").close()  # makes the server load all players
        for _ in range(LOADS):
            context = browser.new_context(base_url=f"http://127.0.0.1:{port}")
            page = context.new_page()
            page.goto("/api")  # makes the browser start a process for this address
            page.goto("/play?rules=4x4&seed=7")
            drawn.append(page.evaluate(DRAWN))
            timing = "performance.getEntriesByType('navigation')[0].loadEventEnd"
            loaded.append(page.evaluate(timing))
            context.close()
        browser.close()
    for name, times in (("load event", loaded), ("board drawn", drawn)):
        low, high = min(times), max(times)
        print(f"{name}: median {statistics.median(times):.0f} ms ({low:.0f} to {high:.0f})")


if __name__ == "__main__":
    main()
