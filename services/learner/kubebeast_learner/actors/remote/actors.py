"""Env-servers as actors: their streams, batched by the native pool for one model on one device or several."""

import logging
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import torch

from kubebeast_common.access.addresses import bindable
from kubebeast_common.pool.stream_log import StreamLog
from kubebeast_common.spec.env_config import EnvConfig
from kubebeast_common.spec.env_spec import EnvSpec
from kubebeast_learner.actors.base import ActorsError
from kubebeast_learner.actors.core_states import CoreStateTable
from kubebeast_learner.actors.frame_table import FrameTable, takes_single_frames
from kubebeast_learner.actors.inference import InferenceWorker
from kubebeast_learner.actors.opponents import Opponents
from kubebeast_learner.actors.pool_thread import PoolThread
from kubebeast_learner.actors.remote.level_feed import LevelFeed
from kubebeast_learner.actors.remote.local_fleet import LocalFleet
from kubebeast_learner.actors.remote.stream_tasks import StreamTasks, read_env_config
from kubebeast_learner.actors.weights import WeightPublisher, make_replica
from kubebeast_learner.algorithm.precision import should_compile, should_use_graphs
from kubebeast_learner.algorithm.rollout import Rollout, rollout_from_native
from kubebeast_learner.config import ConfigError, FleetTrainingConfig
from kubebeast_learner.config.pool import expanded
from kubebeast_learner.curriculum.levels import Levels
from kubebeast_learner.league.league import League
from kubebeast_learner.models import Model
from kubebeast_learner.profiling.timer import Timer
from kubebeast_learner.profiling.trace import Window
from kubebeast_learner.run.task_returns import FinishedEpisode, TaskReturn, TaskReturns
from kubebeast_native import ActorPool, ClosedError, Histogram, LeafSpec, StreamInfo
from kubebeast_native import EnvSpec as NativeEnvSpec

logger = logging.getLogger(__name__)

HINT_INTERVAL_S = 30.0
"""Seconds between the log lines of a learner without env-servers."""


