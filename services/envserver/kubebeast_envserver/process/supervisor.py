"""The streams of an env-server: a process each, replaced when it dies, ended together."""

import multiprocessing
import multiprocessing.connection
import time

from kubebeast_envserver.config import EnvServerConfig
from kubebeast_envserver.process.stream_process import STREAM_GRACE_S, StreamProcess
from kubebeast_envserver.rows.stream_status import StreamStatus
from kubebeast_envserver.stream.exit_code import ExitCode
from kubebeast_envserver.stream.shutdown import Shutdown

_LOOK_EVERY_S = 0.5
"""How often a process is looked at that says nothing: it may hang."""


class Supervisor:
    """Runs num_streams stream processes; for the main thread of a process that holds no gRPC object."""

    def __init__(self, config: EnvServerConfig, shutdown: Shutdown) -> None:
        self._shutdown = shutdown
        self._context = multiprocessing.get_context("spawn")
        self._streams = [StreamProcess(config, index, self._context) for index in range(config.num_streams)]
        self._waits_for = f"a learner on {config.listen}" if config.listen else f"the learner at {config.address}"

    @property
    def statuses(self) -> list[StreamStatus]:
        """Of every stream; live."""
        return [stream.status for stream in self._streams]

    @property
    def num_quarantined(self) -> int:
        """Streams that were given up."""
        return sum(stream.is_quarantined for stream in self._streams)

    def illness(self) -> str:
        """Why the env-server cannot do its work, from any thread; empty while a stream runs or is to run again."""
        return "every stream failed too often" if self.num_quarantined == len(self._streams) else ""

    def unreadiness(self) -> str:
        """Why no stream can play, from any thread; empty while one is connected or can be, and when the run is over."""
        if self._shutdown.is_requested():
            return "shutting down"
        if any(status.connected or status.listening or status.run_finished for status in self.statuses):
            return ""
        return self.illness() or f"no stream is connected: waiting for {self._waits_for}"

    def run(self) -> ExitCode:
        """Blocks until the shutdown, or until a stream ends for good; returns once every process has ended."""
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
                multiprocessing.connection.wait([wake_reader, *sentinels], self._until_next_look())
                for stream in self._streams:
                    stream.kill_if_hung()
                    verdict = stream.reap()
                    if verdict is not None and not self._shutdown.is_requested():
                        return verdict
            return ExitCode.OK
        finally:
            self._stop()
            self._shutdown.on_request = None

    def _until_next_look(self) -> float:
        next_start = min(stream.start_at for stream in self._streams)
        return max(0.0, min(_LOOK_EVERY_S, next_start - time.monotonic()))

    def _stop(self) -> None:
        for stream in self._streams:
            stream.terminate()
        deadline = time.monotonic() + STREAM_GRACE_S
        for stream in self._streams:
            stream.join(max(0.0, deadline - time.monotonic()))
