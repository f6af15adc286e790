"""Stable-Baselines3's PPO with its own defaults."""

import json
import sys
from pathlib import Path
from typing import Any

import gymnasium
from stable_baselines3 import PPO
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import Tensor, nn

from benchmarks.learning.programs.environments import make_env
from benchmarks.learning.programs.log import Log
from benchmarks.learning.programs.threads import use_all_cores


class SmallNetwork(BaseFeaturesExtractor):  # type: ignore[misc] # stable-baselines3 is only in the system's venv
    """The small network of KubeBeast for cells, with the initialization of Stable-Baselines3."""

    def __init__(self, space: gymnasium.spaces.Box) -> None:
        super().__init__(space, 128)
        channels, height, width = space.shape
        self.layers = nn.Sequential(
            nn.Conv2d(channels, 16, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, padding=1, stride=2),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(32 * ((height + 1) // 2) * ((width + 1) // 2), 128),
            nn.ReLU(),
        )

    def forward(self, observations: Tensor) -> Tensor:
        features: Tensor = self.layers(observations)
        return features


class Returns(BaseCallback):  # type: ignore[misc] # stable-baselines3 is only in the system's venv
    """A callback that logs the returns of the episodes that ended in each rollout."""

    def __init__(self, log: Log) -> None:
        super().__init__()
        self._log = log

    def _on_step(self) -> bool:
        for info in self.locals["infos"]:
            if "episode" in info:
                self._log.add(float(info["episode"]["r"]))
        return True

    def _on_rollout_end(self) -> None:
        self._log.write(self.num_timesteps)


def train(algorithm: type[BaseAlgorithm], policy: str, settings: dict[str, Any]) -> None:
    """Trains once. settings: env, inputs, seed, steps and folder."""
    use_all_cores()
    env, inputs = settings["env"], settings["inputs"]
    options: dict[str, Any] = {}
    if inputs == "cells":
        options = {"features_extractor_class": SmallNetwork, "normalize_images": False, "net_arch": []}
    envs = make_vec_env(lambda: make_env(env, inputs), seed=settings["seed"])
    model = algorithm(policy, envs, seed=settings["seed"], device="cpu", policy_kwargs=options)
    model.learn(settings["steps"], callback=Returns(Log(Path(settings["folder"]))))


if __name__ == "__main__":
    train(PPO, "MlpPolicy", json.loads(sys.argv[1]))
