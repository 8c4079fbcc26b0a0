"""Names and memory of arrays."""

from __future__ import annotations

import re
from pathlib import Path

import lab2048

PACKAGE = Path(lab2048.__file__).parent


def test_arrays_of_one_kind_have_one_name():
    written = [
        f"{path.relative_to(PACKAGE).as_posix()}: {found[0]}"
        for path in PACKAGE.rglob("*.py")
        if path != PACKAGE / "engine" / "arrays.py"
        for found in re.finditer(r"NDArray\[(?!Any\])[^\n]*", path.read_text("utf-8"))
    ]
    assert written == [], "engine/arrays.py has a name for it, or gets one"
