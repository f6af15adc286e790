"""Environments that step together by themselves: a gymnasium.vector.VectorEnv as a HostedEnv."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from kubebeast_common.user_code import describe, import_user_module, raise_if_interrupt
from kubebeast_envserver.envs.wrapping import register_namespace
from kubebeast_envserver.faults.env_checks import EnvCheck, EnvCheckError
from kubebeast_envserver.rows.action_mask import find_action_mask
from kubebeast_envserver.rows.actions import action_leaves_of, to_actions
from kubebeast_envserver.rows.episodes import EpisodeCounter
from kubebeast_envserver.rows.rows import Array, EnvironmentFailure, StepRows, checked_rewards
from kubebeast_envserver.rows.spaces import flatten, leaves_of

PREFIX = "vector/"
"""Of ids: "vector/CartPole-v1" is what gymnasium.make_vec("CartPole-v1") makes."""
ENVPOOL_PREFIX = "envpool/"
"""Of ids: "envpool/Pong-v5" is what envpool.make("Pong-v5") makes."""


def is_vector_id(env_id: str) -> bool:
    """Whether "Id" or "module:Id" has one of the prefixes: it stands for a whole vector of environments."""
    return env_id.rpartition(":")[2].startswith((PREFIX, ENVPOOL_PREFIX))


def make_vec(env_id: str, num_envs: int, env_kwargs: dict[str, Any]) -> VectorEnv[Any, Any, Any]:
    """B environments of an id with the PREFIX. env_kwargs: of gymnasium.make_vec.

    Raises ValueError for an id nobody registered, EnvironmentFailure where the environments' code raises.
    """
    module, _, name = env_id.rpartition(":")
    try:
        if module:
            import_user_module(module)
        name = name.removeprefix(PREFIX)
        register_namespace(name)
        return gymnasium.make_vec(name, num_envs, **env_kwargs)
    except (gymnasium.error.Error, ImportError) as error:
        raise ValueError(f"env = {env_id!r}: {error}") from error
    except BaseException as error:
        raise_if_interrupt(error)
        raise EnvironmentFailure(f"{env_id} could not be made: {describe(error)}") from error


class VectorEnvRows:
    """B environments of one VectorEnv. They fail together: what one raises, or returns wrongly, ends all of them."""

    num_agents = 1

    def __init__(self, envs: VectorEnv[Any, Any, Any], seed: int | None) -> None:
        """envs: of autoreset mode NEXT_STEP, else ValueError. UnsupportedSpaceError for what cannot be sent."""
        mode = (envs.metadata or {}).get("autoreset_mode")
        if mode != AutoresetMode.NEXT_STEP:
            raise ValueError(
                f"its metadata['autoreset_mode'] is {mode}: make it with AutoresetMode.NEXT_STEP, "
                "in which the last and the first observation of an episode are rows of their own"
            )
        self._envs = envs
        self.num_envs = envs.num_envs
        self._space, self._action_space = envs.single_observation_space, envs.single_action_space
        self.spec_action = action_leaves_of(self._action_space)
        self.spec_observation, self._mask = find_action_mask(leaves_of(self._space), self.spec_action)
        self._check = EnvCheck(batch_space(self._space, self.num_envs))
        self._seed = seed
        self._episodes = EpisodeCounter(self.num_envs)
        self._over = np.zeros(self.num_envs, np.bool_)

    def reset(self) -> StepRows:
        try:
            observation, _ = self._envs.reset(seed=self._seed)
        except BaseException as error:
            raise_if_interrupt(error)
            raise EnvironmentFailure(f"reset raised {describe(error)}") from error
        self._seed = None  # a later reset goes on with the generators: it must not replay the same episodes
        self._episodes.reset()
        self._over = np.zeros(self.num_envs, np.bool_)
        rewards = np.zeros(self.num_envs, np.float32)
        is_first = np.ones(self.num_envs, np.bool_)
        return StepRows(self._leaves(observation), rewards, self._over, self._over, is_first, [])

    def step(self, actions: list[Array]) -> StepRows:
        try:
            result = self._envs.step(to_actions(self._action_space, actions))
            observation, raw_rewards, raw_terminated, raw_truncated, info = result
        except BaseException as error:
            raise_if_interrupt(error)
            raise EnvironmentFailure(f"step raised {describe(error)}") from error
        is_first = self._over
        rewards = checked_rewards(self._column("rewards", raw_rewards, "fiu"))
        rewards[is_first] = 0.0
        terminated = self._column("terminations", raw_terminated, "b").copy()
        truncated = self._column("truncations", raw_truncated, "b").copy()
        self._over = terminated | truncated
        if (self._over & is_first).any():
            env = int(np.argmax(self._over & is_first))
            raise EnvironmentFailure(f"environment {env} ended in the step that resets it: it is not in NEXT_STEP mode")
        leaves = self._leaves(observation)
        self._episodes.add(rewards, ~is_first)
        episodes = self._episodes.finish(self._whole_games(terminated, truncated, info))
        return StepRows(leaves, rewards, terminated, truncated, is_first, episodes)

    def close(self) -> None:
        self._envs.close()

    def _whole_games(self, terminated: Array, truncated: Array, info: dict[str, Any]) -> Array:
        """bool [B]: which of the episodes that ended here, bool [B] each, were the last of their game."""
        return terminated | truncated

    def _leaves(self, observation: Any) -> list[Array]:
        """Arrays of their own, as a vector may write its next step where it has written this one."""
        try:
            self._check.check_observation(observation)
        except EnvCheckError as error:
            raise EnvironmentFailure(str(error), error.kind) from error
        leaves = [leaf.copy() for leaf in flatten(self._space, observation)]
        if self._mask is not None:
            masks = leaves[self._mask.index]
            freed = self._mask.freed(masks)
            forbidden = (freed != masks.astype(np.bool_)).any(axis=1) & ~self._over
            if forbidden.any():
                env = int(np.argmax(forbidden))
                raise EnvironmentFailure(f"the action mask of environment {env} allows no category", "observation")
            leaves[self._mask.index] = freed
        return leaves

    def _column(self, name: str, values: Any, kinds: str) -> Array:
        """[B], of a dtype of one of the `kinds` of NumPy."""
        column = np.asarray(values)
        if column.shape != (self.num_envs,) or column.dtype.kind not in kinds:
            raise EnvironmentFailure(
                f"step returned {name} of {column.dtype} {list(column.shape)}, not [{self.num_envs}]"
            )
        return column
