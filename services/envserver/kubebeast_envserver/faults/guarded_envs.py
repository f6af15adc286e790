"""The environments of a vector, stepped one after the other, each guarded on its own."""

import time
from collections.abc import Callable, Iterable
from typing import Generic

import numpy as np

from kubebeast_common.backoff import FaultPolicy
from kubebeast_envserver.faults.guarded_env import Check, Env, GuardedEnv, Spaces, StepT
from kubebeast_envserver.rows.rows import AllQuarantined, Array, EnvironmentFailure
from kubebeast_envserver.rows.stream_status import StreamStatus

_PAUSE_S = 0.05
"""Between steps while every environment is broken: their rows hold nothing, so there is no hurry."""


class GuardedEnvs(Generic[StepT]):
    """One that fails is created again with back-off while the others play on."""

    def __init__(
        self,
        make: Callable[[], Env],
        first: Env,
        spaces: Spaces,
        seeds: Iterable[int | None],
        check: Check[StepT],
        policy: FaultPolicy | None = None,
        status: StreamStatus | None = None,
    ) -> None:
        """Makes an environment for each of `seeds`, but the `first`; one that cannot be made is tried again.

        check: of all that they return. status: where failures are counted.
        """
        policy, status = policy or FaultPolicy(), status or StreamStatus()
        self._envs = [
            GuardedEnv(index, make, spaces, seed, policy, status, check, first if index == 0 else None)
            for index, seed in enumerate(seeds)
        ]
        for env in self._envs:
            env.open()

    def reset(self) -> list[StepT | None]:
        """A first row of each; None of one that is broken, although it was created again."""
        return [env.reset() for env in self._envs]

    def step(self, actions: Iterable[object], over: Iterable[bool]) -> list[StepT | None]:
        """A row of each, a first one where `over`. None: it failed, or is broken."""
        if all(env.is_broken for env in self._envs):
            next_try_s = min(env.retry_at for env in self._envs) - time.monotonic()
            time.sleep(max(0.0, min(_PAUSE_S, next_try_s)))
        return [
            env.restart() if ended else env.step(action)
            for env, action, ended in zip(self._envs, actions, over, strict=True)
        ]

    def failures(self) -> list[tuple[int, str]]:
        """The environments that are broken, in order, and why they failed last. Raises AllQuarantined."""
        if all(env.is_quarantined for env in self._envs):
            raise AllQuarantined(self._envs[-1].last_failure)
        return [(index, env.last_failure) for index, env in enumerate(self._envs) if env.is_broken]

    def render(self) -> Array:
        """uint8 [B, H, W, 3]. Raises EnvironmentFailure."""
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
