"""Event files with the numbers of a run, for TensorBoard.

The caller's thread writes them: SummaryWriter's own thread would die on a full disk, unnoticed by the run.
"""

import io
import json
import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.plugins.hparams.metadata import NULL_TENSOR, SESSION_START_INFO_TAG, create_summary_metadata
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData, SessionStartInfo
from tensorboard.summary.writer.record_writer import RecordWriter

from kubebeast_runs.files.append_file import AppendFile


class EventFile:
    """A new file in `folder`, named as TensorBoard requires and created by the first numbers. Not thread-safe."""

    def __init__(self, folder: Path, settings: Mapping[str, Any] | None = None) -> None:
        """`settings` are plain values: the hyperparameters of the run in TensorBoard's HParams."""
        self._folder = folder
        name = f"events.out.tfevents.{time.time_ns() / 1e9:020.9f}.{socket.gethostname()}.{os.getpid()}"
        self._file = AppendFile(folder / name)
        self._settings = settings

    def add(self, values: Mapping[str, float], step: int) -> None:
        """Appends numbers by name. Raises OSError if they cannot be written; the file is then unchanged."""
        self._folder.mkdir(parents=True, exist_ok=True)
        opening = self._opening() if self._file.is_empty() else b""
        summary = Summary(value=[Summary.Value(tag=name, simple_value=value) for name, value in values.items()])
        self._file.append(opening + _record(Event(wall_time=time.time(), step=step, summary=summary)))

    def close(self) -> None:
        """Closes the file; idempotent. Raises OSError if the volume reports a write error only now."""
        self._file.close()

    def _opening(self) -> bytes:
        now = time.time()
        version = _record(Event(wall_time=now, file_version="brain.Event:2"))
        if self._settings is None:
            return version
        return version + _record(Event(wall_time=now, summary=_hyperparameters(self._settings, now)))


def _hyperparameters(settings: Mapping[str, Any], start_time_s: float) -> Summary:
    """Encodes as https://github.com/tensorflow/tensorboard/blob/master/tensorboard/plugins/hparams/summary.py does."""
    start = SessionStartInfo(start_time_secs=start_time_s)
    for name, value in settings.items():
        if isinstance(value, bool):
            start.hparams[name].bool_value = value
        elif isinstance(value, (int, float)):
            start.hparams[name].number_value = value
        else:
            start.hparams[name].string_value = value if isinstance(value, str) else json.dumps(value)
    metadata = create_summary_metadata(HParamsPluginData(session_start_info=start))
    return Summary(value=[Summary.Value(tag=SESSION_START_INFO_TAG, metadata=metadata, tensor=NULL_TENSOR)])


def _record(event: Event) -> bytes:
    buffer = io.BytesIO()
    RecordWriter(buffer).write(event.SerializeToString())
    return buffer.getvalue()
