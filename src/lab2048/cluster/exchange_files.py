"""The files through which the tasks of a solve pass on keys and indexes, reused where that is safe.

Overwriting a file is several times faster than creating a new one and removing the old. But a
worker that has been lost may still be running, and writing to a file that it has open. So after a
loss no file is reused.
"""

from __future__ import annotations

import os
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

from lab2048.cluster.shard_steps import Out
from lab2048.cluster.workers import Team


class Files:
    """The files in a folder."""

    def __init__(self, folder: Path, team: Team, together: bool = False) -> None:
        """Files that several tasks write `together` are reused on a single machine only.

        NFS writes back whole pages that it has cached from an earlier use of the file, and so would
        overwrite what other machines have written to them.
        """
        self._folder, self._team = folder, team
        self._again = not together or team.machines == 1
        self._spare: dict[str, list[str]] = defaultdict(list)

    def new(self, kind: str, name: str) -> Out:
        """A file to write, over a spare one of its kind if there is one."""
        spare = self._spare[kind]
        again = spare.pop() if spare and self._reuses else None
        return Out(str(self._folder / f"{name}-{kind}"), again)

    def done_with(self, kind: str, path: str) -> None:
        """Release a file: keep it as a spare, or remove it if files are not reused."""
        if not self._reuses:
            with suppress(FileNotFoundError):
                os.unlink(path)
        else:
            self._spare[kind].append(path)

    @property
    def _reuses(self) -> bool:
        """Whether files are reused."""
        return self._again and not self._team.losses

    def clear(self) -> None:
        """Remove the spare files."""
        for paths in self._spare.values():
            for path in paths:
                Path(path).unlink(missing_ok=True)
        self._spare.clear()
