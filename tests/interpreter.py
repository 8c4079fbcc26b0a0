"""A new interpreter."""

from __future__ import annotations

import os
import subprocess
import sys


def python(code, **environment):
    """What a piece of code prints in a new interpreter."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done
