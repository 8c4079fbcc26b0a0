"""Access to a cluster, for calls with `cluster=`.

The packages whose work a cluster does come before the package `cluster` and may not import it. They
call this module, which imports it on demand.
"""

from __future__ import annotations

import importlib
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any


def cluster_at(
    cluster: Any, workers: int | None = None, shared: Path | None = None
) -> AbstractContextManager[Any]:
    """Return the connection for `cluster=`: a new one to an address, or one that is open already.

    None stays None: this machine does the work. See `lab2048.cluster.connection.Connection` for
    what a connection can do.
    """
    if not isinstance(cluster, str):
        return nullcontext(cluster)
    connection: Any = importlib.import_module("lab2048.cluster.connection")
    found: AbstractContextManager[Any] = connection.connect(cluster, workers, shared)
    return found
