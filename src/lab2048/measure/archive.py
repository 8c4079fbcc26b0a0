"""The archive of results: evaluations and surveys, as JSON files in the data folder."""

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
"""Maximum number of evaluations listed: the newest."""
_NAME = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9a-f]{6}")


def results_folder() -> Path:
    """The folder of archived evaluations."""
    return home() / "results"


def keep_results(results: Sequence[dict[str, Any]], arguments: Sequence[str]) -> Path:
    """Archive an evaluation, with 101 quantiles in place of the scores. Return its file."""
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
    """Archived evaluations, newest first, each with its `name`; at most `MOST`, readable ones."""
    folder = results_folder()
    names = sorted((path.stem for path in folder.glob("*.json")), reverse=True)
    found = [read_results(name) for name in names[:MOST] if _NAME.fullmatch(name)]
    return [each for each in found if each is not None]


def read_results(name: str) -> dict[str, Any] | None:
    """An archived evaluation by its name; None if it is missing or damaged."""
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
    """Parse strict JSON: NaN and Infinity, which Python writes, are a `ValueError`."""

    def refuse(number: str) -> float:
        raise ValueError(f"{number} is no number")

    return json.loads(text, parse_constant=refuse)


# -- surveys -------------------------------------------------------------------------------------


def survey_folder(name: str) -> Path:
    """The folder of the survey of a table, with its pictures."""
    return home() / "surveys" / name


def survey_file(name: str) -> Path:
    """The file of the survey of a table; it may not exist."""
    return survey_folder(name) / "survey.json"


def keep_survey(found: dict[str, Any], name: str, folder: Path | None = None) -> None:
    """Save a survey in `folder`, or in the usual one for the survey of a table."""
    path = survey_file(name) if folder is None else folder / "survey.json"
    write_atomically(path, json.dumps(found, allow_nan=False) + "\n")


def read_survey(name: str) -> dict[str, Any] | None:
    """The survey of a table; None if it is missing or damaged."""
    try:
        found = _plain_json(survey_file(name).read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
