"""The process of the peer under test, where the suite starts it."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Sequence


class Process:
    """A command of the user's, in a session of its own so that all of it can be ended."""

    def __init__(self, command: Sequence[str], *, show_output: bool) -> None:
        """Raises OSError where it cannot be started."""
        output = None if show_output else subprocess.DEVNULL
        self._process = subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True)

    def terminate(self) -> None:
        """SIGTERM to the command itself."""
        self._process.terminate()

    def wait(self, timeout_s: float) -> int | None:
        """Its exit status; None where it runs on after timeout_s seconds. Blocks."""
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None

    def kill(self) -> None:
        """SIGKILL to all processes of the session. Idempotent; blocks until the command has ended."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
