"""Pong84-v0: Pong with frames like those of the Atari presets, from gymnasium's wrappers.

Needs ale-py and OpenCV. Gray levels differ from those of ALE's own preprocessing; the work is the same. It also
supports gymnasium below 1.0, which some other systems need.
"""

from typing import Any

import ale_py
import gymnasium
import numpy as np
from gymnasium import wrappers

FRAME_SKIP, SCREEN_SIZE, FRAME_STACK, NOOP_MAX = 4, 84, 4, 30

if hasattr(gymnasium, "register_envs"):
    gymnasium.register_envs(ale_py)


def make_pong() -> gymnasium.Env[Any, Any]:
    """Creates the game with observations uint8 [4, 84, 84], each a maximum over two frames; four frames per action."""
    game = gymnasium.make("ALE/Pong-v5", frameskip=1, repeat_action_probability=0.0)
    frames = wrappers.AtariPreprocessing(game, noop_max=NOOP_MAX, frame_skip=FRAME_SKIP, screen_size=SCREEN_SIZE)
    if hasattr(wrappers, "FrameStackObservation"):
        return wrappers.FrameStackObservation(frames, FRAME_STACK)
    return _ArrayObservation(wrappers.FrameStack(frames, FRAME_STACK))


class _ArrayObservation(gymnasium.ObservationWrapper[Any, Any, Any]):
    """Wrapper that joins the separate frames of the older FrameStack into one array."""

    def observation(self, observation: Any) -> np.ndarray:
        return np.asarray(observation)


gymnasium.register("Pong84-v0", entry_point=f"{__name__}:make_pong", disable_env_checker=True)
