"""How all pictures look, and how they are written: equal figures give equal bytes."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from lab2048.home import replacing

STYLE: dict[Any, Any] = {
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.axisbelow": True,
    "figure.dpi": 120,
    "font.size": 10,
    "grid.color": "#e5e5e5",
    "legend.frameon": False,
    "svg.hashsalt": "lab2048",
}


def save_picture(figure: Figure, path: Path) -> Path:
    """Write a picture atomically, in the format that its suffix names (SVG if it has none)."""
    kind = path.suffix.lstrip(".").lower() or "svg"
    path.parent.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context(STYLE), replacing(path) as temporary:
        _write(figure, temporary, kind)
    return path


def svg(figure: Figure) -> str:
    """A picture as an SVG element of a page."""
    out = io.StringIO()
    with mpl.rc_context({**STYLE, "svg.fonttype": "none"}):
        _write(figure, out, "svg")
    text = out.getvalue()
    return text[text.index("<svg") :]


def _write(figure: Figure, out: Any, kind: str) -> None:
    about = {"Date": None} if kind == "svg" else None
    figure.savefig(out, format=kind, bbox_inches="tight", metadata=about)


def thousands(number: float, _: int) -> str:
    """The label of a tick, with commas."""
    return f"{number:,.0f}"
