"""A run as a process of this machine, with cores of its own."""

import os
from collections.abc import Collection, Sequence
from pathlib import Path

from kubebeast_sweep.processes.tied import last_lines, start_tied
from kubebeast_sweep.scores import Curve


class RunProcess:
    """A TrainingRun."""

    def __init__(self, command: Sequence[str], folder: Path, cores: Collection[int]) -> None:
        """Starts `kubebeast COMMAND` on `cores`. Its output is added to a file beside `folder`, that of the run.

        Raises OSError.
        """
        self.folder, self.cores = folder, tuple(sorted(cores))
        self.curve = Curve(folder)
        self._output = folder.with_suffix(".txt")
        self._process = start_tied(command, self.cores, self._output)
        self.cpu_s = 0.0
        """CPU time of the process and its children; 0 until its end."""

    def poll(self) -> int | None:
        """Returns the exit status, or None as long as the process lives. Does not block."""
        return self._process.returncode if self._process.returncode is not None else self._wait(os.WNOHANG)

    def stop(self) -> None:
        """Asks the process to end. It saves a checkpoint first."""
        if self.poll() is None:
            self._process.terminate()

    def wait(self) -> None:
        """Blocks until the process has ended."""
        while self.poll() is None:
            self._wait(0)

    def last_lines(self) -> str:
        """Returns the end of the output."""
        return last_lines(self._output)

    def _wait(self, options: int) -> int | None:
        """Waits by wait4, which alone has the CPU time of one child."""
        pid, status, usage = os.wait4(self._process.pid, options)
        if pid == 0:
            return None
        self._process.returncode = os.waitstatus_to_exitcode(status)
        self.cpu_s = usage.ru_utime + usage.ru_stime
        return self._process.returncode
