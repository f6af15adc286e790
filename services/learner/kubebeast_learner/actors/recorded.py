"""A recording as the actors of a training: its batches, read ahead by a thread, without environments."""

import itertools
import logging
import queue
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

import torch

from kubebeast_common.spec.env_config import EnvConfig
from kubebeast_common.spec.env_spec import EnvSpec
from kubebeast_learner.actors.base import ActorsError
from kubebeast_learner.algorithm.rollout import Rollout
from kubebeast_learner.config import TrainingConfig
from kubebeast_learner.config.checks import require
from kubebeast_learner.models import Model
from kubebeast_learner.profiling.trace import Window
from kubebeast_learner.recording.arrays import Sizes
from kubebeast_learner.recording.reader import Entry, Recording
from kubebeast_learner.run.task_returns import FinishedEpisode

logger = logging.getLogger(__name__)

MAX_READ_AHEAD = 2
"""Batches that are read before their turn."""
_POLL_S = 0.1


class RecordedActors:
    """Shards -> batches, in the order in which they were recorded. Implements base.Actors; a context manager."""

    profile_window: Window | None = None
    is_repeatable = True
    is_environment_named = True

    def __init__(self, config: TrainingConfig, recording: Recording, passes: int) -> None:
        """passes: times that the recording is trained on."""
        self.ended = ""
        self._recording, self._passes = recording, passes
        self._config = config
        self._read: queue.Queue[Rollout | Exception | None] = queue.Queue(MAX_READ_AHEAD)
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def wait_env_spec(self, timeout_ms: int) -> EnvSpec | None:
        return self._recording.source.env_spec

    def refuse(self, reason: str) -> None:
        raise AssertionError("the environment is named")

    def expect(self, spec: EnvSpec) -> None:
        raise AssertionError("there is no other rank")

    def start(self, model: Model, device: torch.device, version: int) -> None:
        """Begins to read after the batches of the first `version` updates.

        Raises ConfigError if settings do not fit the recording.
        """
        _require_alike(self._config, self._recording)
        for gap in self._recording.gaps():
            text = "the recording lacks %d batches from update %d on: the training will not repeat that of run %s"
            logger.warning(text, gap.num_batches, gap.update, self._recording.source.run)
        sizes = Sizes(model.distribution.num_logits, model.state_shapes, model.num_tasks)
        entries = _after(self._recording, self._passes, version)
        self._thread = threading.Thread(target=self._read_all, args=(entries, model, sizes), daemon=True)
        self._thread.start()

    def next_rollout(self, timeout_ms: int) -> Rollout | None:
        if self.ended:
            return None
        try:
            rollout = self._read.get(timeout=timeout_ms / 1000) if timeout_ms else self._read.get_nowait()
        except queue.Empty:
            return None
        if isinstance(rollout, Exception):
            raise ActorsError(str(rollout)) from rollout
        if rollout is None:
            self.ended = "the recording has ended"
        return rollout

    def publish(self, version: int) -> None: ...

    def check(self) -> None: ...

    def env_statistics(self) -> Sequence[Mapping[str, Any]]:
        return ()

    def task_configs(self) -> Mapping[str, EnvConfig]:
        return {}

    def take_episodes(self) -> Iterable[FinishedEpisode]:
        return ()

    def stats(self) -> Mapping[str, int]:
        batch_size = self._recording.source.batch_size
        return {
            "streams": 0,
            "envs": 0,
            "rollouts_queued": self._read.qsize() * batch_size,
            "rollout_queue_capacity": MAX_READ_AHEAD * batch_size,
            "restarts": 0,
            "inference_batches": 0,
            "inference_rows": 0,
        }

    def drain(self, *, finished: bool) -> None:
        """Does nothing: there are no peers."""

    def stop(self) -> None:
        """Ends the thread. Idempotent."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def _read_all(self, entries: Iterator[Entry], model: Model, sizes: Sizes) -> None:
        try:
            for entry in entries:
                if not self._put(self._recording.rollout(entry, model.distribution, sizes)):
                    return
            self._put(None)
        except Exception as error:  # raised by next_rollout, in the thread of the training
            self._put(error)

    def _put(self, rollout: Rollout | Exception | None) -> bool:
        """Hands over a batch, an error, or None at the end; returns False if stopped before."""
        while not self._stop.is_set():
            try:
                self._read.put(rollout, timeout=_POLL_S)
            except queue.Full:
                continue
            return True
        return False


def _after(recording: Recording, passes: int, num_updates: int) -> Iterator[Entry]:
    """Returns the entries of all passes without those that the first `num_updates` updates were made with."""
    places = itertools.chain.from_iterable(itertools.repeat(range(len(recording.entries)), passes))
    remaining = num_updates
    for place in places:
        if remaining > 0:
            remaining -= recording.changes_weights(place)
        else:
            yield recording.entries[place]


def _require_alike(config: TrainingConfig, recording: Recording) -> None:
    source, place = recording.source, recording.entries[0].path
    recorded: dict[str, Any] = {"unroll_length": source.unroll_length, "batch_size": source.batch_size}
    wanted: dict[str, Any] = {name: getattr(config.rollout, name) for name in recorded}
    if any(leaf.bounded for leaf in source.env_spec.action):
        recorded["bounded_actions"] = source.settings.get("bounded_actions")
        wanted["bounded_actions"] = config.model.bounded_actions
    for name, value in wanted.items():
        require(value == recorded[name], name, value, f"{place} was recorded with {recorded[name]!r}")
    share, reason = config.replay.replay_share, "a recording has the replayed unrolls of its batches"
    require(share == 0, "replay_share", share, reason)
