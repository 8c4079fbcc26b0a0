"""Event files for TensorBoard, encoded by its own code, but with a writer of ours.

TensorBoard's own writer, which torch uses too, writes in a thread that dies when the disk is full.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from tensorboard.compat.proto.event_pb2 import (  # type: ignore[import-untyped]
    Event,
    SessionLog,
)
from tensorboard.compat.proto.summary_pb2 import Summary  # type: ignore[import-untyped]
from tensorboard.summary.writer.record_writer import (  # type: ignore[import-untyped]
    RecordWriter,
)


class Writer:
    """Writes the numbers of records, by games or whatever else is counted.

    `add` flushes the file, so that a full disk is an `OSError` there.
    """

    def __init__(self, folder: Path, done: int, counted: str = "games") -> None:
        self._counted = counted
        folder.mkdir(parents=True, exist_ok=True)
        name = f"events.out.tfevents.{time.time_ns()}.lab2048"
        self._file = (folder / name).open("wb")
        self._records = RecordWriter(self._file)
        self._write(Event(wall_time=time.time(), file_version="brain.Event:2"))
        # TensorBoard then ignores later events of other files, whose training was lost
        start = SessionLog(status=SessionLog.START)
        self._write(Event(wall_time=time.time(), step=done + 1, session_log=start))

    def _write(self, event: Any) -> None:
        self._records.write(event.SerializeToString())
        self._file.flush()

    def add(self, record: dict[str, Any]) -> None:
        """Write all numbers of a flattened record (`checkpoint.flat`)."""
        values = [
            Summary.Value(tag=tag, simple_value=float(value))
            for tag, value in record.items()
            if tag != self._counted and not isinstance(value, str)
        ]
        step = record[self._counted]
        event = Event(wall_time=time.time(), step=step, summary=Summary(value=values))
        self._write(event)

    def close(self) -> None:
        """Close the file."""
        self._file.close()
