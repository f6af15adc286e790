"""`kubebeast tune` measures env-servers with the frames that a training requests from the pool."""

from pathlib import Path
from typing import Any

import pytest

from kubebeast_learner.config import LocalFleetConfig, ModelConfig, RolloutConfig, RunConfig, TrainConfig
from kubebeast_learner.tune import fleet_probe
from kubebeast_native import ActorPool


@pytest.mark.parametrize("single_frames", [False, True])
def test_frames_come_as_a_training_on_the_device_gets_them(
    single_frames: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []
    opened = ActorPool.open

    def open_pool(pool: ActorPool, *, single_frames: bool = False, **others: Any) -> None:
        asked.append(single_frames)
        opened(pool, single_frames=single_frames, **others)

    monkeypatch.setattr(ActorPool, "open", open_pool)
    monkeypatch.setattr(fleet_probe, "takes_single_frames", lambda *devices: single_frames)
    config = TrainConfig(
        run=RunConfig(device="cpu"),
        rollout=RolloutConfig(unroll_length=5, batch_size=2),
        model=ModelConfig(model="shallow"),
        fleet=LocalFleetConfig(env="Mock", env_kwargs='{"episode_length": 7}'),
    )
    cost, spec = fleet_probe.measure(config, f"unix:{tmp_path / 'pool'}", tmp_path, num_envs=2, seconds=0.0)

    assert asked == [single_frames]
    assert cost.num_envs == 2 and cost.pool_cpu_s > 0
    assert any(leaf.frame_stack > 1 for leaf in spec.observation)
