"""Stable-Baselines3's PPO with its own defaults."""

import json
import sys
import time
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import Tensor, nn


class Cells(gymnasium.ObservationWrapper[Any, Any, Any]):
    """MinAtar's cells, bool [H, W, C], as numbers [C, H, W]."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        height, width, channels = env.observation_space.shape or ()
        self.observation_space = gymnasium.spaces.Box(0.0, 1.0, (channels, height, width), np.float32)

    def observation(self, observation: Any) -> np.ndarray:
        cells: np.ndarray = np.moveaxis(observation, -1, 0).astype(np.float32)
        return cells


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


class Log(BaseCallback):  # type: ignore[misc] # stable-baselines3 is only in the system's venv
    """A callback that logs the returns of the episodes that ended in each rollout."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = open(path, "w", buffering=1)  # noqa: SIM115 # open until the process ends
        self._file.write("# step,elapsed_s,episode_returns\n")
        self._returns: list[float] = []
        self._began = time.monotonic()

    def _on_step(self) -> bool:
        self._returns += [float(info["episode"]["r"]) for info in self.locals["infos"] if "episode" in info]
        return True

    def _on_rollout_end(self) -> None:
        listed = ", ".join(map(str, self._returns))
        self._file.write(f'{self.num_timesteps},{time.monotonic() - self._began:.3f},"({listed})"\n')
        self._returns = []


def make_env(env: str, inputs: str) -> gymnasium.Env[Any, Any]:
    if env.startswith("MiniGrid"):
        import minigrid  # noqa: F401 # registers the environments
        from minigrid.wrappers import ImgObsWrapper

        return ImgObsWrapper(gymnasium.make(env))  # type: ignore[no-any-return] # only in the system's venv
    if env.startswith("MinAtar"):
        from minatar.gym import register_envs

        register_envs()
    made = gymnasium.make(env)
    if inputs == "cells":
        return Cells(made)
    return gymnasium.wrappers.FlattenObservation(made) if inputs == "flattened" else made


def train(algorithm: type[BaseAlgorithm], policy: str, settings: dict[str, Any]) -> None:
    """Trains once. settings: env, inputs, seed, steps and folder."""
    torch.set_num_threads(1)
    env, inputs = settings["env"], settings["inputs"]
    options: dict[str, Any] = {}
    if inputs == "cells":
        options = {"features_extractor_class": SmallNetwork, "normalize_images": False, "net_arch": []}
    envs = make_vec_env(lambda: make_env(env, inputs), seed=settings["seed"])
    model = algorithm(policy, envs, seed=settings["seed"], device="cpu", policy_kwargs=options)
    model.learn(settings["steps"], callback=Log(Path(settings["folder"]) / "logs.csv"))


if __name__ == "__main__":
    train(PPO, "MlpPolicy", json.loads(sys.argv[1]))
