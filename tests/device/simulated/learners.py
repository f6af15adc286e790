"""Every kind of model, loss and optimizer trains and plays on GPUs with the numbers of the CPU, without a fault."""

from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
import torch

from kubebeast_learner.actors.core_states import CoreStateTable
from kubebeast_learner.actors.frame_table import FrameTable
from kubebeast_learner.actors.graph_runner import GraphRunner, bucket_of
from kubebeast_learner.actors.runner import EagerRunner
from kubebeast_learner.actors.weights import WeightPublisher
from kubebeast_learner.algorithm.execution.update_graphs import NUM_EAGER
from kubebeast_learner.algorithm.learner import Learner
from kubebeast_learner.algorithm.made_up import made_up_rollout
from kubebeast_learner.algorithm.optimizers import make_optimizer, step_unless
from kubebeast_learner.algorithm.precision import PrecisionChoice, use_channels_last
from kubebeast_learner.algorithm.rollout import Rollout, tensors_of
from kubebeast_learner.config import LossConfig, ModelConfig, OptimizerConfig, PassesConfig
from kubebeast_learner.machine.cuda_graph import GraphRecorder
from kubebeast_learner.models import Model, make_model
from tests.device.simulation.findings import found
from tests.device.simulation.streams import Stream, use_stream
from tests.device.test_graph_runner import Batch
from tests.unit.learner.algorithm.learning_data import VECTOR, Leaf, discrete

TRAINING, PLAYING, CPU = torch.device("cuda:1"), torch.device("cuda:0"), torch.device("cpu")
SCREEN = Leaf((4, 36, 36), "uint8", "screen", frame_stack=4)
MASK = Leaf((3,), "bool", "mask", is_action_mask=True)
BOUNDED = Leaf((2,), "float32", "action", bounded=True)
UNBOUNDED = Leaf((2,), "float32", "action")
SEVERAL = Leaf((2,), "int64", "action", num_categories=3)
SMALL: dict[str, Any] = {"model": "mlp", "hidden_sizes": (8,)}
NUM_ENVS, SLOTS = 4, np.array([3, 0, 2], np.int32)
WAIT = "an event at"
"""The wait that uses no core."""
NEAR: dict[str, Any] = {"rtol": 1e-4, "atol": 1e-5}
EAGER = {"adamw", "momentum", "sgd"}
"""Kinds with an optimizer that cannot skip an update on the device."""
ALIGNMENT = 256
"""Bytes to which tensors of one copy are aligned."""
TOO_MANY_BYTES = "too many bytes are copied to a device"


@dataclass(frozen=True)
class Kind:
    """A training to try."""

    leaves: tuple[Leaf, ...] = (VECTOR,)
    action: Leaf = field(default_factory=lambda: discrete(3))
    model: ModelConfig = field(default_factory=lambda: ModelConfig(**SMALL))
    loss: LossConfig = field(default_factory=LossConfig)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    passes: PassesConfig = field(default_factory=PassesConfig)
    num_tasks: int = 1


KINDS = {
    "mlp": Kind(),
    "lstm": Kind(model=ModelConfig(**SMALL, use_lstm=True)),
    "two networks": Kind(model=ModelConfig(**SMALL, separate_baseline=True, initialisation="orthogonal")),
    "normalisation": Kind(model=ModelConfig(**SMALL, normalise_observations=True, normalise_values=True)),
    "tasks": Kind(model=ModelConfig(**SMALL, task_input=True, normalise_values=True), num_tasks=2),
    "inputs": Kind(model=ModelConfig(**SMALL, reward_input="on", last_action_input="on")),
    "mask": Kind(leaves=(VECTOR, MASK)),
    "shallow": Kind(leaves=(SCREEN,), model=ModelConfig(model="shallow")),
    "deep lstm": Kind(leaves=(SCREEN,), model=ModelConfig(model="deep", use_lstm=True)),
    "frames and numbers": Kind(leaves=(SCREEN, VECTOR), model=ModelConfig(normalise_images=True)),
    "tanh": Kind(action=BOUNDED, model=ModelConfig(**SMALL, bounded_actions="tanh")),
    "clipped": Kind(action=BOUNDED, model=ModelConfig(**SMALL, bounded_actions="clip")),
    "unbounded": Kind(action=UNBOUNDED),
    "several choices": Kind(action=SEVERAL),
    "adam": Kind(optimizer=OptimizerConfig(optimizer="adam")),
    "adamw": Kind(optimizer=OptimizerConfig(optimizer="torch.optim:AdamW")),
    "momentum": Kind(optimizer=OptimizerConfig(momentum=0.9)),
    "sgd": Kind(optimizer=OptimizerConfig(optimizer="torch.optim:SGD", grad_norm_clipping=0.0)),
    "warm-up": Kind(optimizer=OptimizerConfig(learning_rate_schedule="cosine", learning_rate_warmup_steps=50)),
    "ratio": Kind(loss=LossConfig(clip_policy_ratio=0.2, normalise_advantages=True, loss_reduction="mean")),
    "soft": Kind(loss=LossConfig(reward_clipping="soft_asymmetric", vtrace_lambda=0.9, entropy_schedule="linear")),
    "passes": Kind(
        model=ModelConfig(**SMALL, normalise_values=True),
        passes=PassesConfig(passes=2, minibatches=2),
        optimizer=OptimizerConfig(optimizer="adam"),
    ),
}


