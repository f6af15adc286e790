"""A rank that loses another one ends with its state intact; other errors do not count as a lost rank."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch._C._distributed_c10d import HashStore

from kubebeast_learner.algorithm import Learner
from kubebeast_learner.config import LossConfig, OptimizerConfig
from kubebeast_learner.ranks import group
from kubebeast_learner.ranks.deadline import DeadlineError, deadline
from kubebeast_learner.ranks.gradients import SummedGradients
from kubebeast_learner.ranks.group import RankLostError, ending_waits, sum_over_ranks
from tests.unit.learner.algorithm.learning_data import make_mlp, random_rollout

FOREVER_S = 100.0
"""Longer than any test."""
CLOSED = "[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:547] Connection closed by peer [127.0.0.1]:1234"


@pytest.fixture
def alone_in_a_group() -> Iterator[None]:
    """Opens a process group of this process alone."""
    dist.init_process_group("gloo", store=HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def fail(error: Exception) -> Any:
    def call(*arguments: Any, **options: Any) -> None:
        raise error

    return call


def test_a_wait_that_takes_too_long_is_aborted() -> None:
    kernel_ends = threading.Event()
    with pytest.raises(DeadlineError, match=r"no answer for 0\.01 s"), deadline(0.01, kernel_ends.set):
        assert kernel_ends.wait(FOREVER_S)


def test_the_deadline_is_the_reason_whatever_the_wait_raises() -> None:
    kernel_ends = threading.Event()

    def wait() -> None:
        kernel_ends.wait(FOREVER_S)
        raise RuntimeError("the communicator was aborted")

    with pytest.raises(DeadlineError), deadline(0.01, kernel_ends.set):
        wait()


def test_what_ends_in_time_is_left_alone() -> None:
    aborted: list[bool] = []
    with deadline(FOREVER_S, lambda: aborted.append(True)):
        pass
    with pytest.raises(ValueError, match="its own"), deadline(FOREVER_S, lambda: aborted.append(True)):
        raise ValueError("its own")
    assert not aborted


def test_a_rank_whose_gpu_waits_for_a_lost_one_ends_with_its_state_intact(monkeypatch: pytest.MonkeyPatch) -> None:
    """NCCL's kernels wait without end; an event that the group's abort sets replaces them."""
    group_ends = threading.Event()
    monkeypatch.setattr(group, "waits_without_end", lambda device: True)
    monkeypatch.setattr(group, "abort_group", group_ends.set)
    monkeypatch.setattr(group, "_timeout_s", 0.01)
    learner = Learner(make_mlp(), OptimizerConfig(), LossConfig(), schedule_steps=1000)
    before = {name: tensor.clone() for name, tensor in learner.model.state_dict().items()}
    norm = torch.nn.utils.get_total_norm

    def wait_for_kernels(gradients: Any) -> torch.Tensor:
        assert group_ends.wait(FOREVER_S)
        return norm(gradients)

    monkeypatch.setattr(torch.nn.utils, "get_total_norm", wait_for_kernels)
    with pytest.raises(RankLostError, match=r"gone or was silent for too long: no answer for 0\.01 s"):
        learner.update(random_rollout(), 0)
    torch.testing.assert_close(dict(learner.state_dict()["model"]), before, rtol=0, atol=0)
    assert learner.version == 0


def test_waits_on_a_cpu_and_of_one_that_is_alone_have_no_deadline() -> None:
    threads = threading.active_count()
    with ending_waits(torch.device("cpu")), ending_waits(torch.device("cuda")):
        assert threading.active_count() == threads


@pytest.mark.parametrize("where", ["forward", "backward"])
@pytest.mark.parametrize("text", ["mat1 and mat2 shapes cannot be multiplied", "CUDA out of memory"])
@pytest.mark.parametrize("has_group", [False, True])
def test_other_errors_of_an_update_are_what_they_are(
    where: str, text: str, has_group: bool, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    if has_group:
        request.getfixturevalue("alone_in_a_group")
    learner = Learner(make_mlp(), OptimizerConfig(), LossConfig(), schedule_steps=1000)
    target: Any = torch.Tensor if where == "backward" else learner._steps
    monkeypatch.setattr(target, "backward" if where == "backward" else "_loss", fail(RuntimeError(text)))
    with pytest.raises(RuntimeError, match=text) as caught:
        learner.update(random_rollout(), 0)
    assert not isinstance(caught.value, RankLostError)


@pytest.mark.usefixtures("alone_in_a_group")
@pytest.mark.parametrize("error", [RuntimeError("any"), dist.DistBackendError("NCCL error: remote process exited")])
def test_a_sum_of_gradients_that_fails_is_a_lost_rank(error: RuntimeError, monkeypatch: pytest.MonkeyPatch) -> None:
    learner = Learner(make_mlp(), OptimizerConfig(), LossConfig(), schedule_steps=1000)
    monkeypatch.setattr(dist, "all_reduce", fail(error))
    with pytest.raises(RankLostError, match=f"another rank is gone or was silent for too long: {error}"):
        learner.update(random_rollout(), 0)


@pytest.mark.usefixtures("alone_in_a_group")
def test_a_connection_that_is_closed_is_a_lost_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    model = make_mlp()
    gradients: SummedGradients[torch.Tensor] = SummedGradients(model, fail(RuntimeError(CLOSED)))
    with pytest.raises(RankLostError, match="Connection closed by peer"):
        gradients()
    monkeypatch.setattr(dist, "all_reduce", fail(RuntimeError(CLOSED)))
    with pytest.raises(RankLostError, match="Connection closed by peer"):
        sum_over_ranks(torch.zeros(1))
