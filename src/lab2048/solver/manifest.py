"""Read and validate the small files of a table.

A checksum shows that a file has not changed since it was written, not that lab2048 wrote it. So
every field that is used is validated once, here, and a `TableError` says what is wrong.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lab2048.game.notation import short, whole
from lab2048.solver.objective import UnknownObjectiveError
from lab2048.solver.problem import START_KINDS, Problem
from lab2048.solver.table_files import (
    AGAIN,
    BLOCK_HEAD,
    BLOCKS,
    FORMAT,
    KEYS,
    KINDS,
    MANIFEST,
    PROGRESS,
    RUN,
    VALUES,
    OtherTableError,
    TableError,
    age_of,
    blocks_of,
    read_json,
)

MOST = 1 << 50
"""No board has more states, and no file more bytes."""
LARGEST = sys.float_info.max
LONG = 40
"""Errors shorten texts of this many characters or more."""
STAGES = ("enumerate", "values")


def load_manifest(folder: Path) -> dict[str, Any] | None:
    """The manifest in a folder, or None. One of another format is not validated."""
    found = read_json(folder / MANIFEST)
    if found is not None and found.get("format") == FORMAT:
        _checked(folder / MANIFEST, found, _check_manifest)
    return found


def load_progress(folder: Path) -> dict[str, Any] | None:
    """The record of an unfinished table, or None."""
    found = read_json(folder / PROGRESS)
    if found is not None:
        check_format(folder, found)
        if not _are(found.get("carry"), dict, _is_crc):  # of an older version: discarded
            found["carry"] = {}
        _checked(folder / PROGRESS, found, _check_progress)
    return found


def check_format(folder: Path, found: dict[str, Any]) -> None:
    """Raise a `TableError` if what a folder holds is of another format."""
    if found.get("format") != FORMAT:
        raise TableError(
            f"{folder} is of format {short(found.get('format'))}; "
            f"this version of lab2048 reads format {FORMAT}"
        )


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a finished table, or a `TableError`."""
    if not folder.is_dir():
        raise TableError(f"there is no table in {folder}")
    manifest = load_manifest(folder)
    if manifest is None:
        if (folder / PROGRESS).exists():
            raise TableError(f"the table in {folder} is unfinished; solve it again to finish it")
        raise TableError(f"{folder} is not a table: it has no {MANIFEST}")
    check_format(folder, manifest)
    return manifest


