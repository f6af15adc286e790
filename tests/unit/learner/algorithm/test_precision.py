"""Arithmetic that repeats its results."""

import os
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
import torch

from kubebeast_learner.algorithm.precision import choose_fastest_convolutions, has_bf16_arithmetic, repeat_results


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Restores the settings of this process."""
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    monkeypatch.setattr(torch.backends.cudnn, "benchmark", False)
    monkeypatch.setattr(torch.utils.deterministic, "fill_uninitialized_memory", True)
    yield
    torch.use_deterministic_algorithms(False)
    os.environ.pop("CUBLAS_WORKSPACE_CONFIG", None)


def test_a_run_that_repeats_its_results_tries_no_other_convolutions() -> None:
    choose_fastest_convolutions()
    assert torch.backends.cudnn.benchmark

    repeat_results()
    choose_fastest_convolutions()

    assert not torch.backends.cudnn.benchmark


def test_the_arithmetic_of_a_gpu_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    majors = {0: 9, 1: 7}  # https://developer.nvidia.com/cuda-gpus: an H100 beside a T4
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: SimpleNamespace(major=majors[device.index]))

    assert has_bf16_arithmetic(torch.device("cuda:0"))
    assert not has_bf16_arithmetic(torch.device("cuda:1"))


def test_operations_without_a_repeatable_form_are_warned_of_and_run() -> None:
    repeat_results()
    assert torch.is_deterministic_algorithms_warn_only_enabled()
    assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"

    with pytest.warns(UserWarning, match="does not have a deterministic implementation"):
        torch.ones(4).put_(torch.tensor([0, 0]), torch.ones(2))
