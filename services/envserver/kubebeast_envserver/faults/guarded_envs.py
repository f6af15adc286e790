"""Environments of a vector, stepped one after the other, each guarded separately."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic

import numpy as np

from kubebeast_common.backoff import FaultPolicy
from kubebeast_envserver.faults.guarded_env import Check, Env, GuardedEnv, Spaces, StepT
from kubebeast_envserver.faults.made_env import MadeEnv
from kubebeast_envserver.rows.rows import AllQuarantined, Array, EnvironmentFailure
from kubebeast_envserver.rows.running_statistics import Statistics, merged, shares
from kubebeast_envserver.rows.stream_status import StreamStatus

_PAUSE_S = 0.05
"""Seconds between steps while every environment is broken: their rows are empty, so there is no hurry."""


class GuardedEnvs(Generic[StepT]):
    """Environments of a vector. One that fails is created again with back-off while the others continue."""

    def __init__(
        self,
        make: Callable[[], Env],
        first: MadeEnv[Env],
        spaces: Spaces,
        seeds: Iterable[int | None],
        check: Check[StepT],
        policy: FaultPolicy | None = None,
        status: StreamStatus | None = None,
    ) -> None:
        """Makes an environment for each of `seeds`, except the `first`; one that cannot be made is tried again.

        `check` checks all results of the environments; `status` counts failures.
        """
        policy, status = policy or FaultPolicy(), status or StreamStatus()
        self._envs = [
            GuardedEnv(index, make, spaces, seed, policy, status, check, first if index == 0 else None)
            for index, seed in enumerate(seeds)
        ]
        for env in self._envs:
            env.open()

    def reset(self) -> list[StepT | None]:
        """Returns a first row of each environment; None if it cannot be created again or reset."""
        return [env.reset() for env in self._envs]

    def set_options(self, options: Mapping[int, Mapping[str, Any]]) -> None:
        """Sets the options of all later resets of some environments, by index."""
        for index, of_one in options.items():
            self._envs[index].options = of_one

    def step(self, actions: Iterable[object], over: Iterable[bool]) -> list[StepT | None]:
        """Returns a row of each environment, a first one if marked in `over`; None if it failed or is broken."""
        if all(env.is_broken for env in self._envs):
            next_try_s = min(env.retry_at for env in self._envs) - time.monotonic()
            time.sleep(max(0.0, min(_PAUSE_S, next_try_s)))
        return [
            env.restart() if ended else env.step(action)
            for env, action, ended in zip(self._envs, actions, over, strict=True)
        ]

    def failures(self) -> list[tuple[int, str]]:
        """Returns the index and the last failure of each broken environment, in order. Raises AllQuarantined."""
        if all(env.is_quarantined for env in self._envs):
            raise AllQuarantined(self._envs[-1].last_failure)
        return [(index, env.last_failure) for index, env in enumerate(self._envs) if env.is_broken]

    def statistics(self) -> tuple[Statistics, ...]:
        """Returns the statistics of the wrappers of all environments, merged."""
        return merged(env.statistics() for env in self._envs)

    def restore(self, statistics: Sequence[Statistics], *, frozen: bool) -> None:
        """Gives each environment an equal share of the count."""
        share = shares(statistics, 1 / len(self._envs))
        for env in self._envs:
            env.restore(share, frozen=frozen)

    def render(self) -> Array:
        """Returns uint8 [B, H, W, 3]; [0, 0, 0, 3] while an environment draws nothing. Raises EnvironmentFailure."""
        frames = [frame for env in self._envs if (frame := env.render()) is not None]
        if len(frames) < len(self._envs):
            return np.zeros((0, 0, 0, 3), np.uint8)
        if len({frame.shape for frame in frames}) > 1:
            shapes = ", ".join(str(list(frame.shape)) for frame in frames)
            raise EnvironmentFailure(f"render of several environments returned several shapes: {shapes}")
        return np.stack(frames)

    def close(self) -> None:
        for env in self._envs:
            env.close()