def checked_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a finished table whose files are all there, or a `TableError`."""
    manifest = read_manifest(folder)
    if manifest["keep"] != "table":
        raise TableError(f"only a summary of {folder.name} was kept; solve it with `keep=table`")
    check_files(folder, manifest)
    return manifest


def check_identity(folder: Path, found: dict[str, Any], identity: dict[str, Any]) -> None:
    """Raise an `OtherTableError` unless a folder holds the requested table."""
    for name, value in identity.items():
        if found.get(name) != value:
            other = found.get(name)
            shown = other if isinstance(other, str) and len(other) < LONG else short(other)
            raise OtherTableError(
                f"{folder} is the folder of another table: its {name} is {shown}, "
                f"not {value}; choose another with `out`"
            )


def check_files(folder: Path, manifest: dict[str, Any]) -> None:
    """Raise a `TableError` unless all files of a table have the sizes and checksums recorded."""
    for name, wanted in manifest["files"].items():
        try:
            size = (folder / name).stat().st_size
        except FileNotFoundError:
            raise TableError(f"{folder / name} is missing; {AGAIN}") from None
        if size != wanted["bytes"]:
            raise TableError(
                f"{folder / name} has {size:,} bytes, not {wanted['bytes']:,}: it is damaged; "
                f"{AGAIN}"
            )
        if "crc" in wanted and zlib.crc32((folder / name).read_bytes()) != wanted["crc"]:
            raise TableError(f"{folder / name} is damaged: its checksum is wrong; {AGAIN}")


def description(path: Path, manifest: dict[str, Any]) -> dict[str, Any]:
    """Facts about a finished table, and about the run that made it."""
    run = _run_facts(path)
    names = ("board", "p4", "objective", "gamma", "states", "afterstates", "terminals", "max_age")
    return {
        **{name: manifest[name] for name in names},
        "value": manifest["value"],
        "values": manifest["values"],
        "seconds": run.get("seconds"),
        "threads": run.get("threads"),
        "peak_memory_bytes": run.get("peak_memory_bytes"),
        "table_bytes": sum(file["bytes"] for file in manifest["files"].values()),
        "keep": manifest["keep"],
        "table": str(path),
    }


def _run_facts(path: Path) -> dict[str, Any]:
    """Facts about the run that made a table; empty if they are lost."""
    try:
        run = read_json(path / RUN) or {}
    except TableError:  # `verify` reports it; the table itself is intact
        return {}
    known = (
        _are(run.get("seconds"), dict, _is_number)
        and run["seconds"].keys() == {*STAGES, "total"}
        and _is_count(run.get("threads"))
        and (run.get("peak_memory_bytes") is None or _is_count(run["peak_memory_bytes"]))
    )
    return run if known else {}


# -- valid fields --------------------------------------------------------------------------------


class _FieldError(ValueError):
    """A field with an invalid value."""


def _checked(path: Path, found: dict[str, Any], check: Callable[[dict[str, Any]], None]) -> None:
    """Check the fields of a file; raise a `TableError` that names it and what is wrong."""
    try:
        check(found)
    except _FieldError as error:
        raise TableError(f"{path} is damaged: {error}; {AGAIN}") from None
    except UnknownObjectiveError as error:
        raise OtherTableError(f"{path} names no objective that is known here: {error}") from None


def _require(fine: bool, name: str, wanted: str) -> None:
    """Raise an error that says what a field should be, unless it is fine."""
    if not fine:
        raise _FieldError(f"{name} should be {wanted}")


def _is_count(found: object) -> bool:
    return type(found) is int and 0 <= found < MOST


def _is_crc(found: object) -> bool:
    return type(found) is int and 0 <= found < 1 << 32


def _is_number(found: object) -> bool:
    return isinstance(found, int | float) and type(found) is not bool and 0 <= found <= LARGEST


def _are(found: object, kind: type, fine: Callable[[Any], bool], length: int | None = None) -> bool:
    """Whether `found` is a list (or dict) of this length with all items (or values) fine."""
    if not isinstance(found, list | dict) or type(found) is not kind:
        return False
    items = found.values() if isinstance(found, dict) else found
    return length in (None, len(found)) and all(map(fine, items))


def _check_manifest(found: dict[str, Any]) -> None:
    """Check a manifest of this format."""
    _check_problem(found)
    kept = found.get("keep") == "table"
    _require(kept or found.get("keep") == "summary", "keep", "table or summary")
    layers: Any = found.get("layers")
    _require(isinstance(layers, dict), "layers", "an object")
    _check_counts(found, layers)
    _check_value(found.get("value"))
    crcs = layers.get("value_crcs")
    if kept:
        fine = _are(crcs, list, _is_crc, len(layers["states"]))
        _require(fine, "layers.value_crcs", "a checksum for each layer")
        _check_sizes(found, found.get("files"))
    else:
        none = crcs is None and found.get("files") == {}
        _require(none, "files", "empty, because only a summary is kept")


def _check_value(value: Any) -> None:
    """Check the values of starts."""
    fine = _are(value, dict, lambda each: each is None or _is_number(each))
    fine = fine and value.keys() == {"start", *START_KINDS} and value["start"] is not None
    _require(fine, "value", "the value of each kind of start")


def _check_problem(found: dict[str, Any]) -> None:
    """Check what was solved, and how its values are stored."""
    texts = all(isinstance(found.get(name), str) for name in ("board", "objective", "values"))
    _require(texts, "board, objective and values", "text")
    numbers = all(_is_number(found.get(name)) for name in ("p4", "gamma"))
    _require(numbers, "p4 and gamma", "numbers from 0 to 1")
    _require(found["values"] in KINDS, "values", " or ".join(KINDS))
    try:
        problem = Problem.from_json(found)
    except UnknownObjectiveError:
        raise
    except ValueError as error:
        raise _FieldError(str(error)) from None
    same = all(found[name] == value for name, value in problem.as_json().items())
    _require(same, "the problem", f"written as {problem.as_json()}")


def _check_counts(found: dict[str, Any], layers: dict[str, Any]) -> None:
    """Check the number of boards of each layer, and what follows from it."""
    for name in ("states", "afterstates"):
        _require(_are(layers.get(name), list, _is_count), f"layers.{name}", "a list of counts")
        total = sum(layers[name])
        _require(_is_count(found.get(name)) and found[name] == total, name, f"{short(total)}")
    states = layers["states"]
    fine = len(states) == len(layers["afterstates"]) and any(states)
    _require(fine, "layers", "two lists of the same length, not all zero")
    fine = _is_count(found.get("terminals")) and found["terminals"] <= found["states"]
    _require(fine, "terminals", "a count of states")
    oldest = age_of(max(n for n, count in enumerate(states) if count))
    _require(whole(found.get("max_age")) == oldest, "max_age", f"{oldest}")


def _check_sizes(found: dict[str, Any], files: Any) -> None:
    """Check the sizes of the files of a table, as far as they follow from the counts."""
    fine = _are(files, dict, lambda each: _are(each, dict, _is_count))
    _require(fine and files.keys() == {KEYS, BLOCKS, VALUES}, "files", "the sizes of three files")
    records = sum(map(blocks_of, found["layers"]["states"]))
    wanted = {
        KEYS: {"bytes": files[KEYS].get("bytes")},
        BLOCKS: {"bytes": BLOCK_HEAD.itemsize * records, "crc": files[BLOCKS].get("crc")},
        VALUES: {"bytes": KINDS[found["values"]].itemsize * found["states"]},
    }
    for name in (KEYS, BLOCKS, VALUES):
        fine = files[name] == wanted[name]
        _require(fine, f"files.{name}", "consistent with the number of states")
    _require(_is_count(files[KEYS].get("bytes")), f"files.{KEYS}", "a number of bytes")


def _check_progress(found: dict[str, Any]) -> None:
    """Check the record of an unfinished table."""
    _require(isinstance(found.get("enumerated"), bool), "enumerated", "true or false")
    for name in ("keys_bytes", "blocks_crc", "valued", "terminals", "runs"):
        _require(_is_count(found.get(name)), name, "a count")
    states = found.get("states")
    _require(_are(states, list, _is_count), "states", "a list of counts")
    layers = len(found["states"])
    _require(_are(found.get("afterstates"), list, _is_count, layers), "afterstates", "counts")
    pairs = _are(found.get("scratch"), list, lambda each: _are(each, list, _is_count, 2), layers)
    _require(pairs, "scratch", "a size and a checksum for each layer")
    valued = found["valued"]
    fine = valued == 0 or (found["enumerated"] and valued <= layers)
    _require(fine, "valued", "a count of layers, 0 until enumeration is finished")
    crcs = _are(found.get("crcs"), list, lambda each: each is None or _is_crc(each), valued)
    _require(crcs, "crcs", "a checksum for each layer that has values")
    _require(_are(found.get("starts"), dict, _is_number), "starts", "values by their keys")
    seconds: Any = found.get("seconds")
    fine = _are(seconds, dict, _is_number) and seconds.keys() == set(STAGES)
    _require(fine, "seconds", "a time for each stage")
