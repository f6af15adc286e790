"""Several streams: one process each, restarted when it dies, ended together."""

import logging
import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import threading
import time
from multiprocessing.context import SpawnProcess

from kubebeast_envserver import log
from kubebeast_envserver.config import EnvServerConfig
from kubebeast_envserver.connection import Backoff
from kubebeast_envserver.failures import FailureWindow
from kubebeast_envserver.shutdown import Shutdown
from kubebeast_envserver.worker import ExitCode, run_stream

logger = logging.getLogger(__name__)

STREAM_GRACE_S = 4.0
"""How long a process may take to end after SIGTERM."""


def stream_main(config: EnvServerConfig, index: int) -> None:
    """Entry of a stream process."""
    log.configure(config.log_level)
    shutdown = Shutdown()
    shutdown.install(STREAM_GRACE_S)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    sys.exit(run_stream(config, index, shutdown))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)


class Supervisor:
    """Runs num_streams stream processes; for the main thread of a process that holds no gRPC object."""

    def __init__(self, config: EnvServerConfig, shutdown: Shutdown) -> None:
        self._config = config
        self._shutdown = shutdown
        self._context = multiprocessing.get_context("spawn")
        self._running: dict[int, SpawnProcess] = {}
        self._restart_at: dict[int, float] = dict.fromkeys(range(config.num_streams), 0.0)
        self._failures = FailureWindow(config.max_failures, config.failure_window_s)
        self._backoff = Backoff()

    def run(self) -> ExitCode:
        """Blocks until the shutdown, or until a stream ends for good; returns once every process has ended."""
        wake_reader, wake_writer = self._context.Pipe(duplex=False)
        self._shutdown.on_request = lambda: wake_writer.send_bytes(b"!")
        try:
            while not self._shutdown.is_requested():
                self._start_due()
                sentinels = [process.sentinel for process in self._running.values()]
                multiprocessing.connection.wait([wake_reader, *sentinels], self._until_next_restart())
                verdict = self._reap()
                if verdict is not None and not self._shutdown.is_requested():
                    return verdict
            return ExitCode.OK
        finally:
            self._stop()
            self._shutdown.on_request = None

    def _start_due(self) -> None:
        now = time.monotonic()
        for index in [index for index, moment in self._restart_at.items() if moment <= now]:
            del self._restart_at[index]
            process = self._context.Process(
                target=stream_main, args=(self._config, index), name=f"{self._config.env_server_id}-{index}"
            )
            process.start()
            self._running[index] = process

    def _until_next_restart(self) -> float | None:
        if not self._restart_at:
            return None
        return max(0.0, min(self._restart_at.values()) - time.monotonic())

    def _reap(self) -> ExitCode | None:
        """Schedules the restart of processes that died; returns the verdict of one that ended for good."""
        for index, process in list(self._running.items()):
            code = process.exitcode
            if code is None:
                continue
            del self._running[index]
            if code > 0:  # the stream has done its own retries, and logged why it ended
                return ExitCode(code) if code in set(ExitCode) else ExitCode.FAILED
            logger.warning("stream process %d died with exit status %d and is restarted", index, code)
            if self._failures.add():
                logger.error("stream processes die too often: giving up")
                return ExitCode.FAILED
            self._restart_at[index] = time.monotonic() + self._backoff.next_delay_s()
        return None

    def _stop(self) -> None:
        for process in self._running.values():
            process.terminate()
        for process in self._running.values():
            process.join()
