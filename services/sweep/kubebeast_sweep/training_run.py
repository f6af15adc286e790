"""One run of a sweep, a training with a folder of its own, wherever it trains."""

import signal
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Protocol

from kubebeast_sweep.scores import Curve

STOPPED = 128 + signal.SIGTERM
"""Exit status of a run that a signal has stopped before its end."""
ANY_RUN = "*-seed*"
"""Pattern of the names of runs."""


def run_name(trial: int, seed: int) -> str:
    """Returns the name of a run, which is that of its folder."""
    return f"{trial:03d}-seed{seed}"


class TrainingRun(Protocol):
    """A training that has been started. Not thread-safe."""

    @property
    def folder(self) -> Path: ...

    @property
    def curve(self) -> Curve: ...

    @property
    def cores(self) -> Collection[int]:
        """The place of the run: cores of its own, or none."""
        ...

    @property
    def cpu_s(self) -> float | None:
        """CPU time of the training, in seconds, once it has ended; None if it is not known."""
        ...

    def poll(self) -> int | None:
        """Returns the exit status, or None as long as the training goes on."""
        ...

    def stop(self) -> None:
        """Asks the training to end. It saves a checkpoint first. Does not block for that."""
        ...

    def wait(self) -> None:
        """Blocks until the place of the run is free."""
        ...

    def last_lines(self) -> str:
        """Returns the end of the output, as the reason of a failure."""
        ...


Launch = Callable[[Sequence[str], Path, Collection[int]], TrainingRun]
"""Function from the arguments of `kubebeast`, the folder of the run and its place to a run. May raise OSError."""
