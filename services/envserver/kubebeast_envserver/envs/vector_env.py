"""A gymnasium.vector.VectorEnv, which steps its environments together by itself, as a HostedEnv."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from kubebeast_common.user_code import describe, import_user_module, raise_if_interrupt, shadow_hint
from kubebeast_envserver.envs.libraries.minigrid_env import with_true_bounds_of_each
from kubebeast_envserver.envs.registration import registered_id
from kubebeast_envserver.envs.wrapping import hint_at
from kubebeast_envserver.faults.env_checks import EnvCheck, EnvCheckError
from kubebeast_envserver.rows.action_mask import find_action_mask
from kubebeast_envserver.rows.actions import action_leaves_of, to_actions
from kubebeast_envserver.rows.episodes import EpisodeCounter, info_of_one
from kubebeast_envserver.rows.limits import check_limits
from kubebeast_envserver.rows.rows import Array, EnvironmentFailure, StepRows, WithoutOptions, checked_rewards
from kubebeast_envserver.rows.running_statistics import Statistics, not_finite_in, read, write
from kubebeast_envserver.rows.spaces import flatten
from kubebeast_envserver.rows.texts import without_texts

PREFIX = "vector/"
"""Prefix of ids: "vector/CartPole-v1" stands for gymnasium.make_vec("CartPole-v1")."""
ENVPOOL_PREFIX = "envpool/"
"""Prefix of ids: "envpool/Pong-v5" stands for envpool.make("Pong-v5")."""


def is_vector_id(env_id: str) -> bool:
    """Returns True if "Id" or "module:Id" has one of the prefixes and so stands for a whole vector of environments."""
    return env_id.rpartition(":")[2].startswith((PREFIX, ENVPOOL_PREFIX))


def make_vec(env_id: str, num_envs: int, env_kwargs: dict[str, Any]) -> VectorEnv[Any, Any, Any]:
    """Makes B environments of an id with the PREFIX. `env_kwargs` are arguments of gymnasium.make_vec.

    Raises ValueError for an unregistered id, and EnvironmentFailure if the code of the environments raises.
    """
    module, _, name = env_id.rpartition(":")
    try:
        if module:
            import_user_module(module)
        name = name.removeprefix(PREFIX)
        return with_true_bounds_of_each(gymnasium.make_vec(registered_id(name), num_envs, **env_kwargs))
    except (gymnasium.error.Error, ImportError) as error:
        raise ValueError(
            f"env = {env_id!r}: {error}{shadow_hint(module, error) or hint_at(module, name, error)}"
        ) from error
    except BaseException as error:
        raise_if_interrupt(error)
        raise EnvironmentFailure(f"{env_id} could not be made: {describe(error)}") from error


class VectorEnvRows(WithoutOptions):
    """B environments of one VectorEnv. They fail together: an exception or invalid value of one ends all of them."""

    kind = "environments of gymnasium.make_vec"
    num_agents = 1
    takes_turns = False

    def __init__(self, envs: VectorEnv[Any, Any, Any], seed: int | None) -> None:
        """Raises ValueError if the autoreset mode is not NEXT_STEP, and UnsupportedSpaceError for spaces that cannot be
        sent.
        """
        mode = (envs.metadata or {}).get("autoreset_mode")
        if mode != AutoresetMode.NEXT_STEP:
            raise ValueError(
                f"its metadata['autoreset_mode'] is {mode}: make it with AutoresetMode.NEXT_STEP, "
                "in which the last and the first observation of an episode are rows of their own"
            )
        self._envs = envs
        self.num_envs = envs.num_envs
        self._space, self._action_space = without_texts(envs.single_observation_space), envs.single_action_space
        self.spec_action = action_leaves_of(self._action_space)
        self.spec_observation, self._mask = find_action_mask(self._space, self._action_space)
        check_limits(self.spec_observation, self.spec_action, self.num_envs)
        self._check = EnvCheck(batch_space(self._space, self.num_envs))
        self._seed = seed
        self._episodes = EpisodeCounter(self.num_envs)
        self._over = np.zeros(self.num_envs, np.bool_)

    def reset(self) -> StepRows:
        try:
            observation, info = self._envs.reset(seed=self._seed)
        except BaseException as error:
            raise_if_interrupt(error)
            raise EnvironmentFailure(f"reset raised {describe(error)}") from error
        self._seed = None  # a later reset continues with the generators: it must not replay the same episodes
        self._episodes.reset()
        self._over = np.zeros(self.num_envs, np.bool_)
        self._look_at(info)
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
        exact = self._column("rewards", raw_rewards, "fiu")
        rewards = checked_rewards(exact)
        rewards[is_first] = 0.0
        terminated = self._column("terminations", raw_terminated, "b").copy()
        truncated = self._column("truncations", raw_truncated, "b").copy()
        self._over = terminated | truncated
        if (self._over & is_first).any():
            env = int(np.argmax(self._over & is_first))
            raise EnvironmentFailure(f"environment {env} ended in the step that resets it: it is not in NEXT_STEP mode")
        leaves = self._leaves(observation)
        self._look_at(info)
        self._episodes.add(np.where(is_first, 0.0, exact), ~is_first)
        episodes = self._episodes.finish(self._whole_games(terminated, truncated, info))
        if self._over.any():
            self.statistics()
        return StepRows(
            observation=leaves,
            rewards=rewards,
            terminated=terminated,
            truncated=truncated,
            is_first=is_first,
            episodes=episodes,
            info_of=partial(info_of_one, info),
        )

    def statistics(self) -> tuple[Statistics, ...]:
        """See StatisticsKeeper. Raises EnvironmentFailure if they are not finite: the environments are made anew."""
        found = read(self._envs)
        if problem := not_finite_in(found):
            raise EnvironmentFailure(f"{problem}: an environment sent a number too large for them")
        return found

    def restore(self, statistics: Sequence[Statistics], *, frozen: bool) -> None:
        write(self._envs, statistics, frozen=frozen)

    def close(self) -> None:
        self._envs.close()

    def _whole_games(self, terminated: Array, truncated: Array, info: dict[str, Any]) -> Array:
        """Returns bool [B]: an episode that ended here, by `terminated` or `truncated`, was the last of its game."""
        return terminated | truncated

    def _leaves(self, observation: Any) -> list[Array]:
        """Returns new arrays, as a vector may write its next step over this one."""
        try:
            observation = self._check.check_observation(observation)
        except EnvCheckError as error:
            raise EnvironmentFailure(str(error), error.kind) from error
        with np.errstate(all="ignore"):  # an environment may have set errors to raise
            if self._mask is None:
                return [leaf.copy() for leaf in flatten(self._space, observation)]
            leaves, is_wrong = self._mask.leaves(observation)
        forbidden = is_wrong & ~self._over
        if forbidden.any():
            env = int(np.argmax(forbidden))
            raise EnvironmentFailure(
                f"the action mask at {self._mask.path!r} of environment {env} leaves a choice no category, or "
                "holds numbers below 0",
                "observation",
            )
        return [leaf.copy() for leaf in leaves]

    def _look_at(self, info: Any) -> None:
        if self._mask is None:
            self._check.look_at(info)

    def _column(self, name: str, values: Any, kinds: str) -> Array:
        """Returns an array [B]. Raises EnvironmentFailure for another shape, or a dtype of other `kinds` of NumPy."""
        column = np.asarray(values)
        if column.shape != (self.num_envs,) or column.dtype.kind not in kinds:
            raise EnvironmentFailure(
                f"step returned {name} of {column.dtype} {list(column.shape)}, not [{self.num_envs}]"
            )
        return column
