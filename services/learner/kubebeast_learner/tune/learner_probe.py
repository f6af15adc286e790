"""Times of an update and an inference batch, of a training's learner and inference thread on made-up rows."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from kubebeast_common.spec.env_spec import EnvSpec
from kubebeast_learner.actors.core_states import CoreStateTable
from kubebeast_learner.actors.frame_table import FrameTable, takes_single_frames
from kubebeast_learner.actors.inference import InferenceWorker
from kubebeast_learner.actors.weights import WeightPublisher
from kubebeast_learner.algorithm.learner import Learner
from kubebeast_learner.algorithm.made_up import interleaved, made_up_rollout, with_single_frames
from kubebeast_learner.algorithm.precision import PrecisionChoice, should_use_graphs
from kubebeast_learner.algorithm.rollout import map_tensors
from kubebeast_learner.config import TrainConfig
from kubebeast_learner.models import Model
from kubebeast_learner.models.dummy import dummy_inputs
from kubebeast_learner.training.build import assemble_learner
from kubebeast_learner.tune.pieces import Call, LearnerCost
from kubebeast_learner.tune.timing import Laps, time_calls

ROWS = (1, 8, 32, 128)
"""Sizes of an inference batch."""
TINY_LEARNING_RATE = 1e-12
"""Small enough that made-up rewards do not make the weights diverge."""


@dataclass(frozen=True, slots=True)
class Setup:
    """Configuration under which an update and inference are measured."""

    device: str
    precision: PrecisionChoice
    threads: int

    def __str__(self) -> str:
        return f"{self.device}, {self.precision}, {self.threads} thread{'s' * (self.threads > 1)}"


def setups(config: TrainConfig, model: Model, cores: int) -> list[Setup]:
    """Returns the candidates; settings fixed by the user are not varied."""
    run = config.run
    devices = [run.device] if run.device != "auto" else ["cuda"] * torch.cuda.is_available() + ["cpu"]
    precisions: Sequence[PrecisionChoice] = [run.precision] if run.precision != "auto" else ["fp32", "bf16"]
    if model.low_precision_part is None:
        precisions = ["fp32"]
    return [
        Setup(device, precision, threads)
        for device in devices
        for precision in precisions
        for threads in _numbers_of_threads(run.learner_threads, device, cores)
    ]


def measure(config: TrainConfig, spec: EnvSpec, setup: Setup, seconds: float) -> LearnerCost:
    """Measures update and inference in about `seconds`. Raises ConfigError as a training does."""
    run = replace(config.run, device=setup.device, precision=setup.precision, compile=_compile(config, setup))
    optimizer = replace(config.optimizer, learning_rate=TINY_LEARNING_RATE, learning_rate_schedule="constant")
    learner = assemble_learner(replace(config, run=run, optimizer=optimizer), spec, None)
    share_s = seconds / (1 + len(ROWS))
    threads = torch.get_num_threads()
    torch.set_num_threads(setup.threads)
    try:
        weights = WeightPublisher(learner.model, device=learner.device, precision=setup.precision)
        update = _measure_update(config, spec, learner, weights, share_s)
        inference = {rows: _measure_inference(config, spec, learner, weights, rows, share_s) for rows in ROWS}
    finally:
        torch.set_num_threads(threads)
    return LearnerCost(
        device=setup.device,
        precision=setup.precision,
        threads=setup.threads,
        update=_undisturbed(update, setup),
        inference={rows: _undisturbed(call, setup) for rows, call in inference.items()},
    )


def _undisturbed(call: Call, setup: Setup) -> Call:
    """Removes the work of other processes: on a CPU, one thread takes no longer than its CPU time."""
    is_one_thread = setup.device == "cpu" and setup.threads == 1
    return Call(wall_s=min(call.wall_s, call.cpu_s), cpu_s=call.cpu_s) if is_one_thread else call


def _measure_update(
    config: TrainConfig, spec: EnvSpec, learner: Learner, weights: WeightPublisher, seconds: float
) -> Call:
    shape = config.rollout
    rollout = made_up_rollout(learner.model, spec.observation, shape.unroll_length, shape.batch_size)
    rollout = map_tensors(lambda tensor: tensor.cpu(), rollout)
    if takes_single_frames(learner.device, [learner.device]):
        rollout = with_single_frames(rollout, spec.observation)

    def update() -> None:
        learner.update(rollout.to(learner.device).stacked(), step=0)
        weights.publish(learner.version)

    return time_calls(update, seconds)


def _measure_inference(
    config: TrainConfig, spec: EnvSpec, learner: Learner, weights: WeightPublisher, rows: int, seconds: float
) -> Call:
    model, device = learner.model, learner.device
    single_frames = takes_single_frames(device, [device])
    pool = _EndlessRows(made_up_batch(spec, model, rows, single_frames=single_frames), seconds)
    frames = FrameTable(spec.observation, device) if single_frames else None
    core_states = CoreStateTable(model, rows, device) if model.core_state_size else None
    worker = InferenceWorker(
        pool,
        weights,
        core_states=core_states,
        frames=frames,
        device=device,
        use_graphs=should_use_graphs(config, device),
    )
    pool.worker = worker
    worker.start()
    worker.join()
    worker.stop()
    return pool.laps.result()


@dataclass(slots=True)
class MadeUpBatch:
    """The part of kubebeast_native.InferenceBatch that an inference thread reads; every row is in mid-episode."""

    observation: list[NDArray[Any]]
    first_stacks: list[NDArray[Any]]
    rewards: NDArray[np.float32]
    last_actions: list[NDArray[Any]]
    is_first: NDArray[np.bool_]
    slots: NDArray[np.int32]
    unroll_start: NDArray[np.bool_]
    task: NDArray[np.int64]

    def reply(self, *answer: object) -> None:
        """Ignores the answer."""


def made_up_batch(spec: EnvSpec, model: Model, rows: int, *, single_frames: bool) -> MadeUpBatch:
    """Returns random rows in the native pool's layout for the model, of stacks the newest frames if single_frames."""
    inputs = dummy_inputs(spec.observation, model.distribution, 1, rows)
    whole = [leaf[0].numpy() for leaf in inputs.observation]
    if single_frames:
        pairs = zip(spec.observation, whole, strict=True)
        observation = [array[:, -1].copy() if leaf.frame_stack > 1 else array for leaf, array in pairs]
    else:
        observation = [leaf[0].numpy() for leaf in interleaved(model, inputs.observation)]
    return MadeUpBatch(
        observation=observation,
        first_stacks=[array[:0] for array in whole] if single_frames else [],
        rewards=inputs.reward[0].numpy(),
        last_actions=model.distribution.to_leaves(inputs.last_action[0]),
        is_first=inputs.is_first[0].numpy(),
        slots=np.arange(rows, dtype=np.int32),
        unroll_start=np.zeros(rows, np.bool_),
        task=np.zeros(rows, np.int64),
    )


class _EndlessRows:
    """An inference pool with the same batch ready at every call, until the time is over."""

    worker: InferenceWorker

    def __init__(self, batch: MadeUpBatch, seconds: float) -> None:
        self.laps = Laps(seconds)
        self._batch = batch

    def next_inference(self, timeout_ms: int) -> Any:
        if self.laps.next():
            return self._batch
        self.worker.stopping.set()
        return None


def _numbers_of_threads(wanted: int, device: str, cores: int) -> Iterable[int]:
    """Returns powers of two up to the cores, and all cores; 1 on a GPU."""
    if wanted:
        return [wanted]
    if device != "cpu":
        return [1]
    powers: Mapping[int, None] = dict.fromkeys([2**power for power in range(cores.bit_length())] + [cores])
    return sorted(powers)


def _compile(config: TrainConfig, setup: Setup) -> Any:
    """Disables the compiler, which takes longer than the measurement, unless it is explicitly on."""
    return "on" if config.run.compile == "on" else "off"
