"""The process of the peer under test, if the suite starts it."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Sequence

PATIENCE_S, POLL_S = 2.0, 0.01


class Process:
    """A command of the user in its own session, so that all its processes can be killed."""

    def __init__(self, command: Sequence[str], *, show_output: bool) -> None:
        """Starts the command. Raises OSError if that fails."""
        output = None if show_output else subprocess.DEVNULL
        self._process = subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True)

    def terminate(self) -> None:
        """Sends SIGTERM to the command, not to its children."""
        self._process.terminate()

    def wait(self, timeout_s: float) -> int | None:
        """Returns the exit status; None if the command still runs after timeout_s seconds. Blocks."""
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None

    def kill(self) -> None:
        """Sends SIGKILL to all processes of the session and blocks until the command and, for at most PATIENCE_S
        seconds, its children have ended: a child may have a port that the next process listens on. Idempotent.
        """
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            deadline = time.monotonic() + PATIENCE_S
            while time.monotonic() < deadline:
                os.killpg(self._process.pid, 0)
                time.sleep(POLL_S)
        self._process.wait()
