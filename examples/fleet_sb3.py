"""Stable-Baselines3's PPO on a fleet of env-servers, without KubeBeast's learner. Learns CartPole:

python examples/fleet_sb3.py --address 127.0.0.1:4431 &
kubebeast-envserver --env CartPole-v1 --address 127.0.0.1:4431 --num-streams 8 --envs-per-stream 1

Env-servers may leave and join during the training. KubeBeast does not require stable-baselines3; install it with pip.
"""

import contextlib
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import tyro
from numpy.typing import NDArray
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv, VecMonitor

from kubebeast_fleet import AsyncFleetVectorEnv


@dataclass
class Args:
    address: str = "127.0.0.1:4431"
    """Address on which to listen for env-servers; their streams have one environment each."""
    token_file: str = ""
    """File of bearer tokens, one of which an env-server must send; if empty, none is required."""
    http_address: str = ""
    """Address of /healthz, /readyz and /metrics; if empty, they are not served."""
    num_envs: int = 8
    """Environments that step together; more wait in reserve."""
    total_steps: int = 100_000
    """Steps to train for."""
    seed: int = 1
    """Seed of the weights and the actions; env-servers seed their environments."""


class FleetVecEnv(VecEnv):  # type: ignore[misc, unused-ignore] # untyped if stable-baselines3 is not installed
    """A fleet as a `VecEnv` of Stable-Baselines3, which expects the next episode's first row at the end of an episode.

    The first row comes in the same step, and the last observation in its info. Environments at their end therefore step
    once more, alone, which requires streams of one environment. Observations are arrays.
    """

    def __init__(self, fleet: AsyncFleetVectorEnv) -> None:
        super().__init__(fleet.num_envs, fleet.single_observation_space, fleet.single_action_space)
        self.num_lost = 0
        self._fleet = fleet
        self._everyone = np.arange(fleet.num_envs)
        self._nothing = np.zeros_like(fleet.action_space.sample())
        self._observations: NDArray[Any] = np.zeros_like(fleet.observation_space.sample())
        self._started = False

    def reset(self) -> NDArray[Any]:
        """Returns the current observations: environments of a fleet reset themselves, so later calls reset nothing."""
        if not self._started:
            self._receive(self.num_envs)
            self._started = True
        return self._observations.copy()

    def step_async(self, actions: NDArray[Any]) -> None:
        self._fleet.send(actions, self._everyone)

    def step_wait(self) -> tuple[NDArray[Any], NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        infos: list[dict[str, Any]] = [{} for _ in self._everyone]
        *row, info = self._receive(self.num_envs)
        rewards, terminated, truncated = (column[np.argsort(info["env_id"])] for column in row)
        ended = np.flatnonzero(terminated | truncated)
        for env in ended:
            infos[env]["terminal_observation"] = self._observations[env].copy()
            infos[env]["TimeLimit.truncated"] = bool(truncated[env] and not terminated[env])
        self.num_lost += int(info["lost"].sum())
        self._begin(ended)
        return self._observations.copy(), rewards, terminated | truncated, infos

    def _begin(self, envs: NDArray[np.integer]) -> None:
        """Steps these environments until each has received the first row of an episode."""
        while envs.size:
            self._fleet.send(self._nothing[: envs.size], envs)
            *_, info = self._receive(envs.size)
            envs = info["env_id"][~info["is_first"] | info["lost"]]

    def _receive(self, count: int) -> tuple[Any, ...]:
        """Returns rewards, terminated, truncated and info of the next `count` rows, and keeps their observations."""
        observations, rewards, terminated, truncated, info = self._fleet.recv(count)
        self._observations[info["env_id"]] = observations
        return rewards, terminated, truncated, info

    def close(self) -> None:
        self._fleet.close()

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
        return [False] * self.num_envs

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        if attr_name == "render_mode":
            return [None] * self.num_envs
        raise AttributeError(f"environments of a fleet are elsewhere and do not show their {attr_name}")

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        raise AttributeError(f"environments of a fleet are elsewhere and cannot be given a {attr_name}")

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        raise AttributeError(f"environments of a fleet are elsewhere: {method_name} cannot be called")


class Progress(BaseCallback):  # type: ignore[misc, unused-ignore]
    """A callback that prints a line for each rollout."""

    def __init__(self, envs: FleetVecEnv) -> None:
        super().__init__()
        self._envs = envs
        self._begin = time.monotonic()

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        returns: Sequence[float] = [episode["r"] for episode in self.model.ep_info_buffer or ()]
        mean, speed = sum(returns) / max(len(returns), 1), self.num_timesteps / (time.monotonic() - self._begin)
        print(
            f"step {self.num_timesteps}  {speed:.0f} steps/s  mean return {mean:.1f}  lost {self._envs.num_lost}",
            flush=True,
        )


def main(args: Args) -> None:
    torch.set_num_threads(1)
    # By default, the signal does not end the first process of a container.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    envs = FleetVecEnv(
        AsyncFleetVectorEnv(
            args.address,
            args.num_envs,
            batch_size=args.num_envs,
            max_envs_per_stream=1,
            token_file=args.token_file,
            http_address=args.http_address,
        )
    )
    model = PPO(
        "MlpPolicy",
        VecMonitor(envs),
        n_steps=32,
        batch_size=256,
        n_epochs=20,
        gamma=0.98,
        gae_lambda=0.8,
        learning_rate=lambda left: 0.001 * left,
        clip_range=lambda left: 0.2 * left,
        seed=args.seed,
        device="cpu",
    )
    with contextlib.closing(envs):
        model.learn(args.total_steps, callback=Progress(envs))


if __name__ == "__main__":
    main(tyro.cli(Args))
