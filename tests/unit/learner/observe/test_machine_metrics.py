"""Metrics of GPUs are exported; the tests need no GPU."""

import pytest
import torch

from kubebeast_learner.observe.metrics.machine import machine_reader


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = {0: (10, 80), 1: (75, 80)}
    monkeypatch.setattr(torch.cuda, "device_count", lambda: len(memory))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda index: "Test GPU")
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda index: memory[index])


@pytest.mark.usefixtures("two_gpus")
def test_each_gpu_tells_its_memory_and_how_busy_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "utilization", lambda index: 50 + index)
    values = machine_reader("run")()
    assert values["gpu_used"] == {("0",): 70.0, ("1",): 5.0}
    assert values["gpu_total"] == {("0",): 80.0, ("1",): 80.0}
    assert values["gpu_busy"] == {("0",): 0.5, ("1",): 0.51}


@pytest.mark.usefixtures("two_gpus")
@pytest.mark.parametrize(
    "error",
    [
        ModuleNotFoundError("nvidia-ml-py"),
        RuntimeError("the driver does not tell"),
        Exception("of NVML, whose errors have no other base: not supported on a part of a GPU"),
    ],
)
def test_without_a_way_to_ask_only_the_busy_share_is_missing(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fail(index: int) -> int:
        raise error

    monkeypatch.setattr(torch.cuda, "utilization", fail)
    values = machine_reader("run")()
    assert values["gpu_busy"] == {}
    assert values["gpu_used"] == {("0",): 70.0, ("1",): 5.0}


def test_a_machine_without_gpus_tells_of_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    assert machine_reader("run")().keys() == {"build", "run", "start_time_s", "cpu_used_s", "cpus"}
