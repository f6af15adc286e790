"""One gymnasium environment that may fail: what it returns is checked, and it is made anew after a while."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np

from kubebeast_envserver.backoff import Backoff
from kubebeast_envserver.contract import Contract, ContractError, Step
from kubebeast_envserver.failures import FailureWindow, Repetitions
from kubebeast_envserver.rows import Array, EnvironmentFailure
from kubebeast_envserver.stream_status import FailureKind, StreamStatus

Env = gymnasium.Env[Any, Any]

Spaces = tuple[gymnasium.Space[Any], gymnasium.Space[Any]]
"""Of observations and of actions."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class FaultPolicy:
    """When an environment is quarantined: never made again."""

    max_failures: int = 5
    """So many failures ..."""
    failure_window_s: float = 60.0
    """... within so many seconds."""


class GuardedEnv:
    """An environment of a vector. No exception of its own leaves it: a call that failed returns None.

    The back-off is a deadline that `restart` looks at; nothing here waits.
    """

    def __init__(
        self,
        index: int,
        make: Callable[[], Env],
        spaces: Spaces,
        seed: int | None,
        policy: FaultPolicy,
        status: StreamStatus,
        env: Env | None = None,
    ) -> None:
        """spaces: what `make` must keep to. seed: of the first reset. env: one that is made already."""
        self._index = index
        self._make = make
        self._spaces = spaces
        self._contract = Contract(spaces[0])
        self._first_seed = self._next_seed = seed
        self._policy = policy
        self._status = status
        self._failures = FailureWindow(policy.max_failures, policy.failure_window_s)
        self._num_failures = 0
        self._backoff = Backoff()
        self._repetitions = Repetitions()
        self._env = env
        self._made_at = time.monotonic()
        self.retry_at = 0.0
        """time.monotonic() before which `restart` leaves a broken environment alone; inf in quarantine."""
        self.last_failure = ""
        """Why it failed last, for people."""

    @property
    def is_broken(self) -> bool:
        return self._env is None

    @property
    def is_quarantined(self) -> bool:
        return self.retry_at == np.inf

    def open(self) -> None:
        """Makes the environment where it is broken and not in quarantine."""
        if self._env is not None or self.is_quarantined:
            return
        try:
            self._env = self._made()
        except ContractError as error:
            self._note(error.kind, str(error), error)
        except Exception as error:
            self._note("exception", f"it could not be made: {error!r}", error)

    def reset(self) -> Step | None:
        """Starts an episode: its first row. A broken environment is made anew whatever its back-off."""
        self.open()
        if self._env is None:
            return None
        seed, self._next_seed = self._next_seed, None  # later resets go on with the generators: no episode twice
        began = time.monotonic()
        try:
            observation, _ = self._env.reset(seed=seed)
            self._status.reset_seconds.observe(time.monotonic() - began)
            return self._contract.check_observation(observation), 0.0, False, False
        except ContractError as error:
            self._note(error.kind, f"reset: {error}", error)
        except Exception as error:
            self._note("exception", f"reset raised {error!r}", error)
        return None

    def restart(self) -> Step | None:
        """As `reset`, but a broken environment only when its back-off is over."""
        return None if self._env is None and time.monotonic() < self.retry_at else self.reset()

    def step(self, action: Any) -> Step | None:
        if self._env is None:
            return None
        try:
            return self._contract.check_step(*self._env.step(action))
        except ContractError as error:
            self._note(error.kind, str(error), error)
        except Exception as error:
            self._note("exception", f"step raised {error!r}", error)
        return None

    def render(self) -> Array:
        """What the environment draws. Raises EnvironmentFailure."""
        if self._env is None:
            raise EnvironmentFailure(f"environment {self._index} failed: {self.last_failure}")
        try:
            return np.asarray(self._env.render())
        except Exception as error:
            raise EnvironmentFailure(f"render raised {error!r}") from error

    def close(self) -> None:
        """Idempotent."""
        env, self._env = self._env, None
        if env is not None:
            try:
                env.close()
            except Exception:
                logger.warning("closing environment %d failed", self._index, exc_info=True)

    def _made(self) -> Env:
        if self._num_failures:
            self._status.env_restarts += 1
        env = self._make()
        if (env.observation_space, env.action_space) != self._spaces:
            env.close()
            raise ContractError("observation", "its spaces differ from those of the first environment")
        self._made_at = time.monotonic()
        return env

    def _note(self, kind: FailureKind, reason: str, error: Exception) -> None:
        self.close()
        self._status.count_failure(kind)
        self._num_failures += 1
        self.last_failure = reason
        if self._first_seed is not None:  # the same seed would lead to the same failure
            fresh = np.random.SeedSequence([self._first_seed, self._num_failures])
            self._next_seed = int(fresh.generate_state(1)[0])
        if self._failures.add():
            self.retry_at = np.inf
            self._status.envs_quarantined += 1
            text = "environment %d is given up: %d failures within %g s, the last one of kind %s: %s"
            logger.error(text, self._index, self._policy.max_failures, self._policy.failure_window_s, kind, reason)
            return
        now = time.monotonic()
        if now - self._made_at > self._policy.failure_window_s:
            self._backoff.reset()
        self.retry_at = now + self._backoff.next_delay_s()
        if self._repetitions.is_news(reason):
            text = "environment %d failed (%s) and is made anew: %s"
            traceback = None if isinstance(error, ContractError) else error
            logger.warning(text, self._index, kind, reason, exc_info=traceback)
