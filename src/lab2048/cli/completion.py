"""Shell completion of boards, players, networks and tables. It loads neither kernels nor torch."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stdout

from lab2048.game.notation import SHAPES

BREAKS = (":", "=")
"""Bash splits words at these, and treats them as separate words."""


@contextmanager
def whole_words() -> Iterator[None]:
    """When bash asks for completions, rejoin words that it has split, such as `ntuple:NAME`.

    Completions are printed without the part up to the last colon.
    """
    if os.environ.get("_LAB2048_COMPLETE") != "complete_bash":
        yield
        return
    words = os.environ.get("COMP_WORDS", "").split("\n")
    joined, place = _joined(words, int(os.environ.get("COMP_CWORD", "0")))
    os.environ.update(COMP_WORDS="\n".join(joined), COMP_CWORD=str(place))
    typed = joined[place] if place < len(joined) else ""
    value = typed.partition("=")[2] if typed.startswith("-") else typed
    begun, colon, _ = value.rpartition(":")
    answer = io.StringIO()
    try:
        with redirect_stdout(answer):
            yield
    finally:
        for line in answer.getvalue().splitlines():
            print(line.removeprefix(begun + colon))


def _joined(words: list[str], place: int) -> tuple[list[str], int]:
    """Rejoin words that bash has split; return them and the new place of the word at `place`."""
    joined: list[str] = []
    found = len(words)
    for number, word in enumerate(words):
        if joined and (word in BREAKS or joined[-1].endswith(BREAKS)):
            joined[-1] += word
        else:
            joined.append(word)
        if number == place:
            found = len(joined) - 1
    return joined, min(found, len(joined))


def boards(incomplete: str) -> list[str]:
    """Board sizes."""
    return matching([f"{rows}x{cols}" for rows, cols in SHAPES], incomplete)


def players(incomplete: str) -> list[str]:
    """Names of players or, after a colon, of the networks that a player can use."""
    from lab2048.players.registry import CUSTOM, player_names

    kind, colon, _ = incomplete.rpartition(":")
    if not colon:
        return matching([*player_names(), f"{CUSTOM}:"], incomplete)
    return matching([f"{kind}:{name}" for name in _networks(kind)], incomplete)


def networks(incomplete: str) -> list[str]:
    """Names of trained networks."""
    return matching(_networks(), incomplete)


def tables(incomplete: str) -> list[str]:
    """Names of tables."""
    from lab2048.solver.tables import table_names

    return matching(table_names(), incomplete)


def _networks(kind: str = "") -> Iterator[str]:
    """Names of trained networks: all, or those of one kind."""
    from lab2048.learn.network_files import FILE, networks_folder, read_facts

    for path in networks_folder().glob(f"*/{FILE}"):
        try:
            if not kind or read_facts(path)["kind"] == kind:
                yield path.parent.name
        except (OSError, ValueError):  # a damaged network cannot play
            continue


def matching(names: Iterable[str], incomplete: str) -> list[str]:
    """The names that start with what was typed, sorted."""
    return sorted(name for name in names if name.startswith(incomplete))
