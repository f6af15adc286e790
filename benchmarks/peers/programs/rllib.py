"""RLlib's IMPALA: one process that steps 8 environments, unrolls of 20, batches of 160, the learner in the driver."""

from typing import Any

import gymnasium
import numpy as np
from ray.rllib.algorithms.impala import IMPALAConfig
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
from ray.tune.registry import register_env

from benchmarks.peers.programs import progress
from benchmarks.pong import make_pong

NUM_ENVS, UNROLL_LENGTH, BATCH_SIZE = 8, 20, 8
SHALLOW = ((32, 8, 4), (64, 4, 2), (64, 3, 1))
"""Channels, kernel and stride of the convolutions."""


class ChannelsLast(gymnasium.ObservationWrapper[Any, Any, Any]):
    """Wrapper with observations float32 [84, 84, 4] in [0, 1], the layout of RLlib's encoder."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        self.observation_space = gymnasium.spaces.Box(0.0, 1.0, (84, 84, 4), np.float32)

    def observation(self, observation: Any) -> np.ndarray:
        frames: np.ndarray = np.moveaxis(observation, 0, -1).astype(np.float32) / 255
        return frames


def main() -> None:
    register_env("pong84", lambda _: ChannelsLast(make_pong()))
    model = DefaultModelConfig(
        conv_filters=[list(layer) for layer in SHALLOW],
        conv_activation="relu",
        head_fcnet_hiddens=[512],
        head_fcnet_activation="relu",
        vf_share_layers=True,
    )
    config = (
        IMPALAConfig()
        .environment("pong84")
        .framework("torch")
        .env_runners(num_env_runners=1, num_envs_per_env_runner=NUM_ENVS, rollout_fragment_length=UNROLL_LENGTH)
        .learners(num_learners=0)
        .training(train_batch_size_per_learner=UNROLL_LENGTH * BATCH_SIZE, lr=6e-4)
        .reporting(min_time_s_per_iteration=1)
        .rl_module(model_config=model)
    )
    algorithm = config.build_algo()
    while True:
        result = algorithm.train()
        if "learners" in result:  # missing if the iteration ended before the first update
            progress.report(int(result["learners"]["__all_modules__"]["num_env_steps_trained_lifetime"]))


if __name__ == "__main__":
    main()
