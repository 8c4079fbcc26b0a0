"""The one door to a cluster, for calls that have `cluster=`.

The package `cluster` comes after those whose work it does, so none of them can import it: they ask
here, and it is imported when there is something to do.
"""

from __future__ import annotations

import importlib
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any


def cluster_at(
    cluster: Any, workers: int | None = None, shared: Path | None = None
) -> AbstractContextManager[Any]:
    """Return the connection that `cluster=` stands for: by its address, or one that is open.

    None stays None: this machine does the work. See `lab2048.cluster.connection.Connection` for
    what a connection can do.
    """
    if not isinstance(cluster, str):
        return nullcontext(cluster)
    connection: Any = importlib.import_module("lab2048.cluster.connection")
    found: AbstractContextManager[Any] = connection.connect(cluster, workers, shared)
    return found
