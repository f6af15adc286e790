"""Durations of the phases of an update."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, get_args

from kubebeast_common.histogram import SecondsHistogram
from kubebeast_learner.profiling.trace import span

Phase = Literal["to_device", "forward", "backward", "optimizer", "publish"]
PHASES: tuple[Phase, ...] = get_args(Phase)


class PhaseTimes:
    """Histogram of seconds for each phase; a phase is also a span of the profiler. One thread writes, any thread reads.

    A GPU's kernels are only started in forward; their time appears in backward, in which the host waits for the device.
    """

    def __init__(self) -> None:
        self.seconds: dict[Phase, SecondsHistogram] = {phase: SecondsHistogram() for phase in PHASES}

    @contextmanager
    def measure(self, phase: Phase) -> Iterator[None]:
        """Context that measures a phase; a phase that raises does not count."""
        started = time.perf_counter()
        with span(phase):
            yield
        self.seconds[phase].observe(time.perf_counter() - started)
