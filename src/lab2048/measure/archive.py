"""Results that are kept to be looked at again: what evaluations and surveys found."""

from __future__ import annotations

import json
import re
import secrets
import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from lab2048.home import home, write_atomically

FORMAT = 1
MOST = 1000
"""Evaluations that are listed at most, the newest."""
_NAME = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9a-f]{6}")


def results_folder() -> Path:
    """Where they are."""
    return home() / "results"


def keep_results(results: Sequence[dict[str, Any]], arguments: Sequence[str]) -> Path:
    """Keep the results of an evaluation, with 101 quantiles in the place of all scores."""
    now = datetime.now(UTC)
    kept = []
    for each in results:
        facts = {name: value for name, value in each.items() if name != "scores"}
        ends = np.quantile(each["scores"], np.linspace(0, 1, 101)).tolist()
        kept.append({**facts, "quantiles": ends})
    found = {
        "format": FORMAT,
        "made": now.isoformat(timespec="seconds"),
        "command": shlex.join(["lab2048", *arguments]),
        "results": kept,
    }
    name = f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"
    path = results_folder() / f"{name}.json"
    write_atomically(path, json.dumps(found, allow_nan=False) + "\n")
    return path


def list_results() -> list[dict[str, Any]]:
    """All that is kept, newest first, each with its `name`; what cannot be read is left out."""
    folder = results_folder()
    names = sorted((path.stem for path in folder.glob("*.json")), reverse=True)
    found = [read_results(name) for name in names[:MOST] if _NAME.fullmatch(name)]
    return [each for each in found if each is not None]


def read_results(name: str) -> dict[str, Any] | None:
    """One of them by its name; None if there is none, or it is damaged."""
    if not _NAME.fullmatch(name):
        return None
    try:
        found = _plain_json((results_folder() / f"{name}.json").read_text("utf-8"))
        rows = all("player" in row and "quantiles" in row for row in found["results"])
        if found["format"] != FORMAT or not rows:
            return None
        return {"name": name, **{key: found[key] for key in ("made", "command", "results")}}
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None


def _plain_json(text: str) -> Any:
    """What a text holds; a `ValueError` if it has numbers that are none, as Python would write."""

    def refuse(number: str) -> float:
        raise ValueError(f"{number} is no number")

    return json.loads(text, parse_constant=refuse)


# -- surveys -------------------------------------------------------------------------------------


def survey_folder(name: str) -> Path:
    """Where the survey of a table is, with its pictures."""
    return home() / "surveys" / name


def survey_file(name: str) -> Path:
    """The survey of a table, if there is one."""
    return survey_folder(name) / "survey.json"


def keep_survey(found: dict[str, Any], name: str, folder: Path | None = None) -> None:
    """Keep a survey, where that of a table is unless a folder is given."""
    path = survey_file(name) if folder is None else folder / "survey.json"
    write_atomically(path, json.dumps(found) + "\n")


def read_survey(name: str) -> dict[str, Any] | None:
    """The survey of a table; None if there is none, or it is damaged."""
    try:
        found = _plain_json(survey_file(name).read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
