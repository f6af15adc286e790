"""The league of a run: earlier versions of its policy, with ratings."""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from kubebeast_common.seeds import derived_seed
from kubebeast_learner.config import OpponentsConfig, TrainingConfig
from kubebeast_learner.league import elo
from kubebeast_learner.league.choice import probabilities
from kubebeast_learner.league.version import Version
from kubebeast_learner.models import Model

NEWEST = -1
"""Number that stands for the newest policy, which has no place in the league."""


class League:
    """Opponents of the policy. Thread-safe: inference threads choose opponents, the training does the rest."""

    def __init__(self, config: OpponentsConfig, seed: int) -> None:
        self._config = config
        self._are_played = config.opponents != "newest" and config.newest_share < 1
        """True if versions play; else the league only keeps their weights, for evaluations."""
        self._steps = 0
        """Env-steps of the present interval."""
        self._random = np.random.default_rng(seed)
        self._lock = threading.Lock()
        self._versions: list[Version] = []
        self._rating = elo.START
        self._saved: Mapping[str, Any] = {}

    def begin(
        self, model: Model, version: int, devices: Sequence[torch.device], copy: Callable[[torch.device], Model]
    ) -> None:
        """Begins with the versions of the checkpoint, or with the present weights of `model` after `version` updates.

        devices: those of the inference. copy: returns a copy of the model on a device. Raises RuntimeError if weights
        of the checkpoint do not fit the model.
        """
        self._model, self._devices, self._copy = model, list(devices), copy
        for saved in self._saved.get("versions", ()):
            self._add(self._restored(saved))
        self._saved = {}
        if not self._versions:
            self._join(version)

    def note_update(self, version: int, num_steps: int) -> None:
        """Lets the present weights of the model join if an interval is over.

        version: count of all updates of the run, with this one. num_steps: its env-steps.
        """
        self._steps += num_steps
        if self._steps >= self._config.league_interval:
            self._steps %= self._config.league_interval
            self._join(version)

    def choose(self) -> Version | None:
        """Returns the opponent of an episode; None for the newest policy."""
        with self._lock:
            if not self._are_played or self._random.random() < self._config.newest_share:
                return None
            chosen = self._random.choice(len(self._versions), p=probabilities(self._config.opponents, self._versions))
            return self._versions[int(chosen)]

    def add_game(self, opponents: Sequence[int], episode_return: float) -> None:
        """Records an episode of the learning agent against the versions of those numbers; NEWEST counts for nothing.

        A return above 0 is a win, one below 0 a loss, and 0 a draw.
        """
        result, score = ("won", 1.0) if episode_return > 0 else ("lost", 0.0) if episode_return < 0 else ("drawn", 0.5)
        with self._lock:
            numbered = {version.number: version for version in self._versions}
            for number in opponents:
                version = numbered.get(number)
                if version is None:
                    continue
                change = elo.change(self._rating, version.rating, score)
                self._rating += change
                if version is not self._versions[0]:  # the scale would drift without a fixed point
                    version.rating -= change
                version.note(result, score)

    def numbers(self) -> dict[str, float]:
        """Returns numbers for the log, by name: none before the first version, no ratings if versions do not play."""
        with self._lock:
            scores = [version.score for version in self._versions]
            scores = scores or [version["score"] for version in self._saved.get("versions", ())]
            if not scores:
                return {}
            ratings = {"elo": self._rating, "score": float(np.mean(scores))} if self._are_played else {}
            return ratings | {"versions": float(len(scores))}

    def table(self) -> list[Version]:
        """Returns the versions, the oldest first."""
        with self._lock:
            return list(self._versions)

    def state_dict(self) -> dict[str, Any]:
        """Returns tensors and plain values for a checkpoint."""
        with self._lock:
            versions = [version.state_dict() for version in self._versions] or list(self._saved.get("versions", ()))
            return {"rating": self._rating, "steps": self._steps, "versions": versions}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Continues from a checkpoint; its versions are made at `begin`."""
        self._saved = saved
        self._rating = saved.get("rating", elo.START)
        self._steps = saved.get("steps", 0)  # earlier checkpoints lack them

    def _join(self, number: int) -> None:
        weights = {name: tensor.detach().cpu().clone() for name, tensor in self._model.state_dict().items()}
        self._add(Version(number, self._rating, weights, self._replicas()))

    def _add(self, version: Version) -> None:
        with self._lock:
            self._versions.append(version)
            if len(self._versions) > self._config.league_size:
                del self._versions[_least_missed(self._versions)]

    def _restored(self, saved: Mapping[str, Any]) -> Version:
        version = Version(saved["number"], saved["rating"], saved["weights"], self._replicas(), saved["score"])
        version.games |= saved["games"]
        for model in version.models.values():
            model.load_state_dict(dict(version.weights))
        return version

    def _replicas(self) -> dict[torch.device, Model]:
        return {device: self._copy(device) for device in self._devices} if self._are_played else {}


def make_league(config: TrainingConfig, step: int) -> League | None:
    """Returns the league of a training that goes on at `step`; None if all agents learn."""
    if not config.opponents.opponents:
        return None
    # A resumed run must not repeat its earlier draws.
    return League(config.opponents, derived_seed(config.run.seed, step))


def _least_missed(versions: Sequence[Version]) -> int:
    """Returns the index of the version between the two neighbors that are closest to each other in updates."""
    gaps = [after.number - before.number for before, after in zip(versions, versions[2:], strict=False)]
    return 1 + gaps.index(min(gaps))
