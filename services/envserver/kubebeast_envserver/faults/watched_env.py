"""Environments with their computing time, episodes and failures in the status that the supervisor reads."""

import contextlib
import time
from collections.abc import Iterator

import numpy as np

from kubebeast_envserver.rows.rows import AllQuarantined, Array, EnvironmentFailure, HostedEnv, StepRows, WrappedEnv
from kubebeast_envserver.rows.stream_status import EpisodeEnd, StreamStatus


@contextlib.contextmanager
def watched(status: StreamStatus) -> Iterator[float]:
    """Marks the time in which environments compute: the supervisor ends a process that stays inside for too long.

    Yields time.monotonic() of the beginning.
    """
    status.busy_since = since = time.monotonic()
    try:
        yield since
    except EnvironmentFailure as failure:
        if not isinstance(failure, AllQuarantined):  # its failures were counted one by one
            status.count_failure(failure.kind)
        raise
    finally:
        status.busy_since = 0.0


class WatchedEnv(WrappedEnv):
    """A HostedEnv that records the steps, episodes and failures of another one in its stream's status."""

    def __init__(self, env: HostedEnv, status: StreamStatus) -> None:
        super().__init__(env)
        self._status = status
        self._step_seconds = status.step_seconds
        self._over = np.ones(env.num_envs, np.bool_)
        """bool [B]: no game is in progress, according to the newest rows."""

    def reset(self) -> StepRows:
        with watched(self._status):
            rows = self._env.reset()
        self._over = _without_game(rows)
        return rows

    def step(self, actions: list[Array]) -> StepRows:
        try:
            with watched(self._status) as since:
                rows = self._env.step(actions)
        except EnvironmentFailure:
            self._status.episodes_interrupted += self.num_envs - int(np.count_nonzero(self._over))
            raise
        self._step_seconds.observe(time.monotonic() - since)
        self._count(rows)
        return rows

    def close(self) -> None:
        with watched(self._status):
            super().close()

    def _count(self, rows: StepRows) -> None:
        if rows.interrupted.any():
            self._status.episodes_interrupted += int(np.count_nonzero(rows.interrupted & ~self._over))
        self._status.env_steps += rows.num_steps()
        for env, episode_return, length in rows.episodes:
            end: EpisodeEnd = "terminated" if rows.terminated[env] else "truncated"
            self._status.count_episode(end, episode_return, length)
        self._over = _without_game(rows)


def _without_game(rows: StepRows) -> Array:
    """Returns bool [B]: the row is final, or belongs to a broken environment."""
    over = rows.terminated | rows.truncated
    for env, _ in rows.failures:
        over[env] = True
    return over
