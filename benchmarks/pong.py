"""Pong84-v0: Pong with frames like those of the Atari presets, made by gymnasium's wrappers.

Needs ale-py and OpenCV. Their grey levels differ from those of ALE's own preprocessing; the work is the same.
"""

from typing import Any

import ale_py
import gymnasium
from gymnasium.wrappers import AtariPreprocessing, FrameStackObservation

FRAME_SKIP, SCREEN_SIZE, FRAME_STACK, NOOP_MAX = 4, 84, 4, 30

gymnasium.register_envs(ale_py)


def make_pong() -> gymnasium.Env[Any, Any]:
    """Observations uint8 [4, 84, 84], each a maximum over two frames; four frames an action."""
    game = gymnasium.make("ALE/Pong-v5", frameskip=1, repeat_action_probability=0.0)
    frames = AtariPreprocessing(game, noop_max=NOOP_MAX, frame_skip=FRAME_SKIP, screen_size=SCREEN_SIZE)
    return FrameStackObservation(frames, FRAME_STACK)


gymnasium.register("Pong84-v0", entry_point=f"{__name__}:make_pong", disable_env_checker=True)
