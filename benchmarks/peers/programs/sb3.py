"""Stable-Baselines3's PPO: 8 environments in separate processes, rollouts of 128 steps, minibatches of 256."""

import sys

import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import SubprocVecEnv

from benchmarks.peers.programs import progress
from benchmarks.pong import make_pong

NUM_ENVS, ROLLOUT_STEPS, BATCH_SIZE = 8, 128, 256


class Progress(BaseCallback):  # type: ignore[misc] # stable-baselines3 is only in the peer's venv
    def _on_rollout_start(self) -> None:
        progress.report(self.num_timesteps)

    def _on_step(self) -> bool:
        return True


def main(epochs: int) -> None:
    torch.set_num_threads(torch.get_num_threads())
    envs = SubprocVecEnv([make_pong] * NUM_ENVS, start_method="spawn")
    model = PPO("CnnPolicy", envs, n_steps=ROLLOUT_STEPS, batch_size=BATCH_SIZE, n_epochs=epochs, device="cpu")
    model.learn(10**9, callback=Progress())


if __name__ == "__main__":
    main(int(sys.argv[1]))
