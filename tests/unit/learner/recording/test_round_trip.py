"""A recorded batch comes back digit by digit, in the same memory order, whatever its environment and its model."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
import torch

from kubebeast_common.spec.env_spec import EnvSpec
from kubebeast_common.spec.leaves import DTYPES, Leaf
from kubebeast_learner.algorithm.rollout import Rollout, tensors_of
from kubebeast_learner.recording.reader import read_recordings
from kubebeast_learner.recording.shards import Source
from tests.unit.learner.recording.recorded_batches import (
    CHOICE,
    SCREEN,
    SMALL,
    B,
    T,
    random_rollout,
    record,
    source_of,
)

DICT_OF_ALL = EnvSpec(
    "Dict-v0",
    (
        *(Leaf(f"numbers.{dtype}", dtype, (2, 3)) for dtype in DTYPES),
        SCREEN,
        Leaf("depth", "float32", (3,), frame_stack=2),
        Leaf("room", "int64", (), num_categories=4),
    ),
    (CHOICE,),
)
TUPLE_OF_ACTIONS = EnvSpec(
    "Actions-v0",
    (Leaf("0", "float32", (2,)), Leaf("1", "uint8", ())),
    (
        Leaf("0", "int64", (), num_categories=5),
        Leaf("1", "float32", (2,), bounded=True),
        Leaf("2", "int8", (3,), num_categories=2),
    ),
)


def recorded(folder: Path, rollout: Rollout, source: Source) -> Rollout:
    assert sum(record(folder, [rollout], source).values()) == 0
    (recording,) = read_recordings(folder)
    return recording.rollout(recording.entries[0], rollout.distribution)


def require_equal(first: Rollout, second: Rollout) -> None:
    pairs = list(zip(tensors_of(first), tensors_of(second), strict=True))
    assert [(a.dtype, a.shape) for a, _ in pairs] == [(b.dtype, b.shape) for _, b in pairs]
    assert all(a.stride() == b.stride() for a, b in pairs if a.numel())
    assert all(a.contiguous().numpy().tobytes() == b.contiguous().numpy().tobytes() for a, b in pairs)
    assert first.num_replayed == second.num_replayed


@pytest.mark.parametrize("spec", [SMALL, DICT_OF_ALL, TUPLE_OF_ACTIONS], ids=lambda spec: spec.env_id)
def test_every_kind_of_leaf_comes_back(spec: EnvSpec, tmp_path: Path) -> None:
    rollout = random_rollout(spec)
    require_equal(recorded(tmp_path, rollout, source_of(spec)), rollout)


def test_core_states_tasks_and_replayed_unrolls_come_back(tmp_path: Path) -> None:
    state = [torch.randn(2, B, 4), torch.randn(1, B, 7)]
    rollout = replace(random_rollout(core_state=state), task=torch.tensor([[0, 2, 1]]), num_replayed=2)
    require_equal(recorded(tmp_path, rollout, source_of()), rollout)


def test_numbers_that_are_not_finite_and_negative_zeros_come_back(tmp_path: Path) -> None:
    rollout = random_rollout()
    rollout.observation[0][0, 0] = torch.tensor([torch.nan, -torch.inf])
    rollout.rewards[1] = -0.0
    require_equal(recorded(tmp_path, rollout, source_of()), rollout)


def test_stacks_with_the_frames_innermost_come_back_in_that_order(tmp_path: Path) -> None:
    spec = EnvSpec("Frames-v0", (SCREEN,), (CHOICE,))
    rollout = random_rollout(spec)
    interleaved = rollout.observation[0].movedim(2, -1).contiguous().movedim(-1, 2)
    back = recorded(tmp_path, replace(rollout, observation=(interleaved,)), source_of(spec))

    assert back.observation[0].stride() == interleaved.stride() != rollout.observation[0].stride()
    assert back.observation[0].equal(interleaved)


def test_single_frames_of_a_gpu_come_back_as_such(tmp_path: Path) -> None:
    spec = EnvSpec("Frames-v0", (SCREEN, Leaf("speed", "float32", (2,))), (CHOICE,))
    whole = random_rollout(spec)
    index = torch.arange(T + 1, dtype=torch.int32)[:, None, None] + torch.arange(4, dtype=torch.int32)
    none = torch.zeros(T + 1, B, 0, dtype=torch.int32)
    frames = torch.randint(256, (T + 6, B, *SCREEN.shape), dtype=torch.uint8)
    single = replace(
        whole,
        observation=(frames, whole.observation[1]),
        frame_index=(index.expand(T + 1, B, 4).contiguous(), none),
    )
    require_equal(recorded(tmp_path, single, source_of(spec)), single)


def test_each_frame_of_a_stack_is_stored_once(tmp_path: Path) -> None:
    spec = EnvSpec("Frames-v0", (SCREEN,), (CHOICE,))
    recorded(tmp_path, random_rollout(spec), source_of(spec))
    (recording,) = read_recordings(tmp_path)

    frames = recording.entries[0].arrays()["observation.0"]
    num_frames = [T + 4, T + 4, T + 4 + 3]  # the last column has an episode's first stack inside the unroll
    assert frames.shape == (max(num_frames), B, *SCREEN.shape)


def test_what_compresses_is_stored_smaller_and_the_rest_as_it_is(tmp_path: Path) -> None:
    spec = EnvSpec("Numbers-v0", (Leaf("plain", "float32", (64,)), Leaf("noise", "float32", (64,))), (CHOICE,))
    rollout = random_rollout(spec)
    rollout.observation[0].zero_()
    recorded(tmp_path, rollout, source_of(spec))

    stored = safetensors.numpy.load_file(next(tmp_path.iterdir()))
    assert stored["0.observation.0.lz4"].nbytes < rollout.observation[0].nbytes / 10
    np.testing.assert_array_equal(stored["0.observation.1"], rollout.observation[1].numpy())


def test_a_shard_describes_itself(tmp_path: Path) -> None:
    source = source_of(DICT_OF_ALL)
    record(tmp_path, [random_rollout(DICT_OF_ALL, seed=seed) for seed in range(3)], source, first=7)
    (recording,) = read_recordings(tmp_path)

    assert [path.name for path in tmp_path.iterdir()] == ["unrolls-0000000007.safetensors"]
    assert recording.source == source
    assert [entry.batch.update for entry in recording.entries] == [7, 8, 9]
    assert [entry.batch.step for entry in recording.entries] == [7 * T * B, 8 * T * B, 9 * T * B]
    versions = random_rollout(DICT_OF_ALL, seed=2).policy_version[0].tolist()
    assert recording.entries[2].batch.policy_versions == versions
