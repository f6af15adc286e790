"""A CartPole that leaves an ended process without a parent behind in every episode."""

import subprocess
from typing import Any

import gymnasium
from gymnasium.envs.classic_control.cartpole import CartPoleEnv

LITTER = "true"
"""The program of the process that is left."""


class Littering(CartPoleEnv):
    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        subprocess.run(["sh", "-c", f"/bin/{LITTER} &"], check=True)
        result: tuple[Any, dict[str, Any]] = super().reset(seed=seed, options=options)
        return result


gymnasium.register("Littering-v0", entry_point=f"{__name__}:Littering", max_episode_steps=20)
