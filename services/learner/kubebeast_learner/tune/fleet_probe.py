"""Cost of a step in an env-server and in the learner's pool, measured with a real env-server and without a model."""

import contextlib
import statistics
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kubebeast_common.spec.env_spec import EnvSpec
from kubebeast_envserver.envs.factory import num_agents_of
from kubebeast_envserver.trial.trial import random_actions
from kubebeast_learner.actors.base import ActorsError
from kubebeast_learner.actors.frame_table import takes_single_frames
from kubebeast_learner.actors.remote.actors import make_pool, open_pool
from kubebeast_learner.actors.remote.local_fleet import LocalFleet
from kubebeast_learner.config import ConfigError, TrainConfig
from kubebeast_learner.machine.process_cpu import cpu_seconds_of_tree
from kubebeast_learner.models import Model, ModelSpecError, make_model
from kubebeast_learner.ranks.devices import choose_device
from kubebeast_learner.tune.pieces import EnvServerCost
from kubebeast_native import ActorPool, InferenceBatch

LEAST_STEPS = 4
"""Minimum number of measured vector steps, after as many for warm-up."""
_POLL_MS = 100


def unit_of(config: TrainConfig) -> int:
    """Returns the agents per environment. Raises ConfigError if it cannot be made."""
    making = config.fleet.making
    try:
        return num_agents_of(config.fleet.env, making["env_kwargs"], making["wrappers"])
    except ValueError as error:
        raise ConfigError(str(error)) from error


def measure(
    config: TrainConfig, address: str, folder: Path, num_envs: int, seconds: float
) -> tuple[EnvServerCost, EnvSpec]:
    """Measures one env-server with num_envs environments, for `seconds` after warm-up. Returns its environment, too.

    The pool receives frames as in a training on run.device.

    Args:
        address: Address that the env-server dials.
        folder: Folder of its log.

    Raises:
        ActorsError: The env-server failed.
        ConfigError: The device is missing, or the model does not fit the environment.
    """
    device = choose_device(config.run.device)
    fleet_config = replace(config.fleet, num_servers=1, num_actors=num_envs)
    pool = make_pool(config, address, opening_env=config.fleet.env)
    pool.start()
    fleet = LocalFleet(
        fleet_config, address=pool.address, seed=config.run.seed, version=0, log_path=folder / "env-server.log"
    )
    with fleet, contextlib.closing(pool):
        spec = _wait_for_spec(pool, fleet, config.fleet.env_timeout_s)
        try:
            model = make_model(spec.observation, spec.action, config.model)
        except ModelSpecError as error:
            raise ConfigError(f"model = {config.model.model!r}: {error}") from error
        open_pool(pool, model, single_frames=takes_single_frames(device, [device]))
        player = _Player(pool, fleet, spec, model, num_envs)
        player.play(0.0)
        return player.play(seconds), spec


class _Player:
    """Answers the rows of one stream at once, with random actions, and discards the rollouts."""

    def __init__(self, pool: ActorPool, fleet: LocalFleet, spec: EnvSpec, model: Model, num_envs: int) -> None:
        self._pool, self._fleet, self._spec, self._num_envs = pool, fleet, spec, num_envs
        self._record_size, self._core_state_size = model.distribution.record_size, model.core_state_size
        self._generator = np.random.default_rng(0)

    def play(self, seconds: float) -> EnvServerCost:
        """Plays for `seconds`, and at least LEAST_STEPS."""
        self._pool.take_step_traces()
        server_cpu_s, own_cpu_s, ends_at = self._server_cpu_s(), time.process_time(), time.monotonic() + seconds
        num_steps, env_s, latency_s = 0, list[float](), list[float]()
        while num_steps < LEAST_STEPS or time.monotonic() < ends_at:
            self._pool.trace_next_step()
            batch = self._pool.next_inference(_POLL_MS)
            while self._pool.next_rollouts(0) is not None:
                pass  # a full queue would park the stream
            if batch is None:
                self._fleet.check()
                continue
            self._answer(batch)
            num_steps += 1
            for trace in self._pool.take_step_traces():
                env_s.append(trace.env_ns / 1e9)
                latency_s.append((trace.received_ns - trace.actions_sent_ns - trace.env_ns) / 1e9)
        env_steps = num_steps * self._num_envs
        own_cpu_s, server_cpu_s = time.process_time() - own_cpu_s, self._server_cpu_s() - server_cpu_s
        return EnvServerCost(
            num_envs=self._num_envs,
            # If the machine is shared, the env-server may have waited for a core in the middle of a step.
            env_step_s=min(_undisturbed(env_s) / self._num_envs, server_cpu_s / env_steps),
            process_cpu_s=server_cpu_s / env_steps,
            pool_cpu_s=own_cpu_s / env_steps,
            latency_s=_undisturbed(latency_s),
        )

    def _server_cpu_s(self) -> float:
        self._fleet.check()
        if self._fleet.num_restarts or not self._fleet.pids:
            raise ActorsError("the env-server ended while it was measured")
        return sum(map(cpu_seconds_of_tree, self._fleet.pids))

    def _answer(self, batch: InferenceBatch) -> None:
        rows = batch.num_rows
        masks = [
            mask for mask, leaf in zip(batch.observation, self._spec.observation, strict=True) if leaf.is_action_mask
        ]
        allowed: NDArray[np.bool_] | None = masks[0].astype(np.bool_) if masks else None
        actions: Sequence[NDArray[Any]] = random_actions(self._spec.action, allowed, rows, self._generator)
        core_state = None
        if self._core_state_size:
            core_state = np.zeros((int(batch.unroll_start.sum()), self._core_state_size), np.float32)
        logits = np.zeros((rows, self._record_size), np.float32)
        batch.reply(actions, logits, np.zeros(rows, np.float32), 0, core_state)


def _wait_for_spec(pool: ActorPool, fleet: LocalFleet, timeout_s: float) -> EnvSpec:
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        spec = pool.wait_env_spec(_POLL_MS)
        if spec is not None:
            return EnvSpec.of(spec.env_id, spec.observation, spec.action)
        fleet.check()
    raise ActorsError(f"no env-server has come within env_timeout_s = {timeout_s:g} s")


def _undisturbed(values: Sequence[float]) -> float:
    """Returns the lower quartile, since values above the median often include waits for cores. 0 without values."""
    return statistics.quantiles(values, n=4)[0] if len(values) > 1 else sum(values)
