"""Metrics of GPUs are exported; the tests need no GPU."""

from types import SimpleNamespace

import pytest
import torch

from kubebeast_learner.metrics.machine import machine_reader


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    used = {0: 70, 1: 5}
    monkeypatch.setattr(torch.cuda, "device_count", lambda: len(used))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda index: "Test GPU")
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: SimpleNamespace(total_memory=80))
    monkeypatch.setattr(torch.cuda, "device_memory_used", lambda index: used[index])


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
def test_without_the_driver_only_a_gpu_in_use_is_asked(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """A question to another GPU would make a context there, of hundreds of megabytes."""

    def fail(index: int) -> int:
        raise error

    def ask(index: int) -> tuple[int, int]:
        asked.append(index)
        return 75, 80

    asked: list[int] = []
    monkeypatch.setattr(torch.cuda, "utilization", fail)
    monkeypatch.setattr(torch.cuda, "device_memory_used", fail)
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda index: 7 * index)
    monkeypatch.setattr(torch.cuda, "mem_get_info", ask)
    values = machine_reader("run")()
    assert values["gpu_busy"] == {}
    assert values["gpu_used"] == {("1",): 5.0} and values["gpu_total"] == {("1",): 80.0}
    assert asked == [1]


def test_a_machine_without_gpus_tells_of_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    assert machine_reader("run")().keys() == {"build", "run", "start_time_s", "cpu_used_s", "cpus"}
