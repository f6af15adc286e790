"""Experience replay stores and draws unrolls by its rules, and returns them intact."""

from dataclasses import fields, replace

import pytest
import torch

from kubebeast_learner.algorithm.options.replay import ReplayBuffer, make_replay
from kubebeast_learner.algorithm.rollout import Rollout, map_tensors
from kubebeast_learner.config import ConfigError, ReplayConfig
from tests.unit.learner.algorithm.learning_data import loss_of, make_mlp, random_rollout

T = 5


def marked_rollout(first: int, batch_size: int = 2) -> Rollout:
    """Returns a rollout in which every tensor of unroll i is filled with i, counted from `first`."""
    marks = first + torch.arange(batch_size)
    core_state = (torch.zeros(1, batch_size, 4), torch.zeros(2, batch_size, 3))
    task = torch.zeros(1, batch_size, dtype=torch.int64)
    rollout = random_rollout(T, batch_size, core_state=core_state, task=task)

    def mark(tensor: torch.Tensor) -> torch.Tensor:
        return (torch.zeros_like(tensor).transpose(1, -1) + marks.to(tensor.dtype)).transpose(1, -1).contiguous()

    return replace(map_tensors(mark, rollout), valid=rollout.valid, terminated=rollout.terminated)


def marks(rollout: Rollout) -> list[int]:
    """Returns the mark of every unroll; fails if the tensors of one unroll disagree."""
    found: list[list[int]] = []
    assert rollout.task is not None
    tensors = [
        rollout.task,
        *rollout.observation,
        *rollout.core_state,
        rollout.rewards,
        rollout.last_action,
        rollout.action,
    ]
    for tensor in [*tensors, rollout.policy_logits, rollout.policy_version]:
        columns = tensor.transpose(0, 1).flatten(1)
        assert (columns == columns[:, :1]).all()
        found.append([int(column[0]) for column in columns])
    assert all(each == found[0] for each in found)
    return found[0]


def test_unrolls_that_nothing_could_be_learnt_from_are_not_replayed() -> None:
    buffer = ReplayBuffer(capacity=4, num_replayed=8, seed=0)
    buffer.mix(marked_rollout(1))
    spoilt = marked_rollout(3)
    spoilt.observation[0][:] = torch.nan
    buffer.mix(spoilt)
    buffer.forget_fresh()
    rollout = random_rollout(T, 2, core_state=spoilt.core_state, task=spoilt.task)
    mixed = buffer.mix(rollout)
    assert mixed.observation[0].isfinite().all()
    buffer.forget_fresh()
    for _ in range(3):
        assert not buffer.mix(marked_rollout(0)).observation[0].isnan().any()


def test_an_unroll_that_was_forgotten_adds_nothing_to_a_loss() -> None:
    model, buffer = make_mlp(), ReplayBuffer(capacity=2, num_replayed=4, seed=0)
    buffer.mix(random_rollout(T, 2))
    buffer.forget_fresh()
    rollout = buffer.mix(random_rollout(T, 1, seed=1))
    alone = random_rollout(T, 1, seed=1)
    output, _ = model(rollout.model_inputs, ())
    replays = int((rollout.valid[:, 1:].any(dim=0)).sum())
    expected, _ = model(alone.model_inputs, ())
    torch.testing.assert_close(loss_of(output, rollout).total, (1 + replays) * loss_of(expected, alone).total)


def test_fresh_unrolls_come_first_and_replayed_ones_are_whole() -> None:
    buffer = ReplayBuffer(capacity=10, num_replayed=3, seed=0)
    for first in (0, 2, 4):
        rollout = marked_rollout(first)
        mixed = buffer.mix(rollout)
        assert mixed.batch_size == 5
        assert mixed.num_replayed == 3
        assert marks(mixed)[:2] == [first, first + 1]
        assert set(marks(mixed)[2:]) <= set(range(first + 2))
        torch.testing.assert_close(mixed.valid[:, :2], rollout.valid)
        torch.testing.assert_close(mixed.terminated[:, :2], rollout.terminated)


def test_first_batch_is_as_large_as_every_other() -> None:
    mixed = ReplayBuffer(capacity=10, num_replayed=6, seed=0).mix(marked_rollout(7))
    assert mixed.batch_size == 8
    assert set(marks(mixed)) == {7, 8}


def test_oldest_unrolls_are_overwritten_at_capacity() -> None:
    buffer = ReplayBuffer(capacity=5, num_replayed=200, seed=0)
    for first in (0, 3, 6):
        mixed = buffer.mix(marked_rollout(first, batch_size=3))
    assert len(buffer) == 5
    assert set(marks(mixed)[3:]) == {4, 5, 6, 7, 8}


def test_replay_is_uniform() -> None:
    buffer = ReplayBuffer(capacity=4, num_replayed=4000, seed=0)
    buffer.mix(marked_rollout(0))
    drawn = torch.tensor(marks(buffer.mix(marked_rollout(2)))[2:])
    # 1000 expected of each, standard deviation 27.
    assert all(abs(count - 1000) < 140 for count in drawn.bincount(minlength=4).tolist())


