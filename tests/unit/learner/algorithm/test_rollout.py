"""Native batches become tensors without a copy and without a change."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from kubebeast_learner.algorithm.rollout import rollout_from_native
from tests.unit.learner.algorithm.learning_data import make_mlp, random_rollout

T, B, A = 3, 2, 4


@dataclass
class FakeRolloutBatch:
    """A kubebeast_native.RolloutBatch of the VECTOR leaf."""

    core_state: NDArray[np.float32]
    observation: list[NDArray[Any]] = field(default_factory=lambda: [np.random.rand(T + 1, B, 5).astype(np.float32)])
    rewards: NDArray[np.float32] = field(default_factory=lambda: np.random.rand(T + 1, B).astype(np.float32))
    terminated: NDArray[np.bool_] = field(default_factory=lambda: np.random.rand(T + 1, B) < 0.5)
    truncated: NDArray[np.bool_] = field(default_factory=lambda: np.random.rand(T + 1, B) < 0.5)
    is_first: NDArray[np.bool_] = field(default_factory=lambda: np.random.rand(T + 1, B) < 0.5)
    last_actions: list[NDArray[Any]] = field(
        default_factory=lambda: [np.random.randint(A, size=(T + 1, B), dtype=np.int32)]
    )
    actions: list[NDArray[Any]] = field(default_factory=lambda: [np.random.randint(A, size=(T, B), dtype=np.int32)])
    policy_logits: NDArray[np.float32] = field(default_factory=lambda: np.random.rand(T, B, A).astype(np.float32))
    policy_version: NDArray[np.int64] = field(default_factory=lambda: np.arange(T * B).reshape(T, B))
    valid: NDArray[np.bool_] = field(default_factory=lambda: np.random.rand(T, B) < 0.5)
    task: NDArray[np.int64] = field(default_factory=lambda: np.arange(B))
    origin: NDArray[np.int64] = field(default_factory=lambda: np.arange(3 * B).reshape(3, B))
    frame_index: list[NDArray[np.int32]] = field(default_factory=list)


def test_every_array_arrives_under_its_name() -> None:
    model = make_mlp(A, use_lstm=True)
    state = np.random.rand(B, model.core_state_size).astype(np.float32)
    batch = FakeRolloutBatch(core_state=state)
    rollout = rollout_from_native(batch, model)  # type: ignore[arg-type]
    for name in (
        "rewards",
        "terminated",
        "truncated",
        "is_first",
        "policy_logits",
        "policy_version",
        "valid",
        "origin",
    ):
        np.testing.assert_array_equal(getattr(rollout, name).numpy(), getattr(batch, name), err_msg=name)
    np.testing.assert_array_equal(rollout.observation[0].numpy(), batch.observation[0])
    np.testing.assert_array_equal(rollout.action.numpy(), batch.actions[0])
    np.testing.assert_array_equal(rollout.last_action.numpy(), batch.last_actions[0])
    assert rollout.action.dtype == rollout.last_action.dtype == torch.int64
    np.testing.assert_array_equal(model.pack_core_state(rollout.core_state).numpy(), state)
    assert (rollout.unroll_length, rollout.batch_size) == (T, B)


def test_observations_are_views_of_native_memory() -> None:
    batch = FakeRolloutBatch(core_state=np.zeros((B, 0), np.float32))
    rollout = rollout_from_native(batch, make_mlp(A))  # type: ignore[arg-type]
    assert rollout.observation[0].data_ptr() == batch.observation[0].ctypes.data
    assert rollout.core_state == ()


def test_model_inputs_are_all_rows() -> None:
    batch = FakeRolloutBatch(core_state=np.zeros((B, 0), np.float32))
    inputs = rollout_from_native(batch, make_mlp(A)).model_inputs  # type: ignore[arg-type]
    np.testing.assert_array_equal(inputs.reward.numpy(), batch.rewards)
    np.testing.assert_array_equal(inputs.is_first.numpy(), batch.is_first)
    np.testing.assert_array_equal(inputs.last_action.numpy(), batch.last_actions[0])


def test_a_model_of_several_tasks_is_told_those_of_the_unrolls() -> None:
    model, batch = make_mlp(A), FakeRolloutBatch(core_state=np.zeros((B, 0), np.float32))
    assert rollout_from_native(batch, model).task is None  # type: ignore[arg-type]
    model.num_tasks = 2
    task = rollout_from_native(batch, model).task  # type: ignore[arg-type]
    assert task is not None and task.tolist() == [[0, 1]]


def test_steps_of_tasks_are_the_valid_ones_that_were_not_replayed() -> None:
    valid = torch.tensor([[True, True, False, True], [True, False, True, True]])
    rollout = random_rollout(2, 4, task=torch.tensor([[1, 0, 1, 1]]), valid=valid)
    assert rollout.steps_of_tasks(3) == [1, 5, 0]
    assert replace(rollout, num_replayed=1).steps_of_tasks(3) == [1, 3, 0]
    assert random_rollout().steps_of_tasks(0) == []
