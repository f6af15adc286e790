"""Atari-like environments with almost no cost of a step, for benchmarks and tests of the code around them."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from kubebeast_common.spec.leaves import Leaf
from kubebeast_envserver.rows.episodes import EpisodeCounter
from kubebeast_envserver.rows.rows import Array, StepRows

_PERIOD = 256


class MockEnv:
    """B environments as a HostedEnv: uint8 [84, 84] frames in stacks of 4, `num_actions` actions that change nothing.

    Every environment plays the same film at another offset; the reward is 1 at every 16th decision of an episode.
    """

    num_agents = 1
    takes_turns = False

    def __init__(self, num_envs: int, *, episode_length: int = 1000, num_actions: int = 6) -> None:
        for name, value in (("episode_length", episode_length), ("num_actions", num_actions)):
            if value < 1:
                raise ValueError(f"env_kwargs: {name} = {value}: must be at least 1")
        self.num_envs = num_envs
        self.spec_observation = [Leaf("", "uint8", (84, 84), frame_stack=4)]
        self.spec_action = [Leaf("", "int64", (), num_categories=num_actions)]
        self._film = _film(_PERIOD + num_envs)
        self._episode_length = episode_length
        self._episodes = EpisodeCounter(num_envs)
        self._step = 0
        self._decisions = np.zeros(num_envs, np.int64)

    def reset(self) -> StepRows:
        # Episodes of different environments end at different steps.
        self._decisions = np.arange(self.num_envs) * self._episode_length // self.num_envs
        self._episodes.reset()
        return self._rows(np.ones(self.num_envs, np.bool_))

    def set_options(self, options: Mapping[int, Mapping[str, Any]]) -> None:
        """Does nothing: with any options, the film is the same."""

    def step(self, actions: list[Array]) -> StepRows:
        is_first = self._decisions == self._episode_length
        self._decisions = np.where(is_first, 0, self._decisions + 1)
        self._step += 1
        return self._rows(is_first)

    def close(self) -> None:
        pass

    def _rows(self, is_first: Array) -> StepRows:
        terminated = self._decisions == self._episode_length
        rewards = ((self._decisions % 16 == 0) & ~is_first).astype(np.float32)
        self._episodes.add(rewards, ~is_first)
        start = self._step % _PERIOD
        return StepRows(
            observation=[self._film[start : start + self.num_envs]],
            rewards=rewards,
            terminated=terminated,
            truncated=np.zeros(self.num_envs, np.bool_),
            is_first=is_first,
            episodes=self._episodes.finish(terminated),
        )


def _film(num_frames: int) -> Array:
    """Returns uint8 [num_frames, 84, 84]: a wall, a score line, two paddles and a ball on a plain background."""
    film = np.full((num_frames, 84, 84), 87, np.uint8)
    film[:, :12] = 52
    film[:, 2:10, 20:64:6] = 200
    film[:, 20:32:2, 4:80] = 142
    for t, frame in enumerate(film):
        x, y = abs(t * 3 % 156 - 78) + 2, abs(t * 2 % 96 - 48) + 34
        frame[y : y + 2, x : x + 2] = 236
        frame[max(y - 4, 34) : y + 4, 78:80] = 147
        frame[abs(t % 80 - 40) + 34 :, 4:6][:8] = 213
    return film
