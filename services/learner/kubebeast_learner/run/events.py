"""The numbers of a run as an event file, which TensorBoard reads.

Written by the caller's thread: SummaryWriter's own thread would die of a full disk, beside the run and not with it.
"""

import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter


class EventFile:
    """A new file in `folder`, named as TensorBoard expects it. For one thread."""

    def __init__(self, folder: Path) -> None:
        """OSError when it cannot be written."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"events.out.tfevents.{time.time_ns() / 1e9:020.9f}.{socket.gethostname()}.{os.getpid()}"
        self._writer = RecordWriter(open(path, "xb"))  # noqa: SIM115 - closed by close
        self._write(Event(wall_time=time.time(), file_version="brain.Event:2"))

    def add(self, values: Mapping[str, float], step: int) -> None:
        """Appends numbers by name. OSError when the disk is full."""
        summary = Summary(value=[Summary.Value(tag=name, simple_value=value) for name, value in values.items()])
        self._write(Event(wall_time=time.time(), step=step, summary=summary))

    def close(self) -> None:
        """OSError when the disk is full. Idempotent."""
        self._writer.close()

    def _write(self, event: Event) -> None:
        self._writer.write(event.SerializeToString())
        self._writer.flush()
