"""What single environments return, as the rows of a vector; and the learner's actions, one for each of them."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from gymnasium import Space
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, iterate

from kubebeast_envserver.rows.action_mask import find_action_mask
from kubebeast_envserver.rows.actions import action_leaves_of, to_actions
from kubebeast_envserver.rows.episodes import EpisodeCounter
from kubebeast_envserver.rows.rows import Array, Step, StepRows
from kubebeast_envserver.rows.spaces import flatten, leaves_of

_NOTHING: Step = None, 0.0, False, False


class RowBuilder:
    """For B rows of the same spaces; counts their episodes. Observations keep the dtype of their space."""

    def __init__(self, observation_space: Space[Any], action_space: Space[Any], num_envs: int) -> None:
        """Raises UnsupportedSpaceError for a space that cannot be sent."""
        self.spec_action = action_leaves_of(action_space)
        self.spec_observation, self.mask = find_action_mask(leaves_of(observation_space), self.spec_action)
        self._observation_space, self._action_space = observation_space, action_space
        self._num_envs = num_envs
        self._batched_actions = batch_space(action_space, num_envs)
        (self._no_observation,) = iterate(batch_space(observation_space, 1), create_empty_array(observation_space, 1))
        self._episodes = EpisodeCounter(num_envs)
        self.over = np.ones(num_envs, np.bool_)
        """bool [B]: the newest row is final or interrupted, so that an episode is due."""

    def reset(self) -> None:
        """Forgets the running episodes: all are due."""
        self._episodes.reset()
        self.over = np.ones(self._num_envs, np.bool_)

    def split(self, actions: list[Array]) -> Iterator[Any]:
        """The B actions of one array [B, *shape] a leaf."""
        return iterate(self._batched_actions, to_actions(self._action_space, actions))

    def build(self, steps: Sequence[Step | None], interrupted: Array) -> StepRows:
        """The next rows, those of episodes that are due being first.

        steps: None, or a step without observation, where there is nothing to show: zeros. interrupted: bool [B], of
        rows that only keep a place; their steps are None.
        """
        observations, *columns = zip(*(step or _NOTHING for step in steps), strict=True)
        is_first = self.over
        rewards = np.array(columns[0], np.float32)
        terminated, truncated = (np.array(column, np.bool_) for column in columns[1:])
        self.over = terminated | truncated
        self._episodes.add(rewards, ~is_first)
        rows = StepRows(
            self._leaves(observations), rewards, terminated, truncated, is_first, self._episodes.finish(self.over)
        )
        if not interrupted.any():
            return rows
        self._episodes.reset(interrupted)
        self.over |= interrupted
        return replace(rows, truncated=truncated | interrupted, interrupted=interrupted)

    def _leaves(self, observations: Sequence[Any]) -> list[Array]:
        gaps = [i for i, observation in enumerate(observations) if observation is None]
        if gaps:
            observations = [self._no_observation if each is None else each for each in observations]
        out: Any = create_empty_array(self._observation_space, self._num_envs)
        leaves = flatten(self._observation_space, concatenate(self._observation_space, observations, out))
        if self.mask is not None:
            leaves[self.mask.index] = self.mask.freed(leaves[self.mask.index])
        if gaps:
            for leaf, spec in zip(leaves, self.spec_observation, strict=True):
                # A gap may be no element of its space, whose categories can start elsewhere; there any action will do.
                leaf[gaps] = spec.is_action_mask
        return leaves
