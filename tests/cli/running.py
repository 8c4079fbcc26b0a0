"""Commands as a user runs them."""

from __future__ import annotations

import os
import subprocess
import sys


def run(*arguments, **environment):
    """A command as a user runs it."""
    return subprocess.run(
        [sys.executable, "-m", "lab2048", *arguments],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env={**os.environ, **environment},
        check=False,
    )


SQUARE = "2 2 . . / . . . . / . . . . / . . . ."
"""No board of 16 cells is ever solved."""