def model_of(kind: Kind) -> Model:
    torch.manual_seed(0)
    return make_model(kind.leaves, [kind.action], kind.model, num_tasks=kind.num_tasks)


def learner_of(kind: Kind, model: Model, device: torch.device) -> Learner:
    recorder = GraphRecorder(device) if device.type == "cuda" else None
    return Learner(
        model,
        kind.optimizer,
        kind.loss,
        schedule_steps=1000,
        passes=kind.passes,
        device=device,
        precision="fp32",
        compile="off",
        recorder=recorder,
    )


def rollouts(kind: Kind, model: Model, count: int) -> list[Rollout]:
    random = torch.Generator().manual_seed(0)
    made = [made_up_rollout(model, kind.leaves, unroll_length=4, batch_size=2) for _ in range(count)]
    return [replace(each, rewards=torch.randn(each.rewards.shape, generator=random)) for each in made]


def batch_of(kind: Kind, model: Model, *, is_first: bool) -> Any:
    """Returns rows of the environments in SLOTS, as the pool gives them for a table of frames."""
    random, num_rows = np.random.default_rng(0), len(SLOTS)

    def rows(leaf: Leaf, shape: tuple[int, ...], count: int) -> Any:
        if leaf.dtype == "bool":
            return np.ones((count, *shape), np.bool_)
        return random.integers(9, size=(count, *shape)).astype(leaf.dtype)

    newest = [rows(leaf, leaf.shape, num_rows) for leaf in kind.leaves]
    stacks = [rows(leaf, leaf.row_shape, num_rows if is_first and leaf.frame_stack > 1 else 0) for leaf in kind.leaves]
    for leaf, new, stack in zip(kind.leaves, newest, stacks, strict=True):
        if len(stack) and leaf.frame_stack > 1:
            stack[:, -1] = new
    return Batch(
        slots=SLOTS,
        is_first=np.full(num_rows, is_first),
        unroll_start=np.ones(num_rows, np.bool_),
        observation=newest,
        first_stacks=stacks,
        rewards=random.random(num_rows, np.float32),
        last_actions=model.distribution.to_leaves(model.distribution.none(num_rows)),
        task=np.arange(num_rows) % kind.num_tasks,
    )


def launches() -> tuple[int, int]:
    """Returns the number of copies within a device, and that of other launches."""
    num_copies = sum(count for name, count in found.launches.items() if "copy" in name)
    return num_copies, sum(found.launches.values()) - num_copies


@pytest.mark.parametrize("name", KINDS)
def test_updates_equal_those_on_the_cpu(name: str) -> None:
    kind = KINDS[name]
    source = model_of(kind)
    batches = rollouts(kind, source, NUM_EAGER + 3)
    there, here = (learner_of(kind, deepcopy(source), device) for device in (TRAINING, CPU))
    for step, batch in enumerate(batches):
        found.reset()
        on_device = batch.to(TRAINING)
        sizes = [each.numel() * each.element_size() for each in tensors_of(batch)]
        assert found.copies == {"to a device": 1} and not found.waits
        assert found.copied_bytes["to a device"] <= sum(sizes) + ALIGNMENT * len(sizes), TOO_MANY_BYTES
        found.reset()
        mine = there.update(on_device, step)
        (num_copies, num_launches), waits = launches(), found.waits.copy()
        other = here.update(batch, step)
        assert not mine.skipped and mine.total_loss == pytest.approx(other.total_loss, rel=1e-3, abs=1e-4)
    for mine_there, mine_here in zip(there.model.parameters(), here.model.parameters(), strict=True):
        assert mine_there.device == TRAINING
        torch.testing.assert_close(mine_there.cpu(), mine_here, **NEAR)
    assert bool(found.launches["graph"]) == (name not in EAGER)
    assert waits and all(WAIT in each for each in waits)
    if name not in EAGER and kind.passes == PassesConfig():
        assert num_launches <= 12 and waits.total() == 1
        assert num_copies <= len({each.dtype for each in tensors_of(batch)}) + 1  # the learning rate


