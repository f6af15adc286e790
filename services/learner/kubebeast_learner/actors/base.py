"""What a training learns from: something that acts in environments. Rollouts come out of it, weights go into it.

Env-servers behind the native pool (remote_actors) and the processes of `kubebeast mono` (mono) are the two kinds.
"""

from collections.abc import Iterable, Mapping
from typing import Protocol

import torch

from kubebeast_common.backoff import FaultPolicy
from kubebeast_common.env_config import EnvConfig
from kubebeast_common.seeds import derived_seed
from kubebeast_learner.actors.env_spec import EnvSpec
from kubebeast_learner.algorithm.rollout import Rollout
from kubebeast_learner.models import Model
from kubebeast_learner.profiling.trace import Window
from kubebeast_learner.run.task_returns import FinishedEpisode

ACTOR_FAULTS = FaultPolicy(max_failures=3, failure_window_s=120.0)
"""When a process of this machine that keeps dying before it was of use ends the run."""


class ActorsError(RuntimeError):
    """The actors cannot go on; the message says why."""


class Actors(Protocol):
    """For one thread. Used as: wait_env_spec, start, then next_rollout, publish, check and stats in turn, drain, stop.

    Every method may raise ActorsError.
    """

    profile_window: Window | None
    """Tells actor processes when to record for `--profile`; None where the learner's process is all there is to see."""

    def wait_env_spec(self, timeout_ms: int) -> EnvSpec | None:
        """What is acted in; None while nobody knows after the timeout."""

    def expect(self, spec: EnvSpec) -> None:
        """Acts in this, where nothing has decided what is acted in: another rank has heard of it first."""

    def start(self, model: Model, device: torch.device, version: int) -> None:
        """Acts from now on with the weights of `model`, which trains on `device` and has seen `version` updates."""

    def next_rollout(self, timeout_ms: int) -> Rollout | None:
        """The next batch of unrolls, on the CPU; None after the timeout. The next call may use its memory again."""

    def publish(self, version: int) -> None:
        """Makes the weights that `model` has now those that act."""

    def check(self) -> None:
        """Sees to processes that died and says what is wrong; never blocks. Called about twice a second."""

    def task_configs(self) -> Mapping[str, EnvConfig]:
        """How the environments of each task are made, as far as that is known; empty where there is one task."""

    def take_episodes(self) -> Iterable[FinishedEpisode]:
        """The episodes that ended since the last call."""

    def stats(self) -> Mapping[str, int]:
        """streams, envs, rollouts_queued, rollout_queue_capacity, restarts; and since the start: inference_batches,
        inference_rows. Unrolls that are played take rollouts_running of the capacity, where that is known.

        Env-servers' also has the native pool's counters, which begin with the process, not with the run, and
        inference_threads.
        """

    def drain(self, *, finished: bool) -> None:
        """Takes nobody in from now on; those who act go on. Idempotent, never blocks.

        finished: the training has come to its end; who comes later is told so.
        """

    def stop(self) -> None:
        """Stops acting; raises the error of a thread that failed meanwhile."""


def seed_of_process(run_seed: int, index: int, num_starts: int, version: int) -> int:
    """Of the environments of process `index`: no two lives of a process, nor of a run, play the same episodes.

    num_starts: of this process before. version: updates that the run had seen when it was started or resumed.
    """
    return derived_seed(run_seed, index, num_starts, version)


def spread(num_envs: int, num_processes: int) -> list[int]:
    """Environments for each process, as even as can be."""
    share, extra = divmod(num_envs, num_processes)
    return [share + (index < extra) for index in range(num_processes)]
