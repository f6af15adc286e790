"""Any gymnasium environment, stepped one after the other in this process."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import gymnasium
import numpy as np
from gymnasium import Space

from kubebeast_common.backoff import FaultPolicy
from kubebeast_common.env_config import Wrapper
from kubebeast_common.user_code import describe, raise_if_interrupt
from kubebeast_envserver.envs.wrapping import make_env
from kubebeast_envserver.faults.env_checks import EnvCheck
from kubebeast_envserver.faults.guarded_env import Spaces
from kubebeast_envserver.faults.guarded_envs import GuardedEnvs
from kubebeast_envserver.rows.action_mask import ActionMask
from kubebeast_envserver.rows.row_builder import RowBuilder
from kubebeast_envserver.rows.rows import Array, EnvironmentFailure, Step, StepRows
from kubebeast_envserver.rows.stream_status import StreamStatus

MakeCheck = Callable[[Space[Any], ActionMask | None], EnvCheck]

RENDER_MODE = "rgb_array"
_DEFAULT_RENDER_FPS = 30.0


class GymnasiumEnv:
    """B environments of one gymnasium id as a HostedEnv. Observations keep the dtype of their space.

    One that fails is interrupted and created again with back-off while the others play on.
    """

    num_agents = 1

    def __init__(
        self,
        env_id: str,
        num_envs: int,
        env_kwargs: dict[str, Any],
        seed: int | None,
        *,
        wrappers: Sequence[Wrapper] = (),
        render: bool = False,
        policy: FaultPolicy | None = None,
        status: StreamStatus | None = None,
        make_check: MakeCheck = EnvCheck,
    ) -> None:
        """env_id: "Id" or "module:Id", where importing the module registers the id. Environment i gets seed + i.

        render: be a RenderedEnv; only where can_render. status: where failures are counted. make_check: for the space
        of observations and the action mask in it, what looks at all that an environment returns.
        Raises ValueError for an id nobody registered or what is no wrapper, UnsupportedSpaceError for a space that
        cannot be sent, EnvironmentFailure when the first environment cannot be made or has no spaces; another one that
        cannot be made is tried again.
        """
        if render:
            env_kwargs = {**env_kwargs, "render_mode": RENDER_MODE}
        make = partial(make_env, env_id, env_kwargs, wrappers)
        first = make()
        self.can_render, self.render_fps = render_options(first.metadata)
        self.num_envs = num_envs
        spaces = _spaces_of(first, env_id)
        self._builder = RowBuilder(*spaces, num_envs)
        self.spec_observation, self.spec_action = self._builder.spec_observation, self._builder.spec_action
        check = make_check(spaces[0], self._builder.mask)
        seeds = [None if seed is None else seed + index for index in range(num_envs)]
        self._envs: GuardedEnvs[Step] = GuardedEnvs(make, first, spaces, seeds, check, policy, status)

    def reset(self) -> StepRows:
        self._builder.reset()
        return self._rows(self._envs.reset())

    def step(self, actions: list[Array]) -> StepRows:
        return self._rows(self._envs.step(self._builder.split(actions), self._builder.over.tolist()))

    def render(self) -> Array:
        return self._envs.render()

    def close(self) -> None:
        self._envs.close()

    def _rows(self, steps: list[Step | None]) -> StepRows:
        """steps: None of one that is broken: its row holds nothing, interrupted or first. Raises AllQuarantined."""
        broken = np.array([step is None for step in steps])
        rows = self._builder.build(steps, ~self._builder.over & broken)
        return replace(rows, failures=self._envs.failures()) if broken.any() else rows


def render_options(metadata: Any) -> tuple[bool, float]:
    """Whether an environment can be made with RENDER_MODE, and its frames a second. metadata: its own."""
    metadata = metadata or {}
    fps = metadata.get("render_fps")
    is_usable = isinstance(fps, int | float | np.integer) and fps > 0
    return RENDER_MODE in (metadata.get("render_modes") or ()), float(fps) if is_usable else _DEFAULT_RENDER_FPS


def _spaces_of(env: gymnasium.Env[Any, Any], env_id: str) -> Spaces:
    """Raises EnvironmentFailure."""
    try:
        return env.observation_space, env.action_space
    except BaseException as error:
        raise_if_interrupt(error)
        raise EnvironmentFailure(f"{env_id} has no spaces: {describe(error)}") from error