def test_seed_decides_what_is_replayed_whatever_else_draws_numbers() -> None:
    drawn: list[list[list[int]]] = []
    for seed in (1, 1, 2):
        torch.manual_seed(len(drawn))
        buffer = ReplayBuffer(capacity=50, num_replayed=20, seed=seed)
        drawn.append([marks(buffer.mix(marked_rollout(first))) for first in (0, 2, 4, 6)])
    assert drawn[0] == drawn[1] != drawn[2]


def test_stored_unrolls_outlive_the_memory_they_came_in() -> None:
    """Batches are views of native memory that is reused."""
    buffer = ReplayBuffer(capacity=4, num_replayed=50, seed=0)
    first = marked_rollout(0)
    buffer.mix(first)
    map_tensors(lambda tensor: tensor.zero_(), first)
    assert set(marks(buffer.mix(marked_rollout(2)))[2:]) == {0, 1, 2, 3}


def test_memory_is_taken_once() -> None:
    buffer = ReplayBuffer(capacity=6, num_replayed=1, seed=0)
    buffer.mix(marked_rollout(0))
    assert buffer._stored is not None
    places = [leaf.data_ptr() for leaf in (*buffer._stored.observation, buffer._stored.action)]
    for first in range(2, 30, 2):
        buffer.mix(marked_rollout(first))
    assert [leaf.data_ptr() for leaf in (*buffer._stored.observation, buffer._stored.action)] == places
    assert buffer._stored.batch_size == 6


def test_memory_is_what_the_docstring_says() -> None:
    buffer = ReplayBuffer(capacity=6, num_replayed=1, seed=0)
    buffer.mix(marked_rollout(0))
    stored = buffer._stored
    assert stored is not None
    tensors = [value for field in fields(stored) if isinstance(value := getattr(stored, field.name), torch.Tensor)]
    num_bytes = sum(tensor.nbytes for tensor in (*tensors, *stored.observation, *stored.core_state))
    assert num_bytes == 6 * ((T + 1) * (5 * 4 + 15) + T * (4 * 3 + 17) + 4 * (1 * 4 + 2 * 3) + 8)


def test_a_replayed_unroll_is_corrected_by_its_stored_behaviour_policy() -> None:
    model, buffer = make_mlp(), ReplayBuffer(capacity=2, num_replayed=2, seed=0)
    mixed = buffer.mix(random_rollout(T, 2))
    output, _ = model(mixed.model_inputs, mixed.core_state)
    columns = [t.tolist() for t in (mixed.rewards[:, :2].T, mixed.rewards[:, 2:].T)]
    assert all(column in columns[0] for column in columns[1])
    on_policy = replace(mixed, policy_logits=output.policy_logits[:-1].detach())
    assert loss_of(output, on_policy).parts["mean_rho"].value.item() == pytest.approx(1.0)
    assert loss_of(output, mixed).parts["mean_rho"].value.item() != pytest.approx(1.0)


@pytest.mark.parametrize(
    ("share", "batch_size", "num_replayed"), [(0.0, 8, 0), (0.5, 8, 4), (0.5, 1, 0), (0.99, 4, 3), (0.1, 4, 0)]
)
def test_share_becomes_a_number_of_unrolls_and_leaves_a_fresh_one(
    share: float, batch_size: int, num_replayed: int
) -> None:
    config = ReplayConfig(replay_share=share)
    assert config.num_replayed(batch_size) == num_replayed
    assert config.num_fresh(batch_size) == batch_size - num_replayed >= 1
    assert (make_replay(config, batch_size, seed=0) is None) == (num_replayed == 0)


@pytest.mark.parametrize(("capacity", "room"), [(1, 4), (3, 4), (4, 4), (5, 5)])
def test_capacity_is_at_least_the_fresh_unrolls_of_a_batch(capacity: int, room: int) -> None:
    replay = make_replay(ReplayConfig(replay_share=0.5, replay_capacity=capacity), batch_size=8, seed=0)

    assert replay is not None
    for first in (0, 4, 8):
        assert marks(replay.mix(marked_rollout(first, batch_size=4)))[:4] == list(range(first, first + 4))
    assert len(replay) == room


@pytest.mark.parametrize("values", [{"replay_share": 1.0}, {"replay_share": -0.1}, {"replay_capacity": 0}])
def test_settings_out_of_range_are_refused(values: dict[str, float]) -> None:
    (name,) = values
    with pytest.raises(ConfigError, match=f"{name} = "):
        ReplayConfig(**values)  # type: ignore[arg-type]


def test_unrolls_of_more_single_frames_than_any_before_are_replayed_whole() -> None:
    """An unroll in which episodes begin with stacks of their own has more frames than others."""
    buffer, random = ReplayBuffer(capacity=3, num_replayed=20, seed=0), torch.Generator().manual_seed(0)
    stacks: list[torch.Tensor] = []
    for number, num_frames in enumerate((8, 12, 8)):
        frames = torch.randint(256, (num_frames, 1, 2), dtype=torch.uint8, generator=random)
        index = torch.randint(num_frames, (T + 1, 1, 3), dtype=torch.int32, generator=random)
        rollout = replace(marked_rollout(number, batch_size=1), observation=(frames,), frame_index=(index,))
        stacks.append(rollout.stacked().observation[0][:, 0])
        mixed = buffer.mix(rollout).stacked()
    for column, mark in enumerate(mixed.action[0].tolist()):
        assert torch.equal(mixed.observation[0][:, column], stacks[mark])
    assert set(mixed.action[0].tolist()) == {0, 1, 2}
