"""The list of past evaluations, encoded by worker threads and kept between requests."""

from __future__ import annotations

import json
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from lab2048.measure.archive import MOST, read_results, results_folder

Version = tuple[int, int]
"""When a file was written, in nanoseconds, and its size in bytes."""
NAMES = ("player", "board", "p4", "games", "seed", "score", "reach", "moves_per_second")
"""What the list copies from the results of a player."""


class ResultList:
    """Past evaluations in brief. A file is read again only when it has changed."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[Version, bytes]] = {}
        self._lock = threading.Lock()

    def encoded(self) -> bytes:
        """Return the list as JSON, newest first; files that cannot be read are left out."""
        with self._lock:
            paths = sorted(results_folder().glob("*.json"), reverse=True)[:MOST]
            self._kept = {path.stem: self._current(path) for path in paths}
            return b"[" + b",".join(text for _, text in self._kept.values() if text) + b"]"

    def _current(self, path: Path) -> tuple[Version, bytes]:
        """Return a file's version and brief text, read again if it changed; empty if unreadable."""
        try:
            facts = path.stat()
        except OSError:  # it has just been removed
            return (0, 0), b""
        version = facts.st_mtime_ns, facts.st_size
        kept = self._kept.get(path.stem)
        return kept if kept is not None and kept[0] == version else (version, _brief_text(path))


def _brief_text(path: Path) -> bytes:
    """Return results in brief, as JSON; empty if they cannot be read."""
    found = read_results(path.stem)
    with suppress(AttributeError, KeyError, TypeError):  # a file that was edited by hand
        return json.dumps(_brief(found)).encode() if found is not None else b""
    return b""


def _brief(found: dict[str, Any]) -> dict[str, Any]:
    """Return results without bins and lists."""
    rows = []
    for each in found["results"]:
        optimal = each.get("optimal") or {}
        exact = each.get("exact") or {}
        rows.append(
            {
                **{name: each.get(name) for name in NAMES},
                "exact_value": exact.get("value"),
                "exact_regret": exact.get("regret"),
                "regret_per_game": optimal.get("regret_per_game"),
                "agreement": optimal.get("agreement"),
            }
        )
    return {name: found[name] for name in ("name", "made", "command")} | {"results": rows}
