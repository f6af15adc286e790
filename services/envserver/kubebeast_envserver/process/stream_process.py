"""Process of one stream: started, watched, replaced if it dies or hangs, given up after too many failures."""

import atexit
import faulthandler
import logging
import math
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable
from functools import partial
from multiprocessing.context import SpawnContext, SpawnProcess

from kubebeast_common import log
from kubebeast_common.backoff import Retries
from kubebeast_common.process.family import Family, has_started, kill_own_family
from kubebeast_common.process.leaving import leave_with_parent
from kubebeast_common.process.output import outlive_full_volume
from kubebeast_common.process.verdict import end_with
from kubebeast_common.process.waiting import wait_for_end
from kubebeast_common.text import replace_what_cannot_be_shown
from kubebeast_envserver.config import EnvServerConfig
from kubebeast_envserver.faults.hang_watch import HangWatch, end_process, say_where_when_asked
from kubebeast_envserver.rows.stream_status import StreamStatus
from kubebeast_envserver.stream.exit_code import ExitCode
from kubebeast_envserver.stream.shutdown import Shutdown

logger = logging.getLogger(__name__)

STREAM_GRACE_S = 4.0
"""Seconds that a process may take to end after SIGTERM."""
_MOST_FALSE_ALARMS = 100
"""Tolerated false alarms: a process that ends closes its sentinel a moment before its status is available."""


def stream_main(config: EnvServerConfig, index: int, status: StreamStatus) -> None:
    """Entry point of a stream process."""
    end_with(lambda: status.verdict - 1 if status.verdict else None)
    replace_what_cannot_be_shown()
    outlive_full_volume()
    atexit.register(kill_own_family)
    log.configure(config.log_level, config.log_format)
    shutdown = Shutdown()
    shutdown.install(STREAM_GRACE_S, last=kill_own_family)
    has_started()
    faulthandler.enable()
    say_where_when_asked()
    if (parent := multiprocessing.parent_process()) is not None and parent.pid is not None:
        leave_with_parent(
            parent.pid, STREAM_GRACE_S + 1.0, ask=partial(os.kill, os.getpid(), signal.SIGTERM), last=kill_own_family
        )
    # gRPC reads it at import. By default each failed TLS handshake logs an error, and a peer can repeat it forever.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    from kubebeast_envserver.process.worker import run_stream  # the supervisor needs none of its imports

    try:
        code = run_stream(config, index, shutdown, status)
    except Exception:  # multiprocessing would print it outside the log
        logger.exception("the process of stream %d failed", index)
        sys.exit(1)
    status.verdict = code + 1  # an exit status alone might come from an environment that calls exit
    sys.exit(code)


