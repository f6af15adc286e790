"""The interface of actors, which act in environments: rollouts come out, weights go in.

Env-servers behind the native pool (actors.remote) and the processes of `kubebeast mono` (actors.mono) implement it.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import torch

from kubebeast_common.backoff import FaultPolicy
from kubebeast_common.seeds import derived_seed
from kubebeast_common.spec.env_config import EnvConfig
from kubebeast_common.spec.env_spec import EnvSpec
from kubebeast_learner.algorithm.rollout import Rollout
from kubebeast_learner.models import Model
from kubebeast_learner.profiling.trace import Window
from kubebeast_learner.run.task_returns import FinishedEpisode

ACTOR_FAULTS = FaultPolicy(max_failures=3, failure_window_s=120.0)
"""Limit of the failures of a process of this machine; beyond it, the run ends."""


class ActorsError(RuntimeError):
    """The actors cannot continue; the message gives the reason."""


class Actors(Protocol):
    """The actors of a training. Not thread-safe.

    Order of calls: wait_env_spec, start, then next_rollout, publish, check and stats in turn, drain, stop.
    Every method may raise ActorsError.
    """

    profile_window: Window | None
    """Event that makes actor processes record for `--profile`; None if only the learner's process is recorded."""

    @property
    def is_repeatable(self) -> bool:
        """True if each batch depends on the seed and the weights only, not on time."""

    @property
    def is_environment_named(self) -> bool:
        """True if a setting or a checkpoint names the environment; else the first peer determines it."""

    @property
    def ended(self) -> str:
        """Reason why no further batch will come, for the log; "" while one may come."""

    def wait_env_spec(self, timeout_ms: int) -> EnvSpec | None:
        """Returns the environment; None if it is still unknown after the timeout."""

    def refuse(self, reason: str) -> None:
        """Rejects the environment that wait_env_spec returned, before `start`, and turns away its peers; wait_env_spec
        then waits for another one. Only if the environment is not named.
        """

    def expect(self, spec: EnvSpec) -> None:
        """Sets the environment if it is still undetermined: another rank has received it first."""

    def start(self, model: Model, device: torch.device, version: int) -> None:
        """Starts to act with the weights of `model`, which trains on `device` and has had `version` updates."""

    def next_rollout(self, timeout_ms: int) -> Rollout | None:
        """Returns the next batch of unrolls, on the CPU; None after the timeout. The next call may reuse its memory."""

    def publish(self, version: int) -> None:
        """Makes the actors use the present weights of `model`."""

    def check(self) -> None:
        """Handles processes that died and logs problems; never blocks. Called about twice a second."""

    def env_statistics(self) -> Sequence[Mapping[str, Any]]:
        """Returns the statistics of the environments' wrappers, as plain values, for the next checkpoint; empty if
        there are none or they are unknown.
        """

    def task_configs(self) -> Mapping[str, EnvConfig]:
        """Returns the settings of the environments of each task, as far as known; empty if there is one task."""

    def take_episodes(self) -> Iterable[FinishedEpisode]:
        """Returns the episodes that ended since the last call."""

    def stats(self) -> Mapping[str, int]:
        """Returns streams, envs, rollouts_queued, rollout_queue_capacity, restarts; and since the start:
        inference_batches, inference_rows. Unrolls in progress take rollouts_running of the capacity, if that is known.

        Actors on env-servers add the native pool's counters, which begin with the process, not with the run, and
        inference_threads.
        """

    def drain(self, *, finished: bool) -> None:
        """Admits no new peers; present ones continue. Idempotent, never blocks.

        finished: True if the training has reached its end, which later peers are informed of.
        """

    def stop(self) -> None:
        """Stops acting; raises the error of a thread that failed meanwhile."""


def seed_of_process(run_seed: int, index: int, num_starts: int, version: int) -> int:
    """Returns the seed of process `index`: no two lives of a process, nor of a run, play the same episodes.

    num_starts: number of earlier starts of this process. version: number of updates before this start of the run.
    """
    return derived_seed(run_seed, index, num_starts, version)


def spread(num_envs: int, num_processes: int) -> list[int]:
    """Returns the number of environments of each process, as even as possible."""
    share, extra = divmod(num_envs, num_processes)
    return [share + (index < extra) for index in range(num_processes)]
