"""Networks that come with the package: one file per kind of player and board."""

from __future__ import annotations

from pathlib import Path

SHIPPED = Path(__file__).parent.parent / "learn" / "networks"


def shipped(kind: str, board: str) -> Path:
    """The path of the package's network of a kind for a board, whether or not there is one."""
    return SHIPPED / f"{kind}-{board}.safetensors"
