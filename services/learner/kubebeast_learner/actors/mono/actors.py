"""Actor processes on this machine as the actors of a training."""

import logging
import multiprocessing
import multiprocessing.connection
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor

from kubebeast_common.spec.env_config import EnvConfig
from kubebeast_common.spec.env_spec import EnvSpec
from kubebeast_envserver.rows.running_statistics import Statistics, merged, shares
from kubebeast_envserver.rows.stream_status import StreamStatus
from kubebeast_learner.actors.base import ActorsError, seed_of_process, spread
from kubebeast_learner.actors.mono.actor import ActorTask
from kubebeast_learner.actors.mono.actor_process import STOP_GRACE_S, ActorProcess
from kubebeast_learner.actors.mono.blocks import BlockLayout, copy_columns, require_memory
from kubebeast_learner.actors.mono.shared_memory import shared_memory
from kubebeast_learner.actors.mono.shared_weights import SharedWeights
from kubebeast_learner.actors.mono.spec_process import SpecError, SpecProcess
from kubebeast_learner.algorithm.rollout import Rollout
from kubebeast_learner.config import ConfigError, MonoConfig
from kubebeast_learner.machine.cores import num_cores
from kubebeast_learner.models import Model
from kubebeast_learner.profiling.trace import Window, merge_traces
from kubebeast_learner.run.task_returns import Episode

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Ready:
    """A filled block, and its columns still to be taken, in ascending order."""

    process: ActorProcess
    number: int
    columns: list[int]


class MonoActors:
    """Actor processes -> blocks -> batches. Implements base.Actors. A context manager, which stops them at its end."""

    def __init__(self, config: MonoConfig, folder: Path, statistics: Sequence[Mapping[str, Any]] = ()) -> None:
        """folder: folder of the run, for the processes' output. statistics: env_statistics to continue from."""
        self.profile_window: Window | None = (
            multiprocessing.get_context("spawn").Event() if config.run.profile else None
        )
        self._config = config
        self._folder = folder
        self._fresh_batch_size = config.replay.num_fresh(config.rollout.batch_size)
        self._num_blocks = num_blocks(config)
        self._spec_process: SpecProcess | None = None
        self._processes: list[ActorProcess] = []
        self._ready: deque[_Ready] = deque()
        self._saved_statistics = _read_statistics(statistics)
        self._statistics: dict[int, tuple[Statistics, ...]] = {}
        """Newest statistics of each process, by index."""
        self._num_filled = 0
        """Number of columns that the next batch already has."""
        self._episodes: list[Episode] = []
        self._counts = {"restarts": 0, "inference_batches": 0, "inference_rows": 0, "env_interruptions": 0}

    is_environment_named = True

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
        self._shares = shares_of(self._config, made.num_agents)
        return made.spec

    def expect(self, spec: EnvSpec) -> None:
        """Does nothing: this learner trains alone."""

    def start(self, model: Model, device: torch.device, version: int) -> None:
        self._model = model
        self._layout = BlockLayout.of(self._spec, self._config.rollout.unroll_length, model)
        self._weights = SharedWeights(model, self._config.run.precision, version)
        require_memory(self._layout.num_bytes(self._fresh_batch_size))
        self._batch = self._layout.make(self._fresh_batch_size, lambda shape, dtype: torch.empty(shape, dtype=dtype))
        sizes = [self._num_blocks * self._layout.num_bytes(num_envs) for num_envs in self._shares]
        memories = torch.split(shared_memory(sum(sizes)), sizes)
        for index, (num_envs, memory) in enumerate(zip(self._shares, memories, strict=True)):
            self._processes.append(self._make_process(index, num_envs, memory, version))
        for process in self._processes:
            process.start()

    def next_rollout(self, timeout_ms: int) -> Rollout | None:
        deadline = time.monotonic() + timeout_ms / 1000
        while not self._fill_batch():
            remaining_s = deadline - time.monotonic()
            if remaining_s <= 0:
                return None
            self._receive(remaining_s)
        return self._batch

    def publish(self, version: int) -> None:
        self._weights.publish(self._model, version)

    def check(self) -> None:
        """Restarts actor processes that died."""
        for process in self._processes:
            self._counts["restarts"] += process.check()

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
            "rollout_queue_capacity": self._num_blocks * self._config.actors.num_actors,
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

    def _make_process(self, index: int, num_envs: int, memory: Tensor, version: int) -> ActorProcess:
        def make_task(num_starts: int, status: StreamStatus) -> ActorTask:
            return ActorTask(
                config=self._config,
                num_envs=num_envs,
                status=status,
                seed=seed_of_process(self._config.run.seed, index, num_starts, version),
                layout=self._layout,
                memory=memory,
                weights=self._weights,
                folder=self._folder,
                is_first=index == 0,
                statistics=self._statistics.get(index) or shares(self._saved_statistics, num_envs / sum(self._shares)),
                name=f"actor-{index}",
                profile_window=self.profile_window,
            )

        return ActorProcess(index, make_task, self._config.actors.env_timeout_s)

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
            self._take(process, filled.number)
            if filled.statistics:
                self._statistics[process.index] = filled.statistics
            self._episodes += filled.episodes
            self._counts["inference_batches"] += self._layout.unroll_length
            self._counts["inference_rows"] += self._layout.unroll_length * process.num_envs

    def _take(self, process: ActorProcess, number: int) -> None:
        """Queues a filled block, without the columns of environments that failed: they hold no valid transition."""
        columns = process.blocks[number].valid.any(dim=0).nonzero().flatten().tolist()
        if not columns:
            process.release(number)
            return
        self._ready.append(_Ready(process, number, columns))

    def _fill_batch(self) -> bool:
        """Adds the oldest columns to the batch; returns True if it is full. A block that is used up goes back to its
        actor at once: all blocks together may hold too little for a batch.
        """
        while self._ready and self._num_filled < self._fresh_batch_size:
            ready = self._ready[0]
            room = self._fresh_batch_size - self._num_filled
            columns, ready.columns = ready.columns[:room], ready.columns[room:]
            copy_columns(ready.process.blocks[ready.number], columns, self._batch, self._num_filled)
            self._num_filled += len(columns)
            if not ready.columns:
                self._ready.popleft()
                ready.process.release(ready.number)
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


def num_processes(config: MonoConfig) -> int:
    """Returns num_actor_processes, or if it is 0 one per core of this machine, at most num_actors."""
    return config.actors.num_actor_processes or min(num_cores(), config.actors.num_actors)


def shares_of(config: MonoConfig, num_agents: int) -> list[int]:
    """Returns each process's share of num_actors, in whole environments. Raises ConfigError if there is a rest."""
    num_envs, rest = divmod(config.actors.num_actors, num_agents)
    if rest:
        raise ConfigError(
            f"num_actors = {config.actors.num_actors}: counts agents, so it must be a multiple of the {num_agents} of "
            f"{config.actors.env}"
        )
    return [num_agents * share for share in spread(num_envs, min(num_envs, num_processes(config)))]


def num_blocks(config: MonoConfig) -> int:
    """Returns the blocks per process: enough for num_buffers unrolls, and for a batch while every actor fills one."""
    num_actors, batch_size = config.actors.num_actors, config.rollout.batch_size
    wanted = config.actors.num_buffers or 2 * num_actors
    return max(-(-wanted // num_actors), 1 + -(-batch_size // num_actors), 2)
