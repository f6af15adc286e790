"""Any gymnasium environment, stepped one after the other in this process."""

import importlib
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode

from kubebeast_envserver.episodes import EpisodeCounter
from kubebeast_envserver.rows import Array, EnvironmentFailure, StepRows, checked_rewards
from kubebeast_envserver.spaces import flatten, leaves_of, unflatten


class GymnasiumEnv:
    """B environments of one gymnasium id as a HostedEnv. Observations keep the dtype of their space."""

    def __init__(self, env_id: str, num_envs: int, env_kwargs: dict[str, Any], seed: int | None) -> None:
        """env_id: "Id" or "module:Id", where importing the module registers the id. Environment i gets seed + i.

        Raises ValueError for an id nobody registered, UnsupportedSpaceError for a space that cannot be sent.
        """
        module, _, name = env_id.rpartition(":")
        try:
            if module:
                importlib.import_module(module)
            self._envs: gymnasium.vector.VectorEnv[Any, Any, Any] = gymnasium.make_vec(
                name,
                num_envs=num_envs,
                vectorization_mode="sync",
                vector_kwargs={"autoreset_mode": AutoresetMode.NEXT_STEP},
                **env_kwargs,
            )
        except (gymnasium.error.Error, ImportError) as error:
            raise ValueError(f"env = {env_id!r}: {error}") from error
        except Exception as error:
            raise EnvironmentFailure(f"{env_id} could not be made: {error!r}") from error
        self.num_envs = num_envs
        self.spec_observation = leaves_of(self._envs.single_observation_space)
        self.spec_action = leaves_of(self._envs.single_action_space)
        self._seed = seed
        self._episodes = EpisodeCounter(num_envs)
        self._final = np.zeros(num_envs, np.bool_)

    def reset(self) -> StepRows:
        try:
            observation, _ = self._envs.reset(seed=self._seed)
        except Exception as error:
            raise EnvironmentFailure(f"reset raised {error!r}") from error
        self._seed = None  # a later reset goes on with the generators: it must not replay the same episodes
        self._episodes.reset()
        self._final = np.zeros(self.num_envs, np.bool_)
        return StepRows(
            observation=flatten(self._envs.single_observation_space, observation),
            rewards=np.zeros(self.num_envs, np.float32),
            terminated=self._final,
            truncated=self._final,
            is_first=np.ones(self.num_envs, np.bool_),
            episodes=[],
        )

    def step(self, actions: list[Array]) -> StepRows:
        try:
            batch = unflatten(self._envs.single_action_space, actions)
            observation, raw_rewards, terminated, truncated, _ = self._envs.step(batch)
        except Exception as error:
            raise EnvironmentFailure(f"step raised {error!r}") from error
        rewards = checked_rewards(raw_rewards)
        is_first = self._final
        self._final = terminated | truncated
        self._episodes.add(rewards, ~is_first)
        return StepRows(
            observation=flatten(self._envs.single_observation_space, observation),
            rewards=rewards,
            terminated=terminated.astype(np.bool_),
            truncated=truncated.astype(np.bool_),
            is_first=is_first,
            episodes=self._episodes.finish(self._final),
        )

    def close(self) -> None:
        self._envs.close()
