"""What a folder already holds, and whether a solve may use it.

A solve never removes a table that it cannot use, whether of another format, damaged or incomplete.
It raises an error that says what the folder holds and how to remove it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lab2048.formatting import size
from lab2048.home import locked
from lab2048.solver.manifest import (
    check_files,
    check_format,
    check_identity,
    load_manifest,
    load_progress,
)
from lab2048.solver.table_files import (
    AGAIN,
    BLOCKS,
    KEYS,
    LOCK,
    MANIFEST,
    PROGRESS,
    VALUES,
    OtherTableError,
    TableError,
    check_folder,
    clear_away,
    expanded,
    files_of,
    tables_folder,
)


class UnusableTableError(TableError):
    """A table of another format, or one that is damaged: a solve neither uses nor removes it."""


def existing_table(folder: Path, identity: dict[str, Any]) -> dict[str, Any] | None:
    """The manifest of the finished table in a folder; None if it is empty or can be resumed.

    The manifest of a summary stays until a full table takes its place, and that table may be
    resumed. What a solve cannot use raises an `UnusableTableError`; a sound table of another
    problem (or with other values), an `OtherTableError`.
    """
    check_folder(folder)
    try:
        manifest = load_manifest(folder)
        found = manifest or load_progress(folder)
        if found is None:
            _check_nothing_left(folder)
            return None
        check_format(folder, found)
        check_identity(folder, found, identity)
        if manifest is not None:
            check_files(folder, manifest)
            if manifest["keep"] == "summary":
                load_progress(folder)  # checks the record of a table begun beside the summary
    except OtherTableError:
        raise
    except TableError as error:
        raise UnusableTableError(_refusal(folder, str(error).removesuffix(f"; {AGAIN}"))) from None
    return manifest


def _check_nothing_left(folder: Path) -> None:
    """Raise a `TableError` if there are keys or values, but neither a manifest nor a record."""
    for name in (KEYS, BLOCKS, VALUES):
        if (folder / name).exists() and (folder / name).stat().st_size:
            raise TableError(f"{folder / name} is there, but neither {MANIFEST} nor {PROGRESS}")


def _refusal(folder: Path, why: str) -> str:
    """The message that says why a table is not used, its size, and how to remove it."""
    held = sum(path.stat().st_size for path in files_of(folder) if path.is_file())
    name = folder.name if folder.parent == tables_folder() else folder
    return (
        f"{why} ({size(held)} in all), so it is left as it is: lab2048 table remove {name} removes "
        "it, solve --replace makes it anew"
    )


def remove_unusable(folder: Path | str, identity: dict[str, Any]) -> bool:
    """Remove what a solve cannot use; return whether there was anything.

    A sound table of another problem is left alone: it raises an `OtherTableError`.
    """
    folder = expanded(folder)
    if not folder.is_dir():
        return False
    with locked(folder / LOCK, f"the table in {folder}", TableError, wait=True):
        try:
            existing_table(folder, identity)
        except UnusableTableError:
            clear_away(folder)
            for path in files_of(folder):
                if path.name != LOCK:
                    path.unlink()
            return True
    return False
