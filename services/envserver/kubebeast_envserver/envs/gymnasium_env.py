"""Environments of gymnasium, stepped one after the other in this process."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import gymnasium
import numpy as np
from gymnasium import Space

from kubebeast_common.backoff import FaultPolicy
from kubebeast_common.spec.env_config import Wrapper
from kubebeast_common.user_code import describe, raise_if_interrupt
from kubebeast_envserver.envs.wrapping import kind_without_options, make_env
from kubebeast_envserver.faults.env_checks import EnvCheck
from kubebeast_envserver.faults.guarded_env import Spaces
from kubebeast_envserver.faults.guarded_envs import GuardedEnvs
from kubebeast_envserver.faults.made_env import make_with_processes
from kubebeast_envserver.rows.action_mask import ActionMask
from kubebeast_envserver.rows.row_builder import RowBuilder
from kubebeast_envserver.rows.rows import Array, EnvironmentFailure, OptionsError, Step, StepRows
from kubebeast_envserver.rows.running_statistics import Statistics
from kubebeast_envserver.rows.stream_status import StreamStatus
from kubebeast_envserver.rows.texts import without_texts

MakeCheck = Callable[[Space[Any], ActionMask | None], EnvCheck]

RENDER_MODES = ("rgb_array", "rgb_array_list")
"""Render modes that draw pictures, the preferred one first."""
_DEFAULT_RENDER_FPS = 30.0


class GymnasiumEnv:
    """B environments of one gymnasium id as a HostedEnv. Observations keep the dtype of their space.

    An environment that fails is interrupted and created again with back-off while the others continue.
    """

    num_agents = 1
    takes_turns = False

    def __init__(
        self,
        env_id: str,
        num_envs: int,
        env_kwargs: dict[str, Any],
        seed: int | None,
        *,
        wrappers: Sequence[Wrapper] = (),
        render: str | None = None,
        policy: FaultPolicy | None = None,
        status: StreamStatus | None = None,
        make_check: MakeCheck = EnvCheck,
    ) -> None:
        """Makes environments of "Id", or of "module:Id" if importing the module registers the id. Environment i gets
        seed + i.

        With `render`, a render_mode, this is a RenderedEnv. `status` counts failures. `make_check` makes the check of
        all results of an environment from the observation space and its action mask.

        Raises ValueError for an unregistered id or an invalid wrapper, UnsupportedSpaceError for a space that cannot be
        sent, and EnvironmentFailure if the first environment cannot be made or has no spaces. Any other environment
        that cannot be made is tried again.
        """
        if render is not None:
            env_kwargs = {**env_kwargs, "render_mode": render}
        make = partial(make_env, env_id, env_kwargs, wrappers)
        made = make_with_processes(make)
        first = made.env
        self.render_mode, self.render_fps = render_options(first.metadata)
        self.num_envs = num_envs
        self._without_options = kind_without_options(first)
        spaces = _spaces_of(first, env_id)
        sent = without_texts(spaces[0])
        self._builder = RowBuilder(sent, spaces[1], num_envs)
        self.spec_observation, self.spec_action = self._builder.spec_observation, self._builder.spec_action
        check = make_check(sent, self._builder.mask)
        seeds = [None if seed is None else seed + index for index in range(num_envs)]
        self._envs: GuardedEnvs[Step] = GuardedEnvs(make, made, spaces, seeds, check, policy, status)

    def reset(self) -> StepRows:
        self._builder.reset()
        return self._rows(self._envs.reset())

    def set_options(self, options: Mapping[int, Mapping[str, Any]]) -> None:
        if self._without_options:
            raise OptionsError(self._without_options)
        self._envs.set_options(options)

    def step(self, actions: list[Array]) -> StepRows:
        return self._rows(self._envs.step(self._builder.split(actions), self._builder.over.tolist()))

    def statistics(self) -> tuple[Statistics, ...]:
        return self._envs.statistics()

    def restore(self, statistics: Sequence[Statistics], *, frozen: bool) -> None:
        self._envs.restore(statistics, frozen=frozen)

    def render(self) -> Array:
        return self._envs.render()

    def close(self) -> None:
        self._envs.close()

    def _rows(self, steps: list[Step | None]) -> StepRows:
        """Builds the rows. A step of None is that of a broken environment: its row is empty, and interrupted or first.
        Raises AllQuarantined.
        """
        broken = np.array([step is None for step in steps])
        rows = self._builder.build(steps, ~self._builder.over & broken)
        return replace(rows, failures=self._envs.failures()) if broken.any() else rows


def render_options(metadata: Any) -> tuple[str | None, float]:
    """Returns the first of RENDER_MODES in the metadata of an environment, if any, and its frames per second."""
    metadata = metadata if isinstance(metadata, Mapping) else {}
    fps = metadata.get("render_fps")
    is_usable = isinstance(fps, int | float | np.integer | np.floating) and 0 < fps < np.inf
    modes = metadata.get("render_modes") or ()
    mode = next((mode for mode in RENDER_MODES if mode in modes), None)
    return mode, float(fps) if is_usable else _DEFAULT_RENDER_FPS


def _spaces_of(env: gymnasium.Env[Any, Any], env_id: str) -> Spaces:
    """Returns the spaces of observations and actions. Raises EnvironmentFailure."""
    try:
        return env.observation_space, env.action_space
    except BaseException as error:
        raise_if_interrupt(error)
        raise EnvironmentFailure(f"{env_id} has no spaces: {describe(error)}") from error
