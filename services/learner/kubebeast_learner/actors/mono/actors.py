"""Actor processes on this machine as the actors of a training."""

import logging
import multiprocessing
import multiprocessing.connection
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor

from kubebeast_common.spec.env_config import EnvConfig
from kubebeast_common.spec.env_spec import EnvSpec
from kubebeast_envserver.rows.running_statistics import Statistics, merged, shares
from kubebeast_envserver.rows.stream_status import StreamStatus
from kubebeast_learner.actors.base import ActorsError, seed_of_process
from kubebeast_learner.actors.lag import LagSchedule, first_seed, sampling_seed
from kubebeast_learner.actors.mono.actor import ActorTask, Seeds
from kubebeast_learner.actors.mono.actor_process import STOP_GRACE_S, ActorProcess
from kubebeast_learner.actors.mono.blocks import BlockLayout, copy_columns, require_memory
from kubebeast_learner.actors.mono.feed import Feed, Filled, FreeFeed, LagFeed
from kubebeast_learner.actors.mono.origins import Origin, Origins, as_tensor
from kubebeast_learner.actors.mono.parts import (
    Part,
    make_schedule,
    parts_of,
    require_whole_environments,
    waits_for_updates,
)
from kubebeast_learner.actors.mono.shared_memory import shared_memory
from kubebeast_learner.actors.mono.shared_weights import SharedWeights
from kubebeast_learner.actors.mono.spec_process import SpecError, SpecProcess
from kubebeast_learner.algorithm.rollout import Rollout
from kubebeast_learner.config import MonoConfig
from kubebeast_learner.curriculum.levels import Levels
from kubebeast_learner.models import Model
from kubebeast_learner.profiling.trace import Window, merge_traces
from kubebeast_learner.run.task_returns import Episode

logger = logging.getLogger(__name__)


