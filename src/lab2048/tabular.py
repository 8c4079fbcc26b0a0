"""Results that are tables: as text for papers and programs, and shown in a notebook."""

from __future__ import annotations

import csv
import html
import io
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any, NamedTuple

LATEX = {
    "\\": r"\textbackslash{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "≈": r"$\approx$",
    "−": "$-$",
    "×": r"$\times$",
}


class Grid(NamedTuple):
    """A table of strings. The first column is left-aligned, all others right-aligned."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]


class Tabular(ABC):
    """A result that is a table: `rows` for programs, `grid` for people.

    A class with `rows` can be written in four formats, and notebooks show it as a table.

    >>> class Squares(Tabular):
    ...     def rows(self):
    ...         return [{"n": n, "square": n * n} for n in (1, 2)]
    >>> print(Squares().to_csv(), end="")
    n,square
    1,1
    2,4
    >>> print(Squares().to_markdown(), end="")
    | n | square |
    |:--|-------:|
    | 1 | 1 |
    | 2 | 4 |
    """

    @abstractmethod
    def rows(self) -> list[dict[str, Any]]:
        """Return one flat dictionary per row, all with the same keys."""

    def grid(self) -> Grid:
        """Return the table formatted for people."""
        rows = self.rows()
        names = list(rows[0]) if rows else []
        return Grid(names, [[shown(row[name]) for name in names] for row in rows])

    def as_json(self) -> Any:
        """Return everything as values that JSON can hold."""
        return self.rows()

    def to_json(self, path: Path | str | None = None) -> str:
        """Return everything as one JSON value; write it to `path` too, if given."""
        return _written(json.dumps(self.as_json(), allow_nan=False) + "\n", path)

    def to_csv(self, path: Path | str | None = None) -> str:
        """Return the rows as comma-separated values; write them to `path` too, if given."""
        rows = self.rows()
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        names = list(rows[0]) if rows else []
        writer.writerow(names)
        writer.writerows([row[name] for name in names] for row in rows)
        return _written(out.getvalue(), path)

    def to_latex(self, path: Path | str | None = None) -> str:
        """Return a LaTeX table (booktabs); write it to `path` too, if given."""
        headings, rows = self.grid()
        lines = [rf"\begin{{tabular}}{{l{'r' * (len(headings) - 1)}}}", r"\toprule"]
        lines += [" & ".join(map(latex, headings)) + r" \\", r"\midrule"]
        for first, *others in rows:
            cells = [rf"\texttt{{{latex(first)}}}", *map(latex, others)]
            lines.append(" & ".join(cells) + r" \\")
        return _written("\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n", path)

    def to_markdown(self, path: Path | str | None = None) -> str:
        """Return a Markdown table; write it to `path` too, if given."""
        headings, rows = self.grid()
        rule = [
            ":" + "-" * (len(name) + 1) if not place else "-" * (len(name) + 1) + ":"
            for place, name in enumerate(headings)
        ]
        lines = [_bars(headings), "|" + "|".join(rule) + "|", *map(_bars, rows)]
        return _written("\n".join(lines) + "\n", path)

    def _repr_html_(self) -> str:
        """Return the table in HTML, for notebooks."""
        headings, rows = self.grid()
        return html_table(headings, rows)


class SingleRow(Tabular):
    """A result of one row: a dataclass whose fields are the columns.

    People read it downwards, one figure per line.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Walk(SingleRow):
    ...     metres: int
    ...     from_to: tuple[str, str]
    >>> print(Walk(1200, ("here", "there")).to_csv(), end="")
    metres,from_to
    1200,"here, there"
    >>> print(Walk(1200, ("here", "there")).to_markdown(), end="")
    | figure | value |
    |:-------|------:|
    | metres | 1,200 |
    | from_to | here, there |
    """

    def as_json(self) -> Any:
        """Return the fields as a dictionary."""
        assert is_dataclass(self)
        return asdict(self)

    def rows(self) -> list[dict[str, Any]]:
        """Return the one row; nested values have names such as `score.mean`."""
        return [dict(_leaves(self.as_json()))]

    def grid(self) -> Grid:
        """Return one line per figure."""
        (row,) = self.rows()
        return Grid(["figure", "value"], [[name, shown(value)] for name, value in row.items()])


class Figures(SingleRow, dict[str, Any]):
    """Named figures: a dictionary that is also a table.

    >>> found = Figures(states=110, seconds={"total": 0.5})
    >>> found["states"], found.rows()
    (110, [{'states': 110, 'seconds.total': 0.5}])
    """

    def as_json(self) -> dict[str, Any]:
        """Return a plain copy of the dictionary."""
        return dict(self)


def _leaves(values: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """All values in nested dictionaries, with dotted names; lists are joined into one text."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{before}{name}.")
        elif isinstance(value, list | tuple):
            yield f"{before}{name}", ", ".join(map(str, value))
        else:
            yield f"{before}{name}", value


def _bars(cells: Sequence[str]) -> str:
    """A row of a Markdown table."""
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def html_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in HTML, the first column left-aligned, all others right-aligned."""

    def line(cells: Sequence[str], tag: str) -> str:
        sides = ["left", *["right"] * (len(cells) - 1)]
        inner = "".join(
            f'<{tag} style="text-align:{side}">{html.escape(cell)}</{tag}>'
            for side, cell in zip(sides, cells, strict=True)
        )
        return f"<tr>{inner}</tr>"

    body = "".join(line(row, "td") for row in rows)
    return f"<table><thead>{line(headings, 'th')}</thead><tbody>{body}</tbody></table>"


def latex(text: str) -> str:
    """Return a text with LaTeX's special characters escaped."""
    return "".join(LATEX.get(sign, sign) for sign in text)


def shown(value: Any) -> str:
    """Return a value as a table shows it: numbers with at most three decimals, None as a dash."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if value.is_integer() else f"{value:,.3f}"
    return str(value)


def _written(text: str, path: Path | str | None) -> str:
    """Return a text, after writing it to a file if one is given."""
    if path is not None:
        from lab2048.home import write_atomically

        write_atomically(Path(path), text)
    return text
