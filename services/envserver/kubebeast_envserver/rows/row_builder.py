"""Rows of a vector from the results of single environments, and single actions from those of the learner."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from gymnasium import Space
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, iterate

from kubebeast_envserver.rows.action_mask import find_action_mask
from kubebeast_envserver.rows.actions import action_leaves_of, to_actions
from kubebeast_envserver.rows.episodes import EpisodeCounter
from kubebeast_envserver.rows.limits import check_limits
from kubebeast_envserver.rows.rows import WAITING, AgentStep, Array, Step, StepRows
from kubebeast_envserver.rows.spaces import flatten

_NOTHING: Step = None, 0.0, False, False, None


class RowBuilder:
    """Builder of B rows of the same spaces, which counts their episodes. Observations keep the dtype of their space."""

    def __init__(self, observation_space: Space[Any], action_space: Space[Any], num_envs: int) -> None:
        """Raises UnsupportedSpaceError for a space that cannot be sent."""
        self.spec_action = action_leaves_of(action_space)
        self.spec_observation, self.mask = find_action_mask(observation_space, action_space)
        check_limits(self.spec_observation, self.spec_action, num_envs)
        self._observation_space, self._action_space = observation_space, action_space
        self._num_envs = num_envs
        self._batched_actions = batch_space(action_space, num_envs)
        (self._no_observation,) = iterate(batch_space(observation_space, 1), create_empty_array(observation_space, 1))
        self._episodes = EpisodeCounter(num_envs)
        self.over = np.ones(num_envs, np.bool_)
        """bool [B]: the newest row is final or interrupted, so that an episode is due."""

    def reset(self) -> None:
        """Drops the running episodes: all are due."""
        self._episodes.reset()
        self.over = np.ones(self._num_envs, np.bool_)

    def split(self, actions: list[Array]) -> Iterator[Any]:
        """Returns the B actions in one array [B, *shape] per leaf."""
        return iterate(self._batched_actions, to_actions(self._action_space, actions))

    @np.errstate(all="ignore")  # which an environment may have set to raise
    def build(self, steps: Sequence[AgentStep | None], interrupted: Array) -> StepRows:
        """Builds the next rows, which are first if their episodes are due.

        `steps` has None, WAITING, or a step without observation, for a row with nothing to show: zeros, and ones in an
        action mask. `interrupted` is bool [B]: rows that only keep a place; their steps are None.
        """
        observations, *columns, infos = zip(*(step or _NOTHING for step in steps), strict=True)
        is_first = self.over
        rewards = np.array(columns[0], np.float64)
        terminated, truncated = (np.array(column, np.bool_) for column in columns[1:])
        self.over = terminated | truncated
        waiting = np.array([step == WAITING for step in steps]) if WAITING in steps else np.zeros(0, np.bool_)
        self._episodes.add(rewards, ~(is_first | waiting) if waiting.size else ~is_first)
        episodes = self._episodes.finish(self.over)
        rows = StepRows(
            observation=self._leaves(observations),
            rewards=rewards.astype(np.float32),
            terminated=terminated,
            truncated=truncated,
            is_first=is_first,
            episodes=episodes,
            waiting=waiting,
            info_of=infos.__getitem__,
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
        batch = concatenate(self._observation_space, observations, out)
        leaves = flatten(self._observation_space, batch) if self.mask is None else self.mask.leaves(batch)[0]
        if gaps:
            for leaf, spec in zip(leaves, self.spec_observation, strict=True):
                # A gap may be no element of its space, if categories do not start at 0; any action will do there.
                leaf[gaps] = spec.is_action_mask
        return leaves
