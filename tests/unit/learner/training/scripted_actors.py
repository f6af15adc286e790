"""Actors of a training that follow the script of a test."""

import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch

from kubebeast_common.spec.env_config import EnvConfig
from kubebeast_common.spec.env_spec import EnvSpec
from kubebeast_common.spec.leaves import Leaf
from kubebeast_learner.algorithm.rollout import Rollout
from kubebeast_learner.models import Model
from kubebeast_learner.profiling.trace import Window
from kubebeast_learner.run.task_returns import FinishedEpisode
from kubebeast_learner.training.monitor import LATER_UPDATE_S
from tests.unit.learner.algorithm.learning_data import random_rollout
from tests.unit.learner.run.test_run_stats import Clock, pool

BATCHES = 3
SPEC = EnvSpec("Test-v0", (Leaf("position", "float32", (5,), 1, 0),), (Leaf("action", "int64", (), 1, 3),))
"""Environment of random_rollout."""


class ScriptedActors:
    """Delivers BATCHES batches and then requests the end; records the order of its calls."""

    profile_window: Window | None = None
    is_environment_named = True
    is_repeatable = False
    ended = ""

    def __init__(self, clock: Clock | None = None) -> None:
        self.calls: list[str] = []
        self.stop_asked = threading.Event()
        self._clock = clock or Clock()
        self._num_taken = 0

    def wait_env_spec(self, timeout_ms: int) -> EnvSpec | None:
        return SPEC

    def refuse(self, reason: str) -> None:
        raise AssertionError("the environment is named")

    def expect(self, spec: EnvSpec) -> None:
        raise AssertionError("there is no other rank")

    def start(self, model: Model, device: torch.device, version: int) -> None:
        self.calls.append("start")

    def next_rollout(self, timeout_ms: int) -> Rollout | None:
        if self._num_taken == BATCHES:
            self.stop_asked.set()
            return None
        self._num_taken += 1
        return random_rollout()

    def publish(self, version: int) -> None:
        self._clock.now += LATER_UPDATE_S

    def check(self) -> None: ...

    def env_statistics(self) -> Sequence[Mapping[str, Any]]:
        return ()

    def task_configs(self) -> Mapping[str, EnvConfig]:
        return {}

    def take_episodes(self) -> Iterable[FinishedEpisode]:
        return ()

    def stats(self) -> Mapping[str, int]:
        return pool(streams=1)

    def drain(self, *, finished: bool) -> None:
        self.calls.append("drain, finished" if finished else "drain")

    def stop(self) -> None:
        self.calls.append("stop")