class RemoteActors:
    """Env-servers -> ActorPool -> InferenceWorker -> ActorPool -> rollouts. Implements base.Actors."""

    is_repeatable = False
    ended = ""

    def __init__(
        self,
        config: FleetTrainingConfig,
        pool: ActorPool,
        fleet: LocalFleet | None,
        *,
        is_environment_named: bool = True,
        levels: Levels | None = None,
        league: League | None = None,
    ) -> None:
        """pool: started, not open. fleet: the env-servers of this machine, if there are any. is_environment_named: True
        if the pool expects an environment, or a certain one from the first env-server. levels: those of the episodes,
        for a pool with episode_options. league: versions of the policy for a pool with opponents.
        """
        self.is_environment_named = is_environment_named
        self.is_draining = False
        """True after `drain`."""
        self.profile_window: Window | None = None  # env-servers are no part of the trace
        self._tasks = TaskReturns()
        self._config = config
        self._pool = pool
        self._fleet = fleet
        self._spec: EnvSpec | None = None
        self._workers: Sequence[PoolThread] = ()
        self._may_play: threading.Event | None = threading.Event() if config.rollout.wait_for_updates else None
        """Not set during an update; None if environments play meanwhile."""
        self._stream_log = StreamLog()
        self._stream_tasks: StreamTasks | None = None
        self._hint = Timer(HINT_INTERVAL_S)
        self._level_feed = None if levels is None else LevelFeed(pool, levels)
        self._league = league

    def wait_env_spec(self, timeout_ms: int) -> EnvSpec | None:
        """Returns the environment of the first env-server; None after the timeout."""
        if self._spec is None and (spec := self._pool.wait_env_spec(timeout_ms)) is not None:
            config = read_env_config(spec.env_config)
            _warn_about_statistics(config)
            self._spec = EnvSpec.of(spec.env_id, spec.observation, spec.action, config)
            self._stream_tasks = StreamTasks(self._spec, self._config.tasks.tasks)
        return self._spec

    def refuse(self, reason: str) -> None:
        self._pool.refuse_env_spec(reason)
        self._spec = self._stream_tasks = None

    def expect(self, spec: EnvSpec) -> None:
        self._pool.expect(_native(spec))

    def start(self, model: Model, device: torch.device, version: int) -> None:
        assert self._spec is not None, "wait_env_spec comes first"
        self._model, self._version = model, version
        pool, precision = self._config.pool, self._config.run.precision
        devices = [torch.device(name) for name in pool.inference_devices] or [device]
        self._weights = [WeightPublisher(model, device=to, precision=precision, version=version) for to in devices]
        home = devices[0] if len(devices) == 1 else "cpu"
        core_states = CoreStateTable(model, pool.max_envs, home) if model.core_state_size else None
        opponents = None
        if self._league is not None:
            self._league.begin(model, version, devices, partial(make_replica, model, precision))
            opponents = Opponents(self._league, pool.max_envs)
        single_frames = opponents is None and takes_single_frames(device, devices)
        frames = FrameTable(self._spec.observation, devices[0]) if single_frames else None
        use_graphs = opponents is None and len(devices) == 1 and should_use_graphs(self._config, devices[0])
        num_workers = len(devices) * pool.num_inference_threads
        # A resumed run must not repeat its earlier samples.
        first_seed = (self._config.run.seed << 32) + version * num_workers
        self._workers = [
            InferenceWorker(
                self._pool,
                self._weights[index % len(devices)],
                core_states=core_states,
                frames=frames,
                device=devices[index % len(devices)],
                seed=first_seed + index,
                opponents=opponents,
                use_graphs=use_graphs,
                compile=should_compile(self._config.run.compile, model, devices[0], uses_graphs=use_graphs),
                may_answer=self._may_play,
            )
            for index in range(num_workers)
        ]
        if self._level_feed is not None:
            self._level_feed.start()
        open_pool(self._pool, model, single_frames=single_frames)
        for worker in self._workers:
            worker.start()

    def next_rollout(self, timeout_ms: int) -> Rollout | None:
        max_lag = self._config.pool.max_policy_lag
        oldest_version = self._version - max_lag if max_lag else 0
        self._play()
        try:
            batch = self._pool.next_rollouts(timeout_ms, oldest_version)
        except ClosedError as error:
            raise ActorsError(str(error)) from error
        for worker in self._workers:
            worker.raise_error()
        if self._level_feed is not None:
            self._level_feed.raise_error()
        if batch is not None and self._may_play is not None:
            self._may_play.clear()
        return None if batch is None else rollout_from_native(batch, self._model)

    def publish(self, version: int) -> None:
        for weights in self._weights:
            weights.publish(version)
        self._version = version

    def check(self) -> None:
        """Restarts env-servers that died; logs streams that joined or left and, now and then, that there are none."""
        if self._fleet is not None:
            self._fleet.check()
        events = self._pool.take_stream_events()
        self._stream_log.tell(events)
        self.wait_env_spec(0)  # determined by the first stream that joined
        if self._stream_tasks is not None:
            self._stream_tasks.compare(events)
        if self._level_feed is not None:
            self._level_feed.look_at(events)
        if self._pool.stats()["streams"] > 0:
            self._hint = Timer(HINT_INTERVAL_S)
        elif self._hint.is_due():
            logger.info("waiting for env-servers on %s", self._meeting_point)

    def env_statistics(self) -> Sequence[Mapping[str, Any]]:
        return ()

    def task_configs(self) -> Mapping[str, EnvConfig]:
        return {} if self._stream_tasks is None else self._stream_tasks.configs

    def take_episodes(self) -> Iterable[FinishedEpisode]:
        episodes = self._pool.take_episodes()
        self._tasks.add(episodes)
        return episodes

    def stats(self) -> Mapping[str, int]:
        return self._pool.stats() | {
            "restarts": self._fleet.num_restarts if self._fleet else 0,
            "inference_threads": len(self._workers),
        }

    def histograms(self) -> Mapping[str, Histogram]:
        """Returns the native pool's histograms. Thread-safe."""
        return self._pool.histograms()

    def task_returns(self) -> Mapping[str, TaskReturn]:
        """Returns the newest episode returns of each task. Thread-safe."""
        return self._tasks.newest

    def streams(self) -> Sequence[StreamInfo]:
        """Returns the accepted streams. Thread-safe."""
        return self._pool.streams()

    def drain(self, *, finished: bool) -> None:
        self.is_draining = True
        self._play()
        self._pool.drain(finished)

    def stop(self) -> None:
        self._stream_log.tell(self._pool.take_stream_events())
        self._stream_log.flush()
        if self._level_feed is not None:
            self._level_feed.stop()
        for worker in self._workers:
            worker.stop()

    def _play(self) -> None:
        """Lets environments play that waited for an update."""
        if self._may_play is not None:
            self._may_play.set()

    @property
    def _meeting_point(self) -> str:
        """Addresses at which env-servers are awaited or dialed."""
        return " and ".join(filter(None, (self._pool.address, self._config.pool.dial)))


