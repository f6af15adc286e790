"""Environments whose supervisor sees how long they compute, what they played and how they failed."""

import contextlib
import time
from collections.abc import Iterator

import numpy as np

from kubebeast_envserver.rows import AllQuarantined, Array, EnvironmentFailure, HostedEnv, StepRows
from kubebeast_envserver.stream_status import StreamStatus


@contextlib.contextmanager
def watched(status: StreamStatus) -> Iterator[None]:
    """Around whatever environments compute: the supervisor ends a process that stays inside for too long."""
    status.busy_since = time.monotonic()
    try:
        yield
    except EnvironmentFailure as failure:
        if not isinstance(failure, AllQuarantined):  # whose failures were counted one by one
            status.count_failure(failure.kind)
        raise
    finally:
        status.busy_since = 0.0


class WatchedEnv:
    """A HostedEnv that keeps the books of another one in its stream's status."""

    def __init__(self, env: HostedEnv, status: StreamStatus) -> None:
        self.spec_observation = env.spec_observation
        self.spec_action = env.spec_action
        self.num_envs = env.num_envs
        self._env = env
        self._status = status

    def reset(self) -> StepRows:
        with watched(self._status):
            return self._env.reset()

    def step(self, actions: list[Array]) -> StepRows:
        with watched(self._status):
            rows = self._env.step(actions)
        idle = np.count_nonzero(rows.is_first) + np.count_nonzero(rows.interrupted)
        self._status.env_steps += self.num_envs - int(idle)
        self._status.episodes += len(rows.episodes)
        return rows

    def close(self) -> None:
        with watched(self._status):
            self._env.close()
