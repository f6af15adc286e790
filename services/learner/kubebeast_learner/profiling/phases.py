"""How long the phases of an update take."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, get_args

from kubebeast_common.histogram import SecondsHistogram
from kubebeast_learner.profiling.trace import span

Phase = Literal["to_device", "forward", "backward", "optimizer", "publish"]
PHASES: tuple[Phase, ...] = get_args(Phase)


class PhaseTimes:
    """A histogram of seconds for each phase, which is also a span of the profiler. Written by one thread, read by any.

    Kernels of a GPU are only started in forward; what the device takes shows where the host waits for it, in backward.
    """

    def __init__(self) -> None:
        self.seconds: dict[Phase, SecondsHistogram] = {phase: SecondsHistogram() for phase in PHASES}

    @contextmanager
    def measure(self, phase: Phase) -> Iterator[None]:
        """Around the phase; one that raises does not count."""
        started = time.perf_counter()
        with span(phase):
            yield
        self.seconds[phase].observe(time.perf_counter() - started)
