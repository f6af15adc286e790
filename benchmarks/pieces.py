"""The indispensable work of a training system, on one thread per core: the CPU time of each piece per env-step."""

import dataclasses
import itertools
import multiprocessing
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.synchronize import Barrier

import numpy as np
import torch

from kubebeast_common.spec.env_spec import EnvSpec
from kubebeast_envserver.envs.factory import HostedEnv, make_vector_env
from kubebeast_learner.actors.weights import WeightPublisher
from kubebeast_learner.algorithm.learner import Learner
from kubebeast_learner.algorithm.made_up import interleaved, made_up_rollout
from kubebeast_learner.config import LossConfig, ModelConfig, OptimizerConfig
from kubebeast_learner.machine.allocator import keep_freed_memory
from kubebeast_learner.machine.cores import num_cores
from kubebeast_learner.models import Model, ModelInputs, make_model
from kubebeast_learner.models.dummy import dummy_inputs

WARMUP_CALLS = 3


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Load:
    """The load of the pieces; frames have the memory layout of the actors' batches."""

    env: str
    num_envs: int
    """Environments in a vector."""
    num_rows: int
    """Rows of an inference batch."""
    unroll_length: int
    batch_size: int
    model: str
    """Name of the network."""


def measure_all(load: Load, seconds: float) -> dict[str, float]:
    """Returns the CPU microseconds per env-step of env, inference and update, measured in `seconds` altogether.

    All cores run at once, and the pieces in turns: alone, a piece would find its data in caches, unlike in training.
    """
    spawn = multiprocessing.get_context("spawn")
    cores = num_cores()
    with ProcessPoolExecutor(cores, spawn, _meet_at, (spawn.Barrier(cores),)) as executor:
        measured = [future.result() for future in [executor.submit(_measure_core, load, seconds) for _ in range(cores)]]
    return {name: statistics.mean(floor[name] for floor in measured) for name in measured[0]}


_barrier: Barrier


def _meet_at(barrier: Barrier) -> None:
    global _barrier
    _barrier = barrier


def _measure_core(load: Load, seconds: float) -> dict[str, float]:
    """Measures one core, in this process; begins as soon as all processes are ready."""
    torch.set_num_threads(1)
    keep_freed_memory()
    envs = make_vector_env(load.env, load.num_envs, seed=1, full_stacks=False)
    spec = EnvSpec.of(load.env, envs.spec_observation, envs.spec_action)
    network = make_model(spec.observation, spec.action, ModelConfig(model=load.model))
    pieces = {
        "env": (_env(envs), load.num_envs),
        "inference": (_inference(network, spec, load.num_rows), load.num_rows),
        "update": (
            _update(network, spec, load.unroll_length, load.batch_size),
            load.unroll_length * load.batch_size,
        ),
    }
    for call, _ in pieces.values():
        for _ in range(WARMUP_CALLS):
            call()
    _barrier.wait()
    floor = _take_turns(pieces, seconds)
    envs.close()
    return floor


def _take_turns(pieces: dict[str, tuple[Callable[[], object], int]], seconds: float) -> dict[str, float]:
    """Returns the CPU microseconds per step of each piece, given as its call and the steps of a call.

    The next piece to run is always the one with the fewest steps.
    """
    num_steps, cpu_s = dict.fromkeys(pieces, 0), dict.fromkeys(pieces, 0.0)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        name = min(num_steps, key=num_steps.__getitem__)
        call, steps = pieces[name]
        began = time.process_time()
        call()
        cpu_s[name] += time.process_time() - began
        num_steps[name] += steps
    return {name: cpu_s[name] / num_steps[name] * 1e6 for name in pieces}


def _env(envs: HostedEnv) -> Callable[[], object]:
    (action,) = envs.spec_action
    random = np.random.default_rng(1)
    actions = [[random.integers(action.num_categories, size=envs.num_envs)] for _ in range(256)]
    turns = itertools.cycle(actions)
    envs.reset()
    return lambda: envs.step(next(turns))


def _rows(network: Model, spec: EnvSpec, num_rows: int) -> ModelInputs:
    rows = dummy_inputs(spec.observation, network.distribution, 1, num_rows)
    return rows._replace(observation=network.with_frames_first(interleaved(network, rows.observation), axis=2))


def _inference(network: Model, spec: EnvSpec, num_rows: int) -> Callable[[], object]:
    weights = WeightPublisher(network)
    generator = torch.Generator().manual_seed(1)
    inputs = _rows(network, spec, num_rows)
    core_state = network.initial_state(num_rows)

    def act() -> np.ndarray:
        with torch.inference_mode(), weights.acquire() as (model, _):
            output, _ = model(inputs, core_state)
            actions: np.ndarray = network.distribution.sample(output.policy_logits[0], generator).numpy()
            return actions

    return act


def _update(network: Model, spec: EnvSpec, unroll_length: int, batch_size: int) -> Callable[[], object]:
    learner = Learner(network, OptimizerConfig(), LossConfig(), schedule_steps=1)
    rollout = made_up_rollout(network, spec.observation, unroll_length, batch_size)
    return lambda: learner.update(rollout, step=0)
