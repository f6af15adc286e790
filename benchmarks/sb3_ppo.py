"""Stable-Baselines3's PPO on one environment, with its defaults and VecNormalize, to compare with KubeBeast's curves:
`python -m benchmarks.sb3_ppo --env HalfCheetah-v5 --seed 1`, then `kubebeast plot`.

KubeBeast does not require stable-baselines3; install it with pip. A rollout has the default of 2 048 steps, here of 8
environments together, which halves the time.
"""

import time
from pathlib import Path

import torch
import tyro
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize

from kubebeast_runs.log import RunLog

NUM_ENVS = 8
ROLLOUT_STEPS = 2048


class Returns(BaseCallback):  # type: ignore[misc] # stable-baselines3 is missing when types are checked
    """A callback that logs the returns of the episodes that ended in each rollout, before VecNormalize."""

    def __init__(self, log: RunLog) -> None:
        super().__init__()
        self._log = log
        self._returns: list[float] = []
        self._begin = time.monotonic()

    def _on_step(self) -> bool:
        self._returns += [info["episode"]["r"] for info in self.locals["infos"] if "episode" in info]
        return True

    def _on_rollout_end(self) -> None:
        if self._returns:
            mean = sum(self._returns) / len(self._returns)
            self._log.log(
                {
                    "step": self.num_timesteps,
                    "elapsed_s": time.monotonic() - self._begin,
                    "mean_episode_return": mean,
                    "episode_returns": tuple(self._returns),
                }
            )
            self._returns = []


def main(env: str, seed: int = 1, total_steps: int = 3_000_000, savedir: Path = Path("~/logs/kubebeast")) -> None:
    torch.set_num_threads(1)
    with RunLog(savedir.expanduser(), f"sb3-ppo-seed{seed}") as log:
        log.record({"env": env, "seed": seed, "total_steps": total_steps})
        envs = VecNormalize(make_vec_env(env, n_envs=NUM_ENVS, seed=seed))
        model = PPO("MlpPolicy", envs, n_steps=ROLLOUT_STEPS // NUM_ENVS, seed=seed, device="cpu")
        model.learn(total_steps, callback=Returns(log))
        log.successful = True


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
