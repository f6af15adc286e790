"""The tracker of a service: the client of the service has a process of its own.

A client imports hundreds of modules, prints, registers hooks of atexit, starts threads and processes, and may wait for
a server for ever. In a process of its own it costs the learner none of this, and can be killed.
"""

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict
from multiprocessing import Pipe
from pathlib import Path
from typing import Any

from kubebeast_common.backoff import Backoff
from kubebeast_common.process.family import Family
from kubebeast_runs.files.table_file import Value
from kubebeast_runs.trackers.services.options import ServiceOptions
from kubebeast_runs.trackers.tags import tagged_numbers

OUTPUT = "trackers.log"
"""File in the folder of the run with the output of the processes."""
START_S = 120.0
"""Least time limit of the process's start: a client is imported, and may create tables."""


class ServiceTracker:
    """A PatientTracker that starts its process again after it was killed, with delays of up to a minute."""

    def __init__(self, name: str, options: ServiceOptions, folder: Path) -> None:
        """Starts the process, which imports the client of the service. Raises OSError if it cannot be started."""
        self.name = name
        self.patience_s = options.timeout_s
        self.takes_artifacts = options.checkpoints
        self._options, self._folder = options, folder
        self._family = Family()
        self._backoff, self._retry_at, self._reason = Backoff(first_s=2.0, limit_s=60.0), 0.0, ""
        self._meta: Mapping[str, Any] | None = None
        self._has_begun = False
        self._process: subprocess.Popen[bytes] | None = None
        self._start()

    def begin(self, meta: Mapping[str, Any]) -> None:
        self._meta = meta
        self._ensure_begun()

    def log(self, step: int, values: Mapping[str, Value]) -> None:
        self._ensure_begun()
        self._call("log", self.patience_s, step=step, numbers=tagged_numbers(values))

    def artifact(self, step: int, path: Path) -> None:
        self._ensure_begun()
        self._call("artifact", max(START_S, self.patience_s), path=path)

    def end(self, *, successful: bool) -> None:
        try:
            if self._meta is not None:
                self._ensure_begun()
                self._call("end", self.patience_s, successful=successful)
                assert self._process is not None
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(self.patience_s)
        finally:
            self._meta = None
            self._kill()

    def abandon(self) -> None:
        process = self._process
        if process is not None:
            process.kill()  # on systems other than Linux, the family is not found
        self._family.kill()
        if process is not None:
            process.wait()

    def _ensure_begun(self) -> None:
        """Raises OSError if the run of the service cannot begin, or could not a short while ago."""
        if self._has_begun:
            return
        if time.monotonic() < self._retry_at:
            raise OSError(self._reason)
        try:
            if self._process is None:
                self._start()
            self._call("begin", max(START_S, self.patience_s), meta=self._meta)
        except OSError as error:
            self._retry_at, self._reason = time.monotonic() + self._backoff.next_delay_s(), str(error)
            raise
        self._has_begun = True
        self._backoff.reset()

    def _start(self) -> None:
        self._link, theirs = Pipe()
        options = json.dumps(asdict(self._options))
        words = [self.name, str(self._folder), options, str(os.getpid()), str(theirs.fileno())]
        with theirs, open(self._folder / OUTPUT, "ab") as output:
            # -P: a file in the working directory may have the name of a Python module.
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "kubebeast_runs.trackers.services.host", *words],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=[theirs.fileno()],
                env={**os.environ, **self._family.variables},
                start_new_session=True,  # Ctrl-C on the terminal is for the learner
            )

    def _call(self, method: str, timeout_s: float, **arguments: Any) -> None:
        """Raises OSError if the call fails, or if there is no answer in time: the process is then killed."""
        assert self._process is not None
        try:
            self._link.send((method, arguments))
            if not self._link.poll(timeout_s):
                self._kill()
                raise OSError(f"no answer for {timeout_s:.0f} s")
            answer: str = self._link.recv()
        except (EOFError, ConnectionError) as error:
            status = self._process.wait()
            self._kill()
            raise OSError(f"its process ended with status {status} (output in {self._folder / OUTPUT})") from error
        if answer:
            raise OSError(answer)

    def _kill(self) -> None:
        self._has_begun = False
        self.abandon()
        self._process = None
        self._link.close()