def _warn_about_statistics(config: EnvConfig | None) -> None:
    keepers = [wrapper.name for wrapper in (config.wrappers if config is not None else ()) if wrapper.keeps_statistics]
    if keepers:
        logger.warning(
            "wrappers = %s: each environment of a fleet keeps statistics of its own, which are not saved with the run, "
            "so that eval and a resumed run begin them anew: --normalise-observations keeps them in the model, and "
            "kubebeast mono saves those of wrappers",
            ", ".join(keepers),
        )


def make_pool(
    config: FleetTrainingConfig,
    address: str,
    expected: EnvSpec | None = None,
    opening_env: str = "",
    *,
    has_lag: bool = False,
) -> ActorPool:
    """Creates the native pool, not started yet. Raises ConfigError if it refuses a value.

    expected: the only environment that is admitted; None leaves it to the first env-server of `opening_env`, or of any
    environment if that is empty. has_lag: unrolls are played in a fixed order, which agents that take turns do not
    have.
    """
    pool, rollout = config.pool, config.rollout
    try:
        return ActorPool(
            address=bindable(address),
            run_id=config.run.xpid,
            unroll_length=rollout.unroll_length,
            batch_size=config.replay.num_fresh(rollout.batch_size),
            min_inference_rows=pool.min_inference_rows,
            max_inference_rows=pool.max_inference_rows,
            inference_timeout_ms=pool.inference_timeout_ms,
            max_queued_rollouts=pool.max_learner_queue_size,
            max_streams=pool.max_streams,
            max_envs=pool.max_envs,
            max_envs_per_stream=pool.max_envs_per_stream,
            max_message_bytes=pool.max_message_mib << 20,
            min_partial_steps=pool.min_partial_steps,
            handshake_timeout_ms=round(pool.handshake_timeout_s * 1000),
            step_timeout_ms=round(pool.step_timeout_s * 1000),
            max_offences=pool.max_offences,
            expected=None if expected is None else _native(expected),
            opening_env=opening_env,
            task_shares=list(config.tasks.weights.items()),
            log_info=config.run.log_info,
            episode_options=config.curriculum.curriculum != "",
            opponents=config.opponents.opponents != "",
            turns=not has_lag,
            tls_cert=expanded(pool.tls_cert),
            tls_key=expanded(pool.tls_key),
            tls_ca=expanded(pool.tls_ca),
            token_file=expanded(pool.token_file),
        )
    except ValueError as error:
        raise ConfigError(str(error)) from error


def open_pool(pool: ActorPool, model: Model, *, single_frames: bool) -> None:
    """Lets env-servers play; rows come as the model reads them, or as single frames for stacks made on its device."""
    pool.open(
        num_logits=model.distribution.record_size,
        core_state_size=model.core_state_size,
        interleaved=() if single_frames else model.interleaved,
        single_frames=single_frames,
    )


def _native(spec: EnvSpec) -> NativeEnvSpec:
    observation, action = ([LeafSpec(**asdict(leaf)) for leaf in leaves] for leaves in (spec.observation, spec.action))
    env_config = "" if spec.env_config is None else spec.env_config.to_json()
    return NativeEnvSpec(spec.env_id, observation, action, env_config)
