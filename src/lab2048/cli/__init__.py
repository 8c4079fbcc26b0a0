"""The command line: parse, call, print."""

from __future__ import annotations

from typing import NoReturn


def main() -> NoReturn:
    """Run the command `lab2048`."""
    from lab2048.cli.app import main as run

    run()
