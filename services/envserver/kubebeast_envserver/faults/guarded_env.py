"""One environment that may fail: its results are checked, and it is created again after a delay."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any, Generic, Protocol, TypeVar

import gymnasium
import numpy as np

from kubebeast_common.backoff import FaultPolicy, Repetitions, Retries
from kubebeast_common.seeds import derived_seed
from kubebeast_common.user_code import describe, raise_if_interrupt
from kubebeast_envserver.faults.env_checks import EnvCheckError, old_gym_hint
from kubebeast_envserver.faults.made_env import MadeEnv, make_with_processes
from kubebeast_envserver.faults.pictures import to_frame
from kubebeast_envserver.rows import running_statistics
from kubebeast_envserver.rows.rows import Array, EnvironmentFailure
from kubebeast_envserver.rows.running_statistics import Statistics
from kubebeast_envserver.rows.stream_status import FailureKind, StreamStatus

StepT = TypeVar("StepT")
StepT_co = TypeVar("StepT_co", covariant=True)

Spaces = tuple[gymnasium.Space[Any], gymnasium.Space[Any]]
"""Spaces of observations and of actions."""


class Env(Protocol):
    """Interface of a guarded environment: that of gymnasium.Env, also for several agents."""

    @property
    def observation_space(self) -> gymnasium.Space[Any]: ...

    @property
    def action_space(self) -> gymnasium.Space[Any]: ...

    @property
    def reset(self) -> Callable[..., Any]:
        """Takes `seed` by name, and, if it takes options, `options`."""

    def step(self, action: Any, /) -> Any: ...

    def render(self) -> Any: ...

    def close(self) -> object: ...


class Check(Protocol[StepT_co]):
    """Conversion of the results of an environment to rows. Its methods raise EnvCheckError."""

    def check_reset(self, result: Any, /) -> StepT_co: ...

    def check_step(self, result: Any, /) -> StepT_co: ...


logger = logging.getLogger(__name__)


class GuardedEnv(Generic[StepT]):
    """An environment of a vector. Its failures are not raised: a call that failed returns None.

    The back-off is a deadline that `restart` checks; no method waits.
    """

    def __init__(
        self,
        index: int,
        make: Callable[[], Env],
        spaces: Spaces,
        seed: int | None,
        policy: FaultPolicy,
        status: StreamStatus,
        check: Check[StepT],
        made: MadeEnv[Env] | None = None,
    ) -> None:
        """`make` must return environments with `spaces`. `seed` is for the first reset. `made`: one that exists
        already.
        """
        self._index = index
        self._make = make
        self._spaces = spaces
        self._check = check
        self._first_seed = self._next_seed = seed
        self._policy = policy
        self._status = status
        self._retries = Retries(policy)
        self._num_failures = 0
        self._repetitions = Repetitions()
        self._env = made.env if made else None
        self._processes = made.processes if made else None
        """Processes that the environment has started; None without an environment."""
        self._was_reset = False
        self.options: Mapping[str, Any] | None = None
        """Options of all later resets; None calls them without."""
        self._num_steps = 0
        """Steps since the last failure."""
        self.retry_at = 0.0
        """time.monotonic() before which `restart` does not retry a broken environment; inf in quarantine."""
        self.last_failure = ""
        """Readable reason of the last failure."""
        self._statistics: tuple[Statistics, ...] = ()
        """The newest finite statistics of the wrappers, for the next environment."""
        self._is_frozen = False

    @property
    def is_broken(self) -> bool:
        return self._env is None

    @property
    def is_quarantined(self) -> bool:
        return self.retry_at == np.inf

    def open(self) -> None:
        """Makes the environment if it is broken and not in quarantine."""
        if self._env is not None or self.is_quarantined:
            return
        try:
            self._env = self._made()
        except EnvCheckError as error:
            self._note(error.kind, str(error), error)
        except EnvironmentFailure as failure:
            self._note("exception", str(failure), failure.__cause__ or failure)
        except BaseException as error:  # code that calls sys.exit has failed; the process is not its own
            self._note("exception", f"it could not be made: {describe(error)}", error)

    def reset(self) -> StepT | None:
        """Starts an episode and returns its first row. Creates a broken environment again, despite its back-off."""
        self.open()
        if self._env is None:
            return None
        seed, self._next_seed = self._next_seed, None  # later resets continue with the generators: no episode repeats
        began = time.monotonic()
        try:
            if problem := self._note_statistics(self._env):
                raise EnvCheckError("observation", f"{problem}: it saw a number too large for them")
            result = self._first_reset(seed) if not self._was_reset else self._reset(self._env, seed)
            self._status.reset_seconds.observe(time.monotonic() - began)
            return self._check.check_reset(result)
        except EnvCheckError as error:
            self._note(error.kind, f"reset: {error}", error)
        except BaseException as error:
            self._note("exception", f"reset raised {describe(error)}{old_gym_hint(error)}", error)
        return None

    def restart(self) -> StepT | None:
        """Like `reset`, but creates a broken environment only after its back-off."""
        return None if self._env is None and time.monotonic() < self.retry_at else self.reset()

    def step(self, action: Any) -> StepT | None:
        if self._env is None:
            return None
        try:
            step = self._check.check_step(self._env.step(action))
            self._num_steps += 1
            return step
        except EnvCheckError as error:
            self._note(error.kind, str(error), error)
        except BaseException as error:
            self._note("exception", f"step raised {describe(error)}{old_gym_hint(error)}", error)
        return None

    def statistics(self) -> tuple[Statistics, ...]:
        """Returns the statistics of its wrappers, or the last finite ones if it is broken or they are not finite."""
        if self._env is not None:
            self._note_statistics(self._env)
        return self._statistics

    def restore(self, statistics: Sequence[Statistics], *, frozen: bool) -> None:
        """Gives the statistics to its wrappers, and to those of environments that are created later."""
        self._statistics, self._is_frozen = tuple(statistics), frozen
        if self._env is not None:
            running_statistics.write(self._env, statistics, frozen=frozen)

    def render(self) -> Array | None:
        """Returns a picture of the environment, uint8 [H, W, 3]; None if it draws none. Raises EnvironmentFailure."""
        if self._env is None:
            raise EnvironmentFailure(f"environment {self._index} failed: {self.last_failure}")
        try:
            picture = self._env.render()
        except BaseException as error:
            raise_if_interrupt(error)
            raise EnvironmentFailure(f"render raised {describe(error)}") from error
        return to_frame(picture)

    def close(self) -> None:
        """Closes the environment. Idempotent."""
        env, self._env = self._env, None
        if env is not None:
            self._note_statistics(env)
            try:
                env.close()
            except BaseException as error:
                raise_if_interrupt(error)
                logger.warning("closing environment %d failed", self._index, exc_info=True)

    def _first_reset(self, seed: int | None) -> Any:
        assert self._env is not None and self._processes is not None
        self._was_reset = True
        with self._processes.adding():  # some start their simulator here
            return self._reset(self._env, seed)

    def _reset(self, env: Env, seed: int | None) -> Any:
        # A copy, as the environment may change it.
        return env.reset(seed=seed) if self.options is None else env.reset(seed=seed, options=deepcopy(self.options))

    def _made(self) -> Env:
        if self._num_failures:
            self._status.env_restarts += 1
        made = make_with_processes(self._make)
        env, self._processes, self._was_reset = made.env, made.processes, False
        if (env.observation_space, env.action_space) != self._spaces:
            env.close()
            raise EnvCheckError("observation", "its spaces differ from those of the first environment")
        if self._statistics:
            running_statistics.write(env, self._statistics, frozen=self._is_frozen)
        return env

    def _note_statistics(self, env: Env) -> str:
        """Keeps the statistics of the wrappers of `env` if they are finite; else returns a message."""
        found = running_statistics.read(env)
        problem = running_statistics.not_finite_in(found)
        if found and not problem:
            self._statistics = found
        return problem

    def _note(self, kind: FailureKind, reason: str, error: BaseException) -> None:
        raise_if_interrupt(error)
        self.close()
        if self._processes is not None:
            self._processes.kill()
            self._processes = None
        self._status.count_failure(kind)
        self._num_failures += 1
        self.last_failure = reason
        if self._first_seed is not None:  # the same seed would lead to the same failure
            self._next_seed = derived_seed(self._first_seed, self._num_failures)
        delay_s = self._retries.note_failure(self._num_steps)
        self._num_steps = 0
        if delay_s is None:
            self.retry_at = np.inf
            self._status.envs_quarantined += 1
            text = "environment %d is given up: %d failures within %g s, the last one of kind %s: %s"
            logger.error(text, self._index, self._policy.max_failures, self._policy.failure_window_s, kind, reason)
            return
        self.retry_at = time.monotonic() + delay_s
        if self._repetitions.is_news(f"{kind} {type(error).__name__}"):  # a reason may differ every time
            text = "environment %d failed (%s) and is created again: %s"
            traceback = None if isinstance(error, EnvCheckError) else error
            logger.warning(text, self._index, kind, reason, exc_info=traceback)
