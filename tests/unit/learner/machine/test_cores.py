"""The number of usable cores is that of the machine, or smaller if a container has a limit."""

import os

import pytest
import torch

from kubebeast_common.process.cpu_time import CpuTime
from kubebeast_learner.machine import cores


@pytest.mark.parametrize(
    ("cpu_time", "expected"),
    [(CpuTime(1.0, 8.0), 8), (CpuTime(1.0, 3.5), 3), (CpuTime(1.0, 0.5), 1), (CpuTime(1.0, 64.0), 8), (None, 8)],
)
def test_a_containers_limit_counts(cpu_time: CpuTime | None, expected: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    monkeypatch.setattr(cores, "read_cpu_time", lambda: cpu_time)

    assert cores.num_cores() == expected


@pytest.mark.parametrize(("free_cores", "expected"), [(-3, 1), (1, 1), (3, 3), (12, 4)])
def test_an_operation_takes_several_cores_only_if_the_learner_computes_on_them(free_cores: int, expected: int) -> None:
    assert cores.num_threads(torch.device("cpu"), free_cores) == expected
    assert cores.num_threads(torch.device("cuda:0"), free_cores) == 1