class MonoActors:
    """Actor processes -> blocks -> batches. Implements base.Actors. A context manager, which stops them at its end."""

    def __init__(
        self,
        config: MonoConfig,
        folder: Path,
        statistics: Sequence[Mapping[str, Any]] = (),
        levels: Levels | None = None,
    ) -> None:
        """folder: folder of the run, for the processes' output. statistics: env_statistics to continue from. levels:
        those of the episodes.
        """
        self.profile_window: Window | None = (
            multiprocessing.get_context("spawn").Event() if config.run.profile else None
        )
        self._config = config
        self._folder = folder
        self._draw_levels = None if levels is None else levels.draw
        self._waits_for_updates = waits_for_updates(config)
        self._fresh_batch_size = config.replay.num_fresh(config.rollout.batch_size)
        self._spec_process: SpecProcess | None = None
        self._parts: list[Part] = []
        self._processes: list[ActorProcess] = []
        self._feed: Feed
        self._is_batch_due = True
        """True if the blocks of the next batch have not been ordered yet."""
        self._ready: deque[Filled] = deque()
        self._used_up: list[Filled] = []
        self._saved_statistics = _read_statistics(statistics)
        self._statistics: dict[int, tuple[Statistics, ...]] = {}
        """Newest statistics of each group of environments, by index."""
        self._num_filled = 0
        """Number of columns that the next batch already has."""
        self._origins = Origins()
        self._origins_filled: list[Origin] = []
        """Origins of the columns that the next batch already has."""
        self._episodes: list[Episode] = []
        self._counts = {"restarts": 0, "inference_batches": 0, "inference_rows": 0, "env_interruptions": 0}

    is_environment_named = True
    ended = ""

    @property
    def is_repeatable(self) -> bool:
        return self._config.actors.lag is not None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def refuse(self, reason: str) -> None:
        raise AssertionError("the environment is named")

    def wait_env_spec(self, timeout_ms: int) -> EnvSpec | None:
        """Returns the spec of an environment made only for it. Raises ConfigError or ActorsError if making it fails."""
        self._spec_process = self._spec_process or SpecProcess(self._config, self._folder)
        try:
            made = self._spec_process.wait(timeout_ms / 1000)
        except SpecError as error:
            raise ActorsError(str(error)) from error
        if made is None:
            return None
        self._spec_process.end()
        self._spec = made.spec
        self._num_agents = made.num_agents
        require_whole_environments(self._config, made.num_agents)
        return made.spec

    def expect(self, spec: EnvSpec) -> None:
        """Does nothing: this learner trains alone."""

    def start(self, model: Model, device: torch.device, version: int) -> None:
        lag = self._config.actors.lag
        self._model = model
        self._layout = BlockLayout.of(self._spec, self._config.rollout.unroll_length, model)
        self._weights = SharedWeights(model, self._config.run.precision, version, 2 if lag is None else lag + 1)
        require_memory(self._layout.num_bytes(self._fresh_batch_size))
        self._batch = self._layout.make(self._fresh_batch_size, lambda shape, dtype: torch.empty(shape, dtype=dtype))
        schedule = None if lag is None else make_schedule(self._config, self._num_agents, lag)
        self._parts = parts_of(self._config, self._num_agents, schedule)
        sizes = [part.num_blocks * self._layout.num_bytes(part.group_size) for part in self._parts]
        memories = torch.split(shared_memory(sum(sizes)), sizes)
        for index, memory in enumerate(memories):
            self._processes.append(self._make_process(index, memory, version))
        self._feed = FreeFeed(self._processes) if schedule is None else self._lag_feed(schedule)
        for process, part in zip(self._processes, self._parts, strict=True):
            process.start()
            self._origins.begin_streams(part.groups)

    def next_rollout(self, timeout_ms: int) -> Rollout | None:
        deadline = time.monotonic() + timeout_ms / 1000
        if self._is_batch_due:
            self._give_back()
            self._feed.begin_batch(self._weights.version)
            self._is_batch_due = False
        while not self._fill_batch():
            if not self._waits_for_updates or len(self._used_up) == sum(part.num_blocks for part in self._parts):
                self._give_back()
            remaining_s = deadline - time.monotonic()
            if remaining_s <= 0:
                return None
            self._receive(remaining_s)
        self._is_batch_due = True
        origin, self._origins_filled = as_tensor(self._origins_filled), []
        return replace(self._batch, origin=origin)

    def publish(self, version: int) -> None:
        self._weights.publish(self._model, version)

    def check(self) -> None:
        """Restarts actor processes that died."""
        for process, part in zip(self._processes, self._parts, strict=True):
            if process.check():
                self._counts["restarts"] += 1
                self._origins.begin_streams(part.groups)

    def env_statistics(self) -> Sequence[Mapping[str, Any]]:
        newest = merged(self._statistics.values()) or self._saved_statistics
        return [each.to_plain() for each in newest]

    def task_configs(self) -> Mapping[str, EnvConfig]:
        return {}

    def take_episodes(self) -> Iterable[Episode]:
        episodes, self._episodes = self._episodes, []
        return episodes

    def stats(self) -> Mapping[str, int]:
        if self._processes:
            self._counts["env_interruptions"] = sum(process.num_failed_episodes for process in self._processes)
        running = [process for process in self._processes if process.connection is not None]
        return self._counts | {
            "streams": len(running),
            "envs": sum(process.num_envs for process in running),
            "rollouts_queued": self._num_filled + sum(len(ready.columns) for ready in self._ready),
            "rollout_queue_capacity": sum(part.num_blocks * part.group_size for part in self._parts),
        }

    def drain(self, *, finished: bool) -> None:
        """Does nothing: no other process can join."""

    def stop(self) -> None:
        """Ends the processes, by force after the grace period. Idempotent."""
        if self._spec_process is not None:
            self._spec_process.end()
        for process in self._processes:
            process.ask_to_stop()
        deadline = time.monotonic() + STOP_GRACE_S
        for process in self._processes:
            process.end(max(0.0, deadline - time.monotonic()))
        self._processes.clear()
        if self.profile_window is not None:
            self._merge_traces()

    def _lag_feed(self, schedule: LagSchedule) -> LagFeed:
        groups = [
            (process, place * part.blocks_per_group)
            for process, part in zip(self._processes, self._parts, strict=True)
            for place in range(len(part.groups))
        ]
        return LagFeed(schedule, groups)

    def _make_process(self, index: int, memory: Tensor, version: int) -> ActorProcess:
        part = self._parts[index]

        def make_task(num_starts: int, status: StreamStatus) -> ActorTask:
            if num_starts > 0 and self._config.actors.lag is not None:
                logger.warning("actor process %d is another one now: another run would not be the same", index)
            share = part.group_size / self._config.actors.num_actors
            return ActorTask(
                config=self._config,
                num_envs=part.group_size,
                status=status,
                seeds=tuple(self._seeds(each, num_starts, version) for each in part.groups),
                layout=self._layout,
                memory=memory,
                weights=self._weights,
                folder=self._folder,
                is_first=index == 0,
                statistics=tuple(
                    self._statistics.get(each) or shares(self._saved_statistics, share) for each in part.groups
                ),
                name=f"actor-{index}",
                profile_window=self.profile_window,
            )

        return ActorProcess(index, make_task, self._config.actors.env_timeout_s, self._draw_levels)

    def _seeds(self, group: int, num_starts: int, version: int) -> Seeds:
        seed = self._config.run.seed
        if self._config.actors.lag is None or num_starts > 0:
            return Seeds(*[seed_of_process(seed, group, num_starts, version)] * 2)
        first_env = group * self._parts[0].group_size
        return Seeds(first_seed(seed, version) + first_env, sampling_seed(seed, version, group))

    def _merge_traces(self) -> None:
        main, others = self._folder / "trace.json", sorted(self._folder.glob("trace-actor-*.json"))
        if not main.exists() or not others:
            return
        try:
            merge_traces(main, others)
        except (OSError, ValueError) as error:
            logger.error("traces of actor processes are not in %s: %s", main, error)

    def _receive(self, timeout_s: float) -> None:
        """Waits for at least one message or the timeout, and handles the messages."""
        connections = {process.connection: process for process in self._processes if process.connection is not None}
        readable = multiprocessing.connection.wait(list(connections), timeout_s)
        for process in [process for connection, process in connections.items() if connection in readable]:
            filled = process.receive()
            if filled is None:
                continue
            part = self._parts[process.index]
            group = part.groups[filled.number // part.blocks_per_group]
            if filled.statistics:
                self._statistics[group] = filled.statistics
            origins = self._origins.next_unroll(group, part.group_size)
            self._ready += self._feed.add(Filled(process, filled.number, filled.episodes, origins))
            self._counts["inference_batches"] += self._layout.unroll_length
            self._counts["inference_rows"] += self._layout.unroll_length * part.group_size

    def _give_back(self) -> None:
        """Gives blocks that are used up back to their actors. Not during the update on them: the actors would fill
        them with weights that are two updates old when it is their turn. But while a batch lacks unrolls, since all
        blocks together may hold too little for it; if actors wait for updates, not before all are used up.
        """
        for used in self._used_up:
            self._feed.give_back(used.process, used.number)
        self._used_up.clear()

    def _fill_batch(self) -> bool:
        """Adds the oldest columns to the batch; returns True if it is full."""
        while self._ready and self._num_filled < self._fresh_batch_size:
            ready = self._ready[0]
            room = self._fresh_batch_size - self._num_filled
            columns, ready.columns = ready.columns[:room], ready.columns[room:]
            if columns:
                copy_columns(ready.process.blocks[ready.number], columns, self._batch, self._num_filled)
                self._origins_filled += [ready.origins[column] for column in columns]
                self._num_filled += len(columns)
            if not ready.columns:
                self._ready.popleft()
                self._episodes += ready.episodes
                self._used_up.append(ready)
        is_full = self._num_filled == self._fresh_batch_size
        if is_full:
            self._num_filled = 0
        return is_full


def _read_statistics(saved: Sequence[Mapping[str, Any]]) -> tuple[Statistics, ...]:
    """Returns the saved statistics; none, with a warning, if they are invalid, because the weights are not."""
    try:
        return tuple(map(Statistics.from_plain, saved))
    except ValueError as error:
        logger.warning("%s: the wrappers begin anew", error)
        return ()
