"""Learning: one trainer, one readable file per algorithm, networks and the players that use them.

`lab2048.train` is the module `train` of this package. `settings` and `learner` define what a
learner is, `trainer` does what all learners have in common, and `td`, `supervised` and `zero` are
the built-in ones.
"""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    if name == "train":
        import importlib

        return importlib.import_module("lab2048.learn.train")
    raise AttributeError(f"module 'lab2048.learn' has no attribute {name!r}")
