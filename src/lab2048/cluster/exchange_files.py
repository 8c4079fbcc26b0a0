"""The files by which tasks of a solve hand on their keys and indexes, used again and again.

To overwrite a file is several times quicker than to make a new one and remove the old. But once a
worker has been lost, nobody knows whether it really is gone or may still write to a file that it
has open. From then on no file is used twice.
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
        """Some may be written by several tasks together: then only on one machine.

        NFS writes whole pages, if it has them from an earlier use of the file: those of others too.
        """
        self._folder, self._team = folder, team
        self._again = not together or team.machines == 1
        self._spare: dict[str, list[str]] = defaultdict(list)

    def new(self, kind: str, name: str) -> Out:
        """A file to be written, over one of its kind that is not needed any more."""
        spare = self._spare[kind]
        again = spare.pop() if spare and self._reuses else None
        return Out(str(self._folder / f"{name}-{kind}"), again)

    def done_with(self, kind: str, path: str) -> None:
        """Release a file: it may be overwritten."""
        if not self._reuses:
            with suppress(FileNotFoundError):
                os.unlink(path)
        else:
            self._spare[kind].append(path)

    @property
    def _reuses(self) -> bool:
        """Whether files are used again."""
        return self._again and not self._team.losses

    def clear(self) -> None:
        """Remove the files that are not needed any more."""
        for paths in self._spare.values():
            for path in paths:
                Path(path).unlink(missing_ok=True)
        self._spare.clear()
