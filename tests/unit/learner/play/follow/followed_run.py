"""A run with a scripted learner, and a follower of it."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from kubebeast_common.atomic_file import SUFFIX
from kubebeast_learner.config import EvalConfig
from kubebeast_learner.play.follow.follower import Follower
from kubebeast_learner.play.follow.metrics import FollowMetrics
from kubebeast_runs.log import RunLog
from kubebeast_runs.log_table import LogTable
from kubebeast_runs.score_log import ScoreLog
from kubebeast_runs.scores import read_scores
from kubebeast_runs.storage.local import LocalStorage

TOTAL = 100
CONFIG = EvalConfig(follow=True, episodes=2, max_episode_steps=20)


class Script(threading.Event):
    """Instead of a wait for the next look, the learner does its next deed; after the last one, the follower stops."""

    def __init__(self, *deeds: Callable[[], object]) -> None:
        super().__init__()
        self._deeds = list(deeds)

    def wait(self, timeout: float | None = None) -> bool:
        if self._deeds:
            self._deeds.pop(0)()
        else:
            self.set()
        return self.is_set()


class FollowedRun:
    """state: contents of its checkpoints, apart from the step."""

    def __init__(self, folder: Path, state: dict[str, Any]) -> None:
        self.folder = folder
        self.metrics = FollowMetrics()
        self._state = state
        self.begin()

    def begin(self, **settings: Any) -> None:
        """A learner starts, again or for the first time."""
        with RunLog(self.folder.parent, self.folder.name) as log:
            log.record({"total_steps": TOTAL, **settings})

    def path(self, step: int) -> Path:
        return self.folder / f"checkpoint-{step:012d}.pt"

    def save(self, *steps: int) -> None:
        for step in steps:
            unfinished = self.path(step).with_suffix(".pt" + SUFFIX)
            torch.save({**self._state, "step": step}, unfinished)
            unfinished.replace(self.path(step))

    def damage(self, step: int) -> None:
        self.path(step).write_bytes(b"damaged")

    def follow(self, *deeds: Callable[[], object], config: EvalConfig = CONFIG) -> bool:
        """Runs a follower through all deeds or to the end of the run."""
        with ScoreLog(self.folder, config.name) as scores:
            return Follower(
                config, self.folder.name, LocalStorage(self.folder), scores, Script(*deeds), self.metrics
            ).run()

    @property
    def scores(self) -> LogTable:
        return read_scores(LocalStorage(self.folder))

    @property
    def played(self) -> list[int]:
        return [int(step) for step in self.scores.steps]

    def outcomes(self) -> dict[str, Any]:
        return {name: self.metrics.values()[name] for name in ("played", "skipped", "failed")}