class StreamProcess:
    """Stream `index` of an env-server over the lives of its processes. For one thread. Only `wait` and `kill` block."""

    def __init__(self, config: EnvServerConfig, index: int, context: SpawnContext) -> None:
        self.status: StreamStatus = context.RawValue(StreamStatus)
        """Written by the process; may be read from any thread."""
        self._config = config
        self._index = index
        self._context = context
        self._process: SpawnProcess | None = None
        self._family = Family()
        self._retries = Retries(config.fault_policy)
        self._steps_before = 0
        """env_steps of the status at the end of the previous process."""
        self._was_started = False
        self._hang_watch = HangWatch(config.env_timeout_s)
        self._num_false_alarms = 0
        self._ends_by = math.inf
        """time.monotonic() after which a process that has given its verdict is killed: threads of an environment may
        keep it running.
        """
        self.start_at = 0.0
        """time.monotonic() of the next start; inf while a process runs, and in quarantine."""
        self.is_quarantined = False
        """True if the stream was given up; may be read from any thread."""

    @property
    def sentinel(self) -> int | None:
        """Handle that becomes readable when the process ends (multiprocessing.connection.wait), or when an environment
        closes a descriptor that it does not own.

        None while no process runs, and after many false alarms.
        """
        if self._process is None or self._num_false_alarms > _MOST_FALSE_ALARMS:
            return None
        return self._process.sentinel

    @property
    def pid(self) -> int | None:
        """Id of the process; None while none runs."""
        return None if self._process is None else self._process.pid

    def start_if_due(self) -> None:
        now = time.monotonic()
        if now < self.start_at:
            return
        if self._was_started:
            self.status.stream_restarts += 1
        self._was_started, self.start_at = True, math.inf
        self._hang_watch.forget()
        self._num_false_alarms = 0
        self._ends_by = math.inf
        self.status.instance_id = ""
        process = self._context.Process(
            target=stream_main,
            args=(self._config, self._index, self.status),
            name=f"{self._config.env_server_id}-{self._index}",
        )
        try:
            with self._family.starting():
                process.start()
        except OSError as error:
            self._replace(f"could not be started: {error}")
        else:
            self._process = process

    def kill_if_hung(self) -> None:
        """Kills a process that does not end after its verdict; also a hung one, after it has printed its traceback."""
        if self._process is not None and self._process.pid is not None:
            self._family.look(self._process.pid)
        if self._process is not None and self.status.verdict:
            self._ends_by = min(self._ends_by, time.monotonic() + STREAM_GRACE_S)
            if time.monotonic() >= self._ends_by:
                self._process.kill()
        elif self._process is not None and self._hang_watch.look(self._process, self.status):
            text = "stream %d: its environments computed for more than env_timeout_s = %g s: killed"
            self._log(logging.ERROR, text, self._index, self._config.env_timeout_s)

    def reap(self, is_alarmed: bool, orphans: Callable[[], Iterable[int]]) -> ExitCode | None:
        """Handles a process that has ended: schedules the next start, or quarantines the stream, or returns the
        ExitCode with which the stream ended for good. Kills the processes that its environments have started.

        `is_alarmed` is True if `sentinel` is readable. `orphans` returns the ids of processes that this process has
        just adopted.
        """
        code = None if self._process is None else self._process.exitcode
        if code is None:
            self._num_false_alarms += is_alarmed
            return None
        verdict = ExitCode(self.status.verdict - 1) if self.status.verdict else None
        self._family.kill(orphans())
        self._process = None
        self.status.forget_process()
        if verdict in (ExitCode.USAGE, ExitCode.REFUSED, ExitCode.UNREACHABLE):
            return verdict  # the stream has logged the reason
        if verdict == ExitCode.OK and self._config.max_steps:
            return verdict
        if verdict == ExitCode.FAILED:
            self._quarantine()
            return None
        if verdict is None and not self._hang_watch.is_killing:
            self.status.count_failure("process")
        self._replace(f"ended with exit status {code}")
        return None

    def terminate(self) -> None:
        """Requests the shutdown of the process, unless it is ending: its last hooks would not survive the signal."""
        if self._process is not None and not self.status.verdict:
            self._process.terminate()

    def wait(self, timeout_s: float) -> None:
        """Blocks until the process has ended, for at most timeout_s seconds."""
        if self._process is not None and self._process.pid is not None and self._process.exitcode is None:
            wait_for_end(self._process.pid, timeout_s)

    def kill(self) -> None:
        """Kills the process unless it has ended, and blocks until then."""
        if self._process is not None:
            end_process(self._process, 0.0)

    def _replace(self, what: str) -> None:
        num_steps = self.status.env_steps - self._steps_before
        self._steps_before = self.status.env_steps
        delay_s = self._retries.note_failure(num_steps // self._config.envs_per_stream)
        if delay_s is None:
            self._log(logging.ERROR, "the process of stream %d %s", self._index, what)
            self._quarantine()
            return
        text = "the process of stream %d %s and is replaced in %.1f s"
        self._log(logging.WARNING, text, self._index, what, delay_s)
        self.start_at = time.monotonic() + delay_s

    def _quarantine(self) -> None:
        self._log(logging.ERROR, "stream %d is given up", self._index)
        self.start_at = math.inf
        self.is_quarantined = True

    def _log(self, level: int, text: str, *values: object) -> None:
        """Logs with the ids of the process, as the process itself would."""
        names = log.fields(run_id=self.status.run_id, instance_id=self.status.instance_id)
        logger.log(level, text, *values, extra=names)
