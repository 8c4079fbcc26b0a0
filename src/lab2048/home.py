"""Where lab2048 keeps what it makes: one folder, and how a small file is put there safely."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def home() -> Path:
    """The folder of all data: `LAB2048_HOME`, or the platform's user data folder."""
    if chosen := os.environ.get("LAB2048_HOME"):
        try:
            return Path(chosen).expanduser().absolute()
        except RuntimeError:
            raise ValueError(f"LAB2048_HOME is {chosen!r}, and there is no such user") from None
    import platformdirs

    return platformdirs.user_data_path("lab2048", appauthor=False)


def write_atomically(path: Path, text: str) -> None:
    """Put `text` at `path` so that a reader, or a crash, meets the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}.part")
    try:
        with temporary.open("x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
