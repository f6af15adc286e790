"""Env-servers of this machine that play unrolls, for training in this order, as a schedule orders: `train --lag`."""

import time
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

import torch

from kubebeast_learner.actors.core_states import CoreStateTable
from kubebeast_learner.actors.lag import LagSchedule, sampling_seed
from kubebeast_learner.actors.remote.actors import RemoteActors, open_pool
from kubebeast_learner.actors.remote.lagged_worker import LaggedWorker, UnrollOrder
from kubebeast_learner.actors.remote.local_fleet import LocalFleet
from kubebeast_learner.actors.runner import EagerRunner
from kubebeast_learner.actors.weights import RecentWeights
from kubebeast_learner.algorithm.rollout import Rollout, map_tensors
from kubebeast_learner.config import ConfigError, TrainConfig
from kubebeast_learner.models import Model
from kubebeast_learner.run.task_returns import FinishedEpisode
from kubebeast_native import ActorPool, Episode, StreamInfo


def make_schedule(config: TrainConfig) -> LagSchedule:
    """Returns the order of the unrolls of a training with a fixed lag."""
    assert config.fleet.lag is not None, "the lag is set"
    return LagSchedule(config.fleet.num_actors, config.replay.num_fresh(config.rollout.batch_size), config.fleet.lag)


def with_room(config: TrainConfig) -> TrainConfig:
    """Returns the configuration with a queue that holds all unrolls that are ordered at one time.

    Raises ConfigError if max_learner_queue_size is given and too small.
    """
    lag, batch_size = config.fleet.lag, config.replay.num_fresh(config.rollout.batch_size)
    if lag is None:
        return config
    least, given = config.fleet.num_actors + (lag + 2) * batch_size, config.pool.max_learner_queue_size
    if 0 < given < least:
        raise ConfigError(f"max_learner_queue_size = {given}: must be at least {least} with lag = {lag}")
    size, length = max(given, least), config.rollout.unroll_length
    return replace(config, pool=replace(config.pool, max_learner_queue_size=size, min_partial_steps=length))


class _Column(NamedTuple):
    rollout: Rollout
    place: int


class LaggedActors(RemoteActors):
    """Streams of one group each -> ActorPool -> LaggedWorker -> ActorPool -> batches in the order of the schedule."""

    is_repeatable = True

    def __init__(self, config: TrainConfig, pool: ActorPool, fleet: LocalFleet) -> None:
        """Arguments as those of RemoteActors; the fleet has streams of the schedule's group_size."""
        super().__init__(config, pool, fleet)
        self._schedule = make_schedule(config)
        self._seed, self._lag = config.run.seed, config.fleet.lag or 0
        self._servers = fleet
        self._is_batch_due = True
        """True if the unrolls of the next batch have not been ordered yet."""
        self._num_ordered = self._num_taken = 0
        self._versions: dict[int, int] = {}
        """Version of the weights of each unroll that was ordered and not yet taken, by its number."""
        self._columns: dict[int, list[_Column]] = {}
        """Columns of each unroll that has been played."""
        self._episodes: dict[int, list[Episode]] = {}
        """Episodes that ended in each unroll."""
        self._ended: list[Episode] = []
        """Episodes of unrolls that were taken."""

    def start(self, model: Model, device: torch.device, version: int) -> None:
        pool, run = self._config.pool, self._config.run
        device = torch.device(pool.inference_devices[0]) if pool.inference_devices else device
        self._model, self._version = model, version
        self._recent = RecentWeights(model, self._lag + 1, device=device, precision=run.precision, version=version)
        core_states = CoreStateTable(model, pool.max_envs, device) if model.core_state_size else None
        generators = [
            torch.Generator(device).manual_seed(sampling_seed(self._seed, version, group))
            for group in range(self._schedule.num_groups)
        ]
        runners = [EagerRunner(device, generator, core_states) for generator in generators]
        self._worker = LaggedWorker(self._pool, self._recent, runners, self._group_of, device)
        self._workers = [self._worker]
        open_pool(self._pool, model, single_frames=False)
        self._worker.start()

    def next_rollout(self, timeout_ms: int) -> Rollout | None:
        if self._is_batch_due:
            self._order()
        deadline = time.monotonic() + timeout_ms / 1000
        while not self._is_complete:
            remaining_ms = 1000 * (deadline - time.monotonic())
            rollout = super().next_rollout(max(0, round(remaining_ms)))
            if rollout is None:
                return None
            self._sort(rollout)
        self._is_batch_due = True
        return self._take()

    def publish(self, version: int) -> None:
        self._recent.publish(version)
        self._version = version

    def take_episodes(self) -> Iterable[FinishedEpisode]:
        episodes, self._ended = self._ended, []
        self._tasks.add(episodes)
        return episodes

    def _group_of(self, stream: StreamInfo) -> int:
        return self._servers.first_group(stream.env_server_id) + int(stream.instance_id.rpartition("-")[2])

    def _order(self) -> None:
        for order in self._schedule.release(self._version):
            self._versions[self._num_ordered] = order.version
            self._worker.order(order.group, UnrollOrder(self._num_ordered, order.version))
            self._num_ordered += 1
        self._is_batch_due = False

    @property
    def _is_complete(self) -> bool:
        """True if the columns of the next batch have arrived."""
        size = self._schedule.group_size
        return all(len(self._columns.get(number, ())) == size for number in self._next_numbers)

    @property
    def _next_numbers(self) -> range:
        return range(self._num_taken, self._num_taken + self._schedule.unrolls_per_batch)

    def _sort(self, rollout: Rollout) -> None:
        """Adds the columns of a batch of the pool, whose policy_version is the number of the unroll."""
        for index, number in enumerate(rollout.policy_version[0].tolist()):
            columns = self._columns.setdefault(number, []) if number in self._versions else []
            if len(columns) < self._schedule.group_size:  # an unroll that was played twice counts once
                columns.append(_Column(rollout, index))

    def _take(self) -> Rollout:
        """Returns the next batch, with the versions of its weights."""
        columns = [column for number in self._next_numbers for column in self._columns.pop(number)]
        versions = [self._versions[number] for number in self._next_numbers for _ in range(self._schedule.group_size)]
        self._end_episodes()
        for number in self._next_numbers:
            del self._versions[number]
        self._num_taken += self._schedule.unrolls_per_batch
        self._worker.forget(self._num_taken)
        batch = _join(columns)
        return replace(batch, policy_version=torch.tensor(versions).expand_as(batch.policy_version).clone())

    def _end_episodes(self) -> None:
        """Adds the episodes of the next batch, in the order of its unrolls."""
        length = self._config.rollout.unroll_length
        for episode in self._pool.take_episodes():
            number = self._worker.number_of(episode.instance_id, (episode.step - 1) // length)
            self._episodes.setdefault(number, []).append(episode)
        for number in self._next_numbers:
            self._ended += self._episodes.pop(number, [])


def _join(columns: list[_Column]) -> Rollout:
    """Returns a batch of columns of other batches, in this order."""
    first, *others = [
        map_tensors(lambda tensor, place=place: tensor[:, place : place + 1], rollout) for rollout, place in columns
    ]
    return map_tensors(lambda *tensors: torch.cat(tensors, dim=1), first, *others)
