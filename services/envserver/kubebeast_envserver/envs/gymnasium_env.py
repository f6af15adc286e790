"""Any gymnasium environment, stepped one after the other in this process."""

import time
from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, iterate

from kubebeast_common.backoff import FaultPolicy
from kubebeast_common.user_code import describe, import_user_module, raise_if_interrupt
from kubebeast_envserver.envs import older_gym
from kubebeast_envserver.faults.env_checks import Step
from kubebeast_envserver.faults.guarded_env import Env, GuardedEnv, Spaces
from kubebeast_envserver.rows.action_mask import find_action_mask
from kubebeast_envserver.rows.actions import action_leaves_of, to_actions
from kubebeast_envserver.rows.episodes import EpisodeCounter
from kubebeast_envserver.rows.rows import AllQuarantined, Array, EnvironmentFailure, StepRows
from kubebeast_envserver.rows.spaces import flatten, leaves_of
from kubebeast_envserver.rows.stream_status import StreamStatus

_RENDER_MODE = "rgb_array"
_DEFAULT_RENDER_FPS = 30.0
_PAUSE_S = 0.05
"""Between rows while every environment is broken: they hold nothing, so there is no hurry."""


class GymnasiumEnv:
    """B environments of one gymnasium id as a HostedEnv. Observations keep the dtype of their space.

    One that fails is interrupted and created again with back-off while the others play on.
    """

    def __init__(
        self,
        env_id: str,
        num_envs: int,
        env_kwargs: dict[str, Any],
        seed: int | None,
        *,
        render: bool = False,
        policy: FaultPolicy | None = None,
        status: StreamStatus | None = None,
    ) -> None:
        """env_id: "Id" or "module:Id", where importing the module registers the id. Environment i gets seed + i.

        render: be a RenderedEnv; only where can_render. status: where failures are counted.
        Raises ValueError for an id nobody registered, UnsupportedSpaceError for a space that cannot be sent,
        EnvironmentFailure when the first environment cannot be made or has no spaces; another one that cannot be made
        is tried again.
        """
        if render:
            env_kwargs = {**env_kwargs, "render_mode": _RENDER_MODE}
        first = make_env(env_id, env_kwargs)
        metadata = first.metadata or {}
        self.can_render = _RENDER_MODE in (metadata.get("render_modes") or ())
        """Whether the environment can be made with `render`."""
        fps = metadata.get("render_fps")
        self.render_fps = float(fps) if isinstance(fps, int | float | np.integer) and fps > 0 else _DEFAULT_RENDER_FPS
        self.num_envs = num_envs
        self._observation_space, self._action_space = _spaces_of(first, env_id)
        self.spec_action = action_leaves_of(self._action_space)
        self.spec_observation, self._mask = find_action_mask(leaves_of(self._observation_space), self.spec_action)
        self._batched_actions = batch_space(self._action_space, num_envs)
        nothing = create_empty_array(self._observation_space, 1)
        (self._nothing,) = iterate(batch_space(self._observation_space, 1), nothing)
        policy, status = policy or FaultPolicy(), status or StreamStatus()
        self._envs = [
            GuardedEnv(
                index,
                lambda: _make(env_id, env_kwargs),
                (self._observation_space, self._action_space),
                None if seed is None else seed + index,
                policy,
                status,
                first if index == 0 else None,
                self._mask,
            )
            for index in range(num_envs)
        ]
        for env in self._envs:
            env.open()
        self._episodes = EpisodeCounter(num_envs)
        self._over = np.zeros(num_envs, np.bool_)
        """bool [B]: the newest row is final or interrupted, so that the next step resets."""

    def reset(self) -> StepRows:
        self._episodes.reset()
        return self._rows([env.reset() for env in self._envs], np.ones(self.num_envs, np.bool_))

    def step(self, actions: list[Array]) -> StepRows:
        if all(env.is_broken for env in self._envs):
            next_try_s = min(env.retry_at for env in self._envs) - time.monotonic()
            time.sleep(max(0.0, min(_PAUSE_S, next_try_s)))
        is_first = self._over
        batch = iterate(self._batched_actions, to_actions(self._action_space, actions))
        steps = [
            env.restart() if over else env.step(action)
            for env, action, over in zip(self._envs, batch, is_first.tolist(), strict=True)
        ]
        return self._rows(steps, is_first)

    def render(self) -> Array:
        try:
            frames = np.stack([env.render() for env in self._envs])
        except ValueError as error:
            raise EnvironmentFailure(f"render returned frames of several shapes: {error}") from error
        if frames.dtype != np.uint8 or frames.ndim != 4 or frames.shape[3] != 3:
            raise EnvironmentFailure(f"render returned {frames.dtype} {list(frames.shape)}, not uint8 [B, H, W, 3]")
        return frames

    def close(self) -> None:
        for env in self._envs:
            env.close()

    def _rows(self, steps: list[Step | None], is_first: Array) -> StepRows:
        """steps: None for an environment that is broken."""
        gap = self._nothing, 0.0, False, False
        observations, *columns = zip(*(step or gap for step in steps), strict=True)
        rewards = np.array(columns[0], np.float32)
        terminated, truncated = (np.array(column, np.bool_) for column in columns[1:])
        out: Any = create_empty_array(self._observation_space, self.num_envs)
        batch = concatenate(self._observation_space, observations, out)
        self._over = terminated | truncated
        self._episodes.add(rewards, ~is_first)
        episodes = self._episodes.finish(self._over)
        leaves = flatten(self._observation_space, batch)
        if self._mask is not None:
            leaves[self._mask.index] = self._mask.freed(leaves[self._mask.index])
        rows = StepRows(leaves, rewards, terminated, truncated, is_first, episodes)
        broken = [i for i, step in enumerate(steps) if step is None]
        return self._keep_places(rows, broken) if broken else rows

    def _keep_places(self, rows: StepRows, broken: list[int]) -> StepRows:
        """The rows where those of the environments `broken` hold nothing: each that is not first is interrupted.

        Raises AllQuarantined.
        """
        if all(env.is_quarantined for env in self._envs):
            raise AllQuarantined(f"every environment failed too often, the last one: {self._envs[-1].last_failure}")
        for leaf, spec in zip(rows.observation, self.spec_observation, strict=True):
            # A gap may be no element of its space, whose categories can start elsewhere; there any action will do.
            leaf[broken] = spec.is_action_mask
        interrupted = ~rows.is_first & np.isin(np.arange(self.num_envs), broken)
        self._episodes.reset(interrupted)
        self._over |= interrupted
        return replace(
            rows,
            truncated=rows.truncated | interrupted,
            interrupted=interrupted,
            failures=[(i, self._envs[i].last_failure) for i in broken],
        )


def _make(env_id: str, env_kwargs: dict[str, Any]) -> Env:
    name = env_id.rpartition(":")[2]
    if name.startswith(older_gym.PREFIX):
        return older_gym.make(name, env_kwargs)
    return gymnasium.make(name, **env_kwargs)


def _spaces_of(env: Env, env_id: str) -> Spaces:
    """Raises EnvironmentFailure."""
    try:
        return env.observation_space, env.action_space
    except BaseException as error:
        raise_if_interrupt(error)
        raise EnvironmentFailure(f"{env_id} has no spaces: {describe(error)}") from error


def make_env(env_id: str, env_kwargs: dict[str, Any]) -> Env:
    """One environment of "Id" or "module:Id". Raises ValueError for an id nobody registered, EnvironmentFailure."""
    module = env_id.rpartition(":")[0]
    try:
        if module:
            import_user_module(module)
        return _make(env_id, env_kwargs)
    except (gymnasium.error.Error, ImportError) as error:
        raise ValueError(f"env = {env_id!r}: {error}") from error
    except BaseException as error:
        raise_if_interrupt(error)
        raise EnvironmentFailure(f"{env_id} could not be made: {describe(error)}") from error