@pytest.mark.parametrize("name", KINDS)
def test_answers_equal_those_on_the_cpu(name: str) -> None:
    kind = KINDS[name]
    here = model_of(kind).eval()
    there = deepcopy(here).to(TRAINING)
    weights = WeightPublisher(there, device=PLAYING, precision="fp32")
    runners = []
    for device, runner in ((PLAYING, GraphRunner), (CPU, EagerRunner)):
        model = weights._current.model if device.type == "cuda" else here
        states = CoreStateTable(model, NUM_ENVS, device) if model.core_state_size else None
        frames = FrameTable(kind.leaves, device) if any(leaf.frame_stack > 1 for leaf in kind.leaves) else None
        runners.append(runner(device, torch.Generator(device).manual_seed(0), states, frames))
    graphs, eager = runners
    with torch.inference_mode(), use_stream(Stream(PLAYING)):
        for step in range(4):
            batch = batch_of(kind, here, is_first=step == 0)
            found.reset()
            with weights.acquire() as (model, version):
                mine = graphs.run(batch, model, version)
            num_launches, num_waits = sum(found.launches.values()), sum(found.waits.values())
            other = eager.run(batch, here, version)
            num_logits = here.distribution.num_logits
            torch.testing.assert_close(mine.record[:, :num_logits], other.record[:, :num_logits], **NEAR)
            torch.testing.assert_close(mine.baseline, other.baseline, **NEAR)
            if other.core_state is not None:
                torch.testing.assert_close(mine.core_state, other.core_state, **NEAR)
    assert num_waits == 1 and num_launches <= (2 if here.core_state_size else 1)
    assert WAIT in next(iter(found.waits))
    assert found.copies == {"to a device": 1, "to the host": 1} or here.core_state_size
    row_bytes = sum(each[:1].nbytes for each in batch.observation) + ALIGNMENT  # with all other inputs
    most = bucket_of(len(SLOTS)) * row_bytes + ALIGNMENT * 8
    assert found.copied_bytes["to a device"] <= most, TOO_MANY_BYTES


@pytest.mark.parametrize(
    ("name", "precision", "num_dtypes"),
    [("two networks", "fp32", 1), ("deep lstm", "fp32", 1), ("shallow", "bf16", 2), ("normalisation", "fp32", 2)],
)
def test_new_weights_are_a_launch_for_each_dtype_for_the_replica_and_for_its_graphs(
    name: str, precision: PrecisionChoice, num_dtypes: int
) -> None:
    kind = KINDS[name]
    source = model_of(kind).eval()
    use_channels_last(source, PLAYING)  # as a learner's
    weights = WeightPublisher(source, device=PLAYING, precision=precision)
    states = CoreStateTable(source, NUM_ENVS, PLAYING) if source.core_state_size else None
    frames = FrameTable(kind.leaves, PLAYING) if any(leaf.frame_stack > 1 for leaf in kind.leaves) else None
    graphs = GraphRunner(PLAYING, torch.Generator(PLAYING).manual_seed(0), states, frames)

    def num_launches(version: int) -> int:
        found.reset()
        weights.publish(version)
        with weights.acquire() as (model, newest):
            graphs.run(batch_of(kind, source, is_first=version == 1), model, newest)
        return sum(found.launches.values())

    with torch.inference_mode(), use_stream(Stream(PLAYING)):
        for version in (1, 2, 3):
            num_launches(version)
        found.reset()
        with weights.acquire() as (model, newest):
            graphs.run(batch_of(kind, source, is_first=False), model, newest)
        of_batch = sum(found.launches.values())
        assert num_launches(4) == of_batch + 2 * num_dtypes


@pytest.mark.parametrize("optimizer", ["rmsprop", "adam"])
def test_a_step_of_an_optimizer_has_as_many_launches_for_more_tensors(optimizer: str) -> None:
    def num_launches(num_tensors: int) -> int:
        weights = [torch.nn.Parameter(torch.ones(4, device=TRAINING)) for _ in range(num_tensors)]
        steps = make_optimizer(weights, OptimizerConfig(optimizer=optimizer))
        is_bad, rate = torch.zeros((), dtype=torch.bool, device=TRAINING), torch.ones((), device=TRAINING)
        for _ in range(2):  # the first step makes the state
            for each in weights:
                each.grad = torch.ones_like(each)
            found.reset()
            step_unless(is_bad, steps, rate)
        return sum(found.launches.values())

    assert num_launches(12) == num_launches(2)


def test_float32_is_not_tensorfloat32() -> None:
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = True
    learner_of(KINDS["shallow"], model_of(KINDS["shallow"]), TRAINING)
    assert not torch.backends.cudnn.allow_tf32 and not torch.backends.cuda.matmul.allow_tf32
