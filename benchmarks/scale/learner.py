"""The learner of a scale measurement: the real pool, inference and update around a tiny network, in a separate process
that sends samples on request.
"""

import dataclasses
import os
import resource
import threading
import time
from collections.abc import Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch

from kubebeast_common.process import open_files
from kubebeast_learner.actors.base import ActorsError
from kubebeast_learner.actors.remote.actors import RemoteActors, make_pool
from kubebeast_learner.config import LearnerConfig, ModelConfig, PoolConfig, RolloutConfig, RunConfig
from kubebeast_learner.machine.allocator import keep_freed_memory
from kubebeast_learner.training.build import assemble_learner

POLL_MS = 200
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """The state of the learner at one moment."""

    time_s: float
    cpu_s: float
    """User and system time of all threads since the process began."""
    rss_bytes: int
    updates: int
    lags: list[int]
    """Policy lags of unrolls since the previous sample: updates between their first weights and those they trained."""
    stats: Mapping[str, int]
    """Stats of the pool."""
    cpu_s_of_threads: dict[str, float]
    """CPU seconds by name of threads."""
    reply_s: float
    """Time spent on passing answers to streams, since the process began."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class LearnerSettings:
    max_streams: int
    max_envs: int
    max_envs_per_stream: int
    unroll_length: int
    batch_size: int
    max_learner_queue_size: int
    min_inference_rows: int

    def config(self) -> LearnerConfig:
        return LearnerConfig(
            run=RunConfig(xpid="scale", total_steps=10**12, device="cpu"),
            rollout=RolloutConfig(unroll_length=self.unroll_length, batch_size=self.batch_size),
            model=ModelConfig(model="benchmarks.scale.model:TinyNet"),
            pool=PoolConfig(
                max_streams=self.max_streams,
                max_envs=self.max_envs,
                max_envs_per_stream=self.max_envs_per_stream,
                max_learner_queue_size=self.max_learner_queue_size,
                min_inference_rows=self.min_inference_rows,
                step_timeout_s=600.0,
            ),
        )


def serve(settings: LearnerSettings, channel: Connection) -> None:
    """Sends its address, then a Sample for every received True and the env-steps of every stream for every False.

    Returns when the other end closes; raises RuntimeError if the learner has ended.
    """
    keep_freed_memory()
    torch.set_num_threads(1)
    config = settings.config()
    open_files.make_room("max_streams", settings.max_streams)
    pool = make_pool(config, "127.0.0.1:0")
    pool.start()
    learning = _Learning(config, RemoteActors(config, pool, None))
    thread = threading.Thread(target=learning.run, name="learner")
    thread.start()
    channel.send(pool.address)
    try:
        while True:
            wants_sample = channel.recv()
            if not thread.is_alive():
                raise RuntimeError("the learner ended; its error is printed above")
            if wants_sample:
                channel.send(learning.sample(pool.stats(), pool.histograms()["inference_reply"].sum))
            else:
                channel.send([stream.num_steps for stream in pool.streams()])
    except EOFError:
        pass
    finally:
        learning.stopping.set()
        pool.close()
        thread.join()


class _Learning:
    """A training loop for a separate thread; other threads may call `sample`."""

    def __init__(self, config: LearnerConfig, actors: RemoteActors) -> None:
        self.stopping = threading.Event()
        self._config, self._actors = config, actors
        self._lock = threading.Lock()
        self._lags: list[int] = []
        self._version = 0

    def run(self) -> None:
        while (spec := self._actors.wait_env_spec(POLL_MS)) is None:
            if self.stopping.is_set():
                return
        learner = assemble_learner(self._config, spec, None)
        self._actors.start(learner.model, learner.device, learner.version)
        step = 0
        while not self.stopping.is_set():
            try:
                rollout = self._actors.next_rollout(POLL_MS)
            except ActorsError:
                if self.stopping.is_set():
                    return
                raise
            self._actors.take_episodes()
            if rollout is None:
                continue
            lags = (learner.version - rollout.policy_version[0]).tolist()
            update = learner.update(rollout, step)
            self._actors.publish(update.version)
            step += update.num_transitions
            with self._lock:
                self._lags += lags
                self._version = update.version

    def sample(self, stats: Mapping[str, int], reply_s: float) -> Sample:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        with self._lock:
            lags, self._lags = self._lags, []
            updates = self._version
        return Sample(
            time_s=time.monotonic(),
            cpu_s=usage.ru_utime + usage.ru_stime,
            rss_bytes=_rss_bytes(),
            updates=updates,
            lags=lags,
            stats=stats,
            cpu_s_of_threads=_cpu_s_of_threads(),
            reply_s=reply_s,
        )


def _rss_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_BYTES


def _cpu_s_of_threads() -> dict[str, float]:
    """Returns the CPU seconds by name of threads in Linux (proc(5)), or in Python for Python's threads."""
    names = {thread.native_id: thread.name for thread in threading.enumerate()}
    seconds: dict[str, float] = {}
    for task in Path("/proc/self/task").iterdir():
        try:
            before, _, after = (task / "stat").read_text(encoding="ascii", errors="replace").rpartition(")")
        except OSError:  # the thread has just ended
            continue
        fields: Any = after.split()
        name = names.get(int(task.name)) or before.partition("(")[2]
        seconds[name] = seconds.get(name, 0.0) + (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return seconds
