"""A custom wrapper: CartPole without its two velocities, which only a network with memory can balance.

kubebeast mono --env CartPole-v1 --wrappers hide_velocities:HideVelocities --use-lstm
"""

from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray


class HideVelocities(gymnasium.ObservationWrapper[NDArray[np.float32], Any, NDArray[np.float32]]):
    """Wrapper with observations float32 [2]: the position of the cart and the angle of the pole."""

    def __init__(self, env: gymnasium.Env[NDArray[np.float32], Any]) -> None:
        super().__init__(env)
        space = env.observation_space
        assert isinstance(space, gymnasium.spaces.Box)
        self.observation_space = gymnasium.spaces.Box(space.low[::2], space.high[::2])

    def observation(self, observation: NDArray[np.float32]) -> NDArray[np.float32]:
        return observation[::2]
