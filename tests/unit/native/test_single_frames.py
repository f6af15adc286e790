"""Single frames from the native pool are assembled to the same stacks as in the pool."""

import contextlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from kubebeast_common.spec.leaves import Leaf
from kubebeast_envserver.rows.rows import StepRows
from kubebeast_learner.actors.remote import actors
from kubebeast_learner.actors.remote.actors import RemoteActors, make_pool
from kubebeast_learner.algorithm.options.replay import ReplayBuffer
from kubebeast_learner.algorithm.rollout import Rollout, map_tensors
from kubebeast_learner.config import LearnerConfig, ModelConfig, RolloutConfig
from kubebeast_learner.models import Model, make_model
from tests.unit.envserver.envs.scripted_env import ACTION, NUM_ENVS, ScriptedEnv
from tests.unit.native import native_client
from tests.unit.native.native_host import hosted

T, K, NUM_UNROLLS = 4, 3, 9
PATIENCE_MS = native_client.PATIENCE_MS
LEAVES = [Leaf("image", "uint8", (2, 3), frame_stack=K), Leaf("speed", "float32", (3,))]


class FilmEnv(ScriptedEnv):
    """Shows its number on a screen, too, a different one for each environment."""

    def __init__(self) -> None:
        super().__init__()
        self.spec_observation = LEAVES

    def _rows(self, is_first: Any) -> StepRows:
        rows = super()._rows(is_first)
        numbers = np.arange(NUM_ENVS) * 100 + self._n
        screens = np.broadcast_to(numbers[:, None, None], (NUM_ENVS, 2, 3)) + np.arange(3)
        return replace(rows, observation=[screens.astype(np.uint8), *rows.observation])


def make_film_model() -> Model:
    torch.manual_seed(0)
    return make_model(LEAVES, [ACTION], ModelConfig(model="mlp", hidden_sizes=(8,), use_lstm=True))


def rollouts(monkeypatch: pytest.MonkeyPatch, *, single_frames: bool) -> list[Rollout]:
    """Returns the first unrolls of a FilmEnv, sorted by environment; actions are sampled with the same seed."""
    monkeypatch.setattr(actors, "takes_single_frames", lambda *devices: single_frames)
    pool = make_pool(LearnerConfig(rollout=RolloutConfig(unroll_length=T, batch_size=NUM_ENVS)), "127.0.0.1:0")
    pool.start()
    remote = RemoteActors(LearnerConfig(), pool, None)
    found = []
    with hosted(FilmEnv(), pool.address):
        assert remote.wait_env_spec(PATIENCE_MS) is not None
        remote.start(make_film_model(), torch.device("cpu"), version=7)
        for _ in range(NUM_UNROLLS):
            rollout = remote.next_rollout(PATIENCE_MS)
            assert rollout is not None
            order = rollout.observation[1][0, :, 0].remainder(1).argsort()
            found.append(map_tensors(lambda tensor, order=order: tensor[:, order].clone(), rollout))
    remote.stop()
    pool.close()
    return found


def assert_equal(one: Rollout, other: Rollout) -> None:
    map_tensors(lambda mine, theirs: torch.testing.assert_close(mine, theirs, rtol=0, atol=0) or mine, one, other)


def test_unrolls_of_single_frames_are_those_of_whole_stacks(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = rollouts(monkeypatch, single_frames=False)
    single = rollouts(monkeypatch, single_frames=True)
    for with_stacks, with_frames in zip(whole, single, strict=True):
        assert with_frames.observation[0].shape == (T + K, NUM_ENVS, 2, 3)
        assert with_frames.stacked().observation[0].shape == (T + 1, NUM_ENVS, K, 2, 3)
        assert_equal(with_frames.stacked(), with_stacks)


def test_unrolls_are_replayed_as_single_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, single = (ReplayBuffer(capacity=7, num_replayed=3, seed=0) for _ in range(2))
    pairs = zip(rollouts(monkeypatch, single_frames=False), rollouts(monkeypatch, single_frames=True), strict=True)
    for with_stacks, with_frames in pairs:
        mixed = single.mix(with_frames)
        assert mixed.observation[0].shape == (T + K, NUM_ENVS + 3, 2, 3)
        assert_equal(mixed.stacked(), whole.mix(with_stacks))


def test_frames_of_single_rows_have_no_order_of_a_stack() -> None:
    pool = native_client.make_pool()
    pool.start()
    with contextlib.closing(pool), pytest.raises(ValueError, match="single_frames is true, and so is interleaved"):
        pool.open(native_client.NUM_LOGITS, native_client.CORE_STATE_SIZE, [True, False], single_frames=True)
