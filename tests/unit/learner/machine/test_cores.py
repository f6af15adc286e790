"""The number of usable cores is that of the machine, or smaller if a container has a limit."""

import os

import pytest

from kubebeast_learner.machine import cores
from kubebeast_learner.machine.cpu_time import CpuTime


@pytest.mark.parametrize(
    ("cpu_time", "expected"),
    [(CpuTime(1.0, 8.0), 8), (CpuTime(1.0, 3.5), 3), (CpuTime(1.0, 0.5), 1), (CpuTime(1.0, 64.0), 8), (None, 8)],
)
def test_a_containers_limit_counts(cpu_time: CpuTime | None, expected: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    monkeypatch.setattr(cores, "read_cpu_time", lambda: cpu_time)

    assert cores.num_cores() == expected
