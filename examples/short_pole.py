"""A variant of an environment: CartPole with a pole of a quarter of the length, which falls in half the time.

kubebeast mono --env CartPole-v1 --wrappers short_pole:ShortPole
"""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.classic_control import CartPoleEnv
from numpy.typing import NDArray


class ShortPole(gymnasium.Wrapper[NDArray[np.float32], Any, NDArray[np.float32], Any]):
    """Wrapper that shortens the pole."""

    def __init__(self, env: gymnasium.Env[NDArray[np.float32], Any]) -> None:
        super().__init__(env)
        cart_pole = env.unwrapped
        assert isinstance(cart_pole, CartPoleEnv)
        cart_pole.length /= 4
        cart_pole.polemass_length = cart_pole.masspole * cart_pole.length
