"""Trace of a few updates of a run, for Perfetto (ui.perfetto.dev) and chrome://tracing.

The file has the Chrome trace format: torch's operators of all threads, in the spans dequeue, to_device, forward,
backward, optimizer, publish and inference.
"""

import contextlib
import json
import logging
import os
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol, Self

from torch._C._profiler import _ExperimentalConfig
from torch.profiler import profile, record_function

from kubebeast_common.atomic_file import write_atomically

logger = logging.getLogger(__name__)

SKIPPED_UPDATES = 10
"""Updates before the recording: the first ones compile, allocate and wait for environments."""
RECORDED_UPDATES = 20

_NO_SPAN = contextlib.nullcontext()
_is_recording = False


def span(name: str) -> AbstractContextManager[object]:
    """Returns the context of a named span of the trace, for any thread; almost free if nothing is recorded."""
    return record_function(name) if _is_recording else _NO_SPAN


class Window(Protocol):
    """Flag of a recording in all processes of a run, such as an event of threading or multiprocessing."""

    def is_set(self) -> bool: ...
    def set(self) -> None: ...
    def clear(self) -> None: ...


class Profiler:
    """Records RECORDED_UPDATES updates of the learner's process, once, to `trace.json`. For one thread.

    A context manager: a recording that the end of the run cuts short is written, too.
    """

    def __init__(self, enabled: bool, folder: Path, window: Window | None = None) -> None:
        """`folder` is that of the run. `window` signals the recording to the ProfilerFollowers of other processes."""
        self._enabled = enabled
        self._recording = _Recording(folder / "trace.json", "learner")
        self._window = window or threading.Event()
        self._num_updates = 0

    def step(self) -> None:
        """Counts an update; must be called after each. Blocks for about a second when the recording ends."""
        if not self._enabled:
            return
        self._num_updates += 1
        if self._num_updates == SKIPPED_UPDATES:
            self._recording.start()
            self._window.set()
        elif self._num_updates == SKIPPED_UPDATES + RECORDED_UPDATES:
            self._stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._recording.is_running:
            self._stop()
        elif self._enabled and self._num_updates < SKIPPED_UPDATES:
            logger.warning("no trace: the run ended before update %d", SKIPPED_UPDATES)

    def _stop(self) -> None:
        self._window.clear()
        if (path := self._recording.stop()) is not None:
            logger.info("trace of %d updates: %s", self._num_updates - SKIPPED_UPDATES, path)


class ProfilerFollower:
    """Records another process of the run while the learner records, to `trace-<process>.json`. For one thread."""

    def __init__(self, window: Window | None, folder: Path, process: str) -> None:
        """`window` is that of the Profiler, or None to record nothing; `process` is a display name, e.g. actor-3."""
        self._window = window
        self._recording = _Recording(folder / f"trace-{process}.json", process)

    def step(self) -> None:
        """Starts or stops the recording; must be called regularly, e.g. for every step of the environments."""
        if self._window is None or self._window.is_set() == self._recording.is_running:
            return
        if self._recording.is_running:
            self._recording.stop()
        else:
            self._recording.start()


def merge_traces(main: Path, others: Sequence[Path]) -> None:
    """Moves the traces of other processes into `main`, on its clock; the files `others` are deleted.

    An unreadable trace is left out with a warning. Raises OSError or ValueError if `main` cannot be read or written.
    """
    trace = _read(main)
    merged: list[Path] = []
    for path in others:
        try:
            other = _read(path)
        except (OSError, ValueError) as error:
            logger.warning("trace %s left out: %s", path, error)
            continue
        shift_us = (other["baseTimeNanoseconds"] - trace["baseTimeNanoseconds"]) / 1000
        for event in other["traceEvents"]:
            trace["traceEvents"].append(event | {"ts": event["ts"] + shift_us} if "ts" in event else event)
        merged.append(path)
    _write(main, trace)
    for path in merged:
        path.unlink()


class _Recording:
    """Recording of all threads of the calling process. The trace names the process and Python's threads."""

    def __init__(self, path: Path, process: str) -> None:
        self._path = path
        self._process = process
        self._profile: profile | None = None

    @property
    def is_running(self) -> bool:
        return self._profile is not None

    def start(self) -> None:
        global _is_recording
        self._profile = profile(experimental_config=_ExperimentalConfig(profile_all_threads=True))
        self._profile.start()
        _is_recording = True

    def stop(self) -> Path | None:
        """Returns the file, or None, with an error in the log, if writing fails: a trace is no reason to end a run."""
        global _is_recording
        assert self._profile is not None
        _is_recording = False
        self._profile.stop()
        try:
            self._profile.export_chrome_trace(str(self._path))
            trace = _read(self._path)
            _name_threads(trace, self._process)
            _write(self._path, trace)
        except (OSError, RuntimeError, ValueError) as error:  # torch may write a part without an error
            logger.error("trace %s not written: %s", self._path, error)
            with contextlib.suppress(OSError):
                self._path.unlink(missing_ok=True)
            return None
        finally:
            self._profile = None
        return self._path


def _name_threads(trace: dict[str, Any], process: str) -> None:
    threads = {thread.native_id: thread.name for thread in threading.enumerate()}
    for event in trace["traceEvents"]:
        if event["ph"] != "M" or event["pid"] != os.getpid():
            continue
        if event["name"] == "process_name":
            event["args"]["name"] = process
        elif event["name"] == "thread_name" and event["tid"] in threads:
            event["args"]["name"] = threads[event["tid"]]


def _read(path: Path) -> dict[str, Any]:
    trace = json.loads(path.read_bytes())
    if not isinstance(trace, dict) or not {"traceEvents", "baseTimeNanoseconds"} <= trace.keys():
        raise ValueError(f"{path} is not a trace of torch's profiler")
    return trace


def _write(path: Path, trace: dict[str, Any]) -> None:
    write_atomically(path, json.dumps(trace, separators=(",", ":")).encode())
