"""Supervisor of the streams of an env-server: a process for each, replaced if it dies; all end together."""

import multiprocessing
import multiprocessing.connection
import time

from kubebeast_common.process.family import Adopted, adopt_orphans, kill_descendants
from kubebeast_envserver.config import EnvServerConfig
from kubebeast_envserver.process.stream_process import STREAM_GRACE_S, StreamProcess
from kubebeast_envserver.rows.stream_status import StreamStatus
from kubebeast_envserver.stream.exit_code import ExitCode
from kubebeast_envserver.stream.shutdown import Shutdown

_LOOK_EVERY_S = 0.5
"""Seconds between checks for hung processes."""
_NUM_REQUESTS = 8
"""SIGTERMs that a process gets within STREAM_GRACE_S: Python handles one that arrives just before a blocking call after
that call, which may be never, while the next one interrupts the call.
"""


class Supervisor:
    """Supervisor of num_streams stream processes. For the main thread of a process that has no gRPC objects and no
    other children.
    """

    def __init__(self, config: EnvServerConfig, shutdown: Shutdown) -> None:
        self._shutdown = shutdown
        self._context = multiprocessing.get_context("spawn")
        self._streams = [StreamProcess(config, index, self._context) for index in range(config.num_streams)]
        self._adopted = Adopted()
        self._waits_for = f"a learner on {config.listen}" if config.listen else f"the learner at {config.address}"

    @property
    def statuses(self) -> list[StreamStatus]:
        """Live status of each stream."""
        return [stream.status for stream in self._streams]

    @property
    def num_quarantined(self) -> int:
        """Number of streams that were given up."""
        return sum(stream.is_quarantined for stream in self._streams)

    def illness(self) -> str:
        """Returns the reason that no stream can run; empty while one runs or will run again. From any thread."""
        return "every stream failed too often" if self.num_quarantined == len(self._streams) else ""

    def unreadiness(self) -> str:
        """Returns the reason that no stream can play; empty while one is connected or can be, and if the run is over.
        From any thread.
        """
        if self._shutdown.is_requested():
            return "shutting down"
        if any(status.connected or status.listening or status.run_finished for status in self.statuses):
            return ""
        return self.illness() or f"no stream is connected: waiting for {self._waits_for}"

    def run(self) -> ExitCode:
        """Blocks until the shutdown, or until a stream ends for good.

        Returns once every process has ended, including those that environments have started.
        """
        adopt_orphans()
        wake_reader, wake_writer = self._context.Pipe(duplex=False)
        self._shutdown.on_request = lambda: wake_writer.send_bytes(b"!")
        try:
            while not self._shutdown.is_requested():
                if self.illness():
                    has_played = any(status.env_steps for status in self.statuses)
                    return ExitCode.FAILED if has_played else ExitCode.USAGE
                for stream in self._streams:
                    stream.start_if_due()
                sentinels = [stream.sentinel for stream in self._streams if stream.sentinel is not None]
                ready = multiprocessing.connection.wait([wake_reader, *sentinels], self._until_next_look())
                for stream in self._streams:
                    stream.kill_if_hung()
                    verdict = stream.reap(stream.sentinel in ready, self._new_orphans)
                    if verdict is not None and not self._shutdown.is_requested():
                        return verdict
                self._adopted.look(self._pids())
            return ExitCode.OK
        finally:
            self._stop()
            self._shutdown.on_request = None

    def _new_orphans(self) -> set[int]:
        return self._adopted.new(self._pids())

    def _pids(self) -> set[int]:
        return {stream.pid for stream in self._streams if stream.pid is not None}

    def _until_next_look(self) -> float:
        next_start = min(stream.start_at for stream in self._streams)
        return max(0.0, min(_LOOK_EVERY_S, next_start - time.monotonic()))

    def _stop(self) -> None:
        for _ in range(_NUM_REQUESTS):
            for stream in self._streams:
                stream.terminate()
            next_request = time.monotonic() + STREAM_GRACE_S / _NUM_REQUESTS
            for stream in self._streams:
                stream.wait(max(0.0, next_request - time.monotonic()))
        for stream in self._streams:
            stream.kill()
        kill_descendants()
