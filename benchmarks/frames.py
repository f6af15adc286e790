"""Frames of a real game to stream: the cost of a compressed transport depends on their compressibility."""

from pathlib import Path

import numpy as np
from ale_py.vector_env import AtariVectorEnv
from numpy.typing import NDArray

NUM_ENVS = 32
NUM_STEPS = 64
NUM_ACTIONS = 6


def record(path: Path, game: str = "pong", seed: int = 1, num_envs: int = NUM_ENVS) -> None:
    """Plays `game` at random and saves uint8 [NUM_STEPS, num_envs, 84, 84] as .npy; takes a few seconds."""
    envs = AtariVectorEnv(game, num_envs, num_threads=1)
    random = np.random.default_rng(seed)
    frames = np.empty((NUM_STEPS, num_envs, 84, 84), np.uint8)
    observation, _ = envs.reset(seed=seed)
    for step in range(NUM_STEPS):
        frames[step] = observation[:, -1]
        observation, *_ = envs.step(random.integers(NUM_ACTIONS, size=num_envs))
    envs.close()
    np.save(path, frames)


def load(path: Path) -> NDArray[np.uint8]:
    """Returns the frames, uint8 [NUM_STEPS, num_envs, 84, 84], mapped from the file."""
    frames: NDArray[np.uint8] = np.load(path, mmap_mode="r")
    return frames
