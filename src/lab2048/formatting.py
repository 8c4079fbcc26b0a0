"""Format numbers, chances, sizes and times for people.

The library for this, humanize, gives sizes a fixed number of decimals, and times in words.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

QUOTES = "\"'"


def number(value: float | None) -> str:
    """A value with two decimals, or six significant digits if below 1; a dash for None."""
    if value is None:
        return "-"
    return f"{value:,.2f}" if abs(value) >= 1 else f"{value:.6g}"


def percent(chance: float) -> str:
    """A chance as a percentage, padded to nine characters."""
    return f"{100 * chance:8.4f}%"


def size(count: int) -> str:
    """A number of bytes, with a fitting unit."""
    amount = float(count)
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if amount < 1000:
            return (
                f"{amount:.0f} {unit}"
                if unit == "bytes" or amount >= 100
                else f"{amount:.3g} {unit}"
            )
        amount /= 1000
    return f"{amount:,.0f} PB"


def duration(seconds: float) -> str:
    """A length of time, with a fitting unit."""
    if seconds < 1:
        return "a second"
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 100 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.0f} h" if seconds < 100 * 3600 else f"{seconds / 86400:,.0f} days"


def precise(value: float) -> str:
    """A value with enough digits to tell moves apart: four decimals, or more if it is small."""
    return f"{value:,.4f}" if abs(value) >= 0.01 or value == 0 else f"{value:.3g}"


def plain(text: str) -> str:
    """A text made safe for a terminal: unprintable characters become question marks."""
    return "".join(each if each.isprintable() else "?" for each in text)


def one_line(thing: object) -> str:
    """A text, or the message of an error, on one line and without control characters."""
    return plain(" ".join(str(thing).split()))


def as_options(text: str) -> str:
    """A message of the library, with its keyword arguments written as command-line options.

    >>> as_options("`resume=True` goes on with it, `time_limit=3` ends it, `out` has another name")
    '--resume goes on with it, --time-limit 3 ends it, --out has another name'
    """

    def option(found: re.Match[str]) -> str:
        value = "" if found[2] in (None, "True") else f" {found[2].strip(QUOTES)}"
        return f"--{found[1].replace('_', '-')}{value}"

    return re.sub(r"`([a-z][a-z0-9_]*)(?:=([^`]*))?`", option, text)


def nearest(word: str, words: Iterable[str]) -> str:
    """A hint for an unknown word: the nearest known word, or all of them."""
    near = difflib.get_close_matches(word, words, n=1)
    return f"did you mean {near[0]}?" if near else f"there is {', '.join(words)}"
