"""Inference by graphs gives the numbers of eager inference for all rows, weights and environments."""

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from kubebeast_learner.actors.core_states import CoreStateTable
from kubebeast_learner.actors.frame_table import FrameTable
from kubebeast_learner.actors.graph_runner import GraphRunner, bucket_of
from kubebeast_learner.actors.runner import Answer, EagerRunner
from kubebeast_learner.config import ModelConfig
from kubebeast_learner.models import Model, make_model
from tests.device.recorded_operations import OperationRecorder
from tests.unit.learner.algorithm.learning_data import Leaf, discrete

CPU = torch.device("cpu")
SCREEN = Leaf((4, 36, 36), "uint8", "screen", frame_stack=4)
NUMBERS = Leaf((5,), path="numbers")
MAX_ENVS = 40
NEAR: dict[str, Any] = {"rtol": 1e-4, "atol": 1e-5}
"""Sums over a padded batch have another order."""
MODELS = {
    "mlp": (NUMBERS, discrete(3), ModelConfig(model="mlp", hidden_sizes=(8,))),
    "lstm": (NUMBERS, discrete(3), ModelConfig(model="mlp", hidden_sizes=(8,), use_lstm=True)),
    "frames": (SCREEN, discrete(3), ModelConfig(model="shallow")),
    "numbers": (NUMBERS, Leaf((2,), "float32", "action", bounded=True), ModelConfig(bounded_actions="tanh")),
}


@dataclass
class Batch:
    """The attributes of kubebeast_native.InferenceBatch that a runner reads, of single frames."""

    slots: NDArray[np.int32]
    is_first: NDArray[np.bool_]
    unroll_start: NDArray[np.bool_]
    observation: list[NDArray[Any]]
    first_stacks: list[NDArray[Any]]
    rewards: NDArray[np.float32]
    last_actions: list[NDArray[Any]]
    task: NDArray[np.int64]


class Games:
    """Environments that send random rows."""

    def __init__(self, model: Model, leaf: Leaf) -> None:
        self._random, self._model, self._leaf = np.random.default_rng(0), model, leaf
        self._met: set[int] = set()

    def batch(self, num_slots: int) -> Batch:
        random, leaf = self._random, self._leaf
        slots = random.permutation(num_slots)[: random.integers(1, num_slots + 1)].astype(np.int32)
        is_first = np.array([slot not in self._met or random.random() < 0.2 for slot in slots.tolist()])
        self._met |= set(slots.tolist())
        observation = [self._rows(len(slots), leaf.shape)]
        stacks = self._rows(int(is_first.sum()), leaf.row_shape)
        if leaf.frame_stack > 1:
            stacks[:, -1] = observation[0][is_first]
        distribution = self._model.distribution
        return Batch(
            slots=slots,
            is_first=is_first,
            unroll_start=random.random(len(slots)) < 0.5,
            observation=observation,
            first_stacks=[stacks if leaf.frame_stack > 1 else stacks[:0]],
            rewards=random.random(len(slots), np.float32),
            last_actions=distribution.to_leaves(distribution.none(len(slots))),
            task=np.zeros(len(slots), np.int64),
        )

    def _rows(self, count: int, shape: tuple[int, ...]) -> NDArray[Any]:
        if self._leaf.dtype == "uint8":
            return self._random.integers(256, size=(count, *shape), dtype=np.uint8)
        return self._random.standard_normal((count, *shape), np.float32)


def make(name: str, *, compile: bool = False) -> tuple[Model, EagerRunner, GraphRunner, OperationRecorder, Games]:
    leaf, action, config = MODELS[name]
    torch.manual_seed(0)
    model, recorder = make_model([leaf], [action], config).eval(), OperationRecorder()
    tables: list[dict[str, Any]] = [
        {
            "core_states": CoreStateTable(model, MAX_ENVS) if model.core_state_size else None,
            "frames": FrameTable([leaf], CPU) if leaf.frame_stack > 1 else None,
        }
        for _ in range(2)
    ]
    eager = EagerRunner(CPU, torch.Generator().manual_seed(0), **tables[0])
    graphs = GraphRunner(CPU, torch.Generator().manual_seed(0), **tables[1], recorder=recorder, compile=compile)
    return model, eager, graphs, recorder, Games(model, leaf)


def assert_alike(found: Answer, expected: Answer, num_logits: int) -> None:
    """Compares all but the draws."""
    assert found.action.shape == expected.action.shape and found.action.dtype == expected.action.dtype
    torch.testing.assert_close(found.record[:, :num_logits], expected.record[:, :num_logits], **NEAR)
    torch.testing.assert_close(found.baseline, expected.baseline, **NEAR)
    assert (found.core_state is None) == (expected.core_state is None)
    if found.core_state is not None and expected.core_state is not None:
        torch.testing.assert_close(found.core_state, expected.core_state, **NEAR)


@pytest.mark.parametrize("name", MODELS)
@torch.inference_mode()
def test_answers_are_those_of_eager_inference(name: str) -> None:
    """Batches of any size, new environments and episodes, and new weights now and then."""
    model, eager, graphs, recorder, games = make(name)
    for step in range(60):
        if step % 7 == 0:
            for weight in model.parameters():
                weight.add_(0.01 * torch.randn_like(weight))
        batch: Any = games.batch(min(MAX_ENVS, 3 + step))
        found, expected = (runner.run(batch, model, version=step // 7) for runner in (graphs, eager))
        assert_alike(found, expected, model.distribution.num_logits)
    assert recorder.num_starts == 60


@torch.inference_mode()
def test_a_draw_follows_the_policy_and_the_next_one_differs() -> None:
    model, _, graphs, _, games = make("mlp")
    batch: Any = games.batch(MAX_ENVS)
    draws = torch.stack([graphs.run(batch, model, version=1).action.clone() for _ in range(400)])
    _, policy_logits, _, _ = graphs.run(batch, model, version=1)
    shares = torch.nn.functional.one_hot(draws, 3).float().mean(dim=0)
    assert (shares - policy_logits.softmax(dim=-1)).abs().max() < 0.1
    assert not torch.equal(draws[0], draws[1])


@torch.inference_mode()
def test_batches_of_similar_sizes_share_a_graph() -> None:
    model, _, graphs, recorder, games = make("mlp")
    for _ in range(100):
        graphs.run(games.batch(MAX_ENVS), model, version=1)  # type: ignore[arg-type]
    assert recorder.num_recordings <= len({bucket_of(rows) for rows in range(1, MAX_ENVS + 1)})


@torch.inference_mode()
def test_a_failing_compiler_is_reported_once_and_inference_goes_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any) -> None:
        raise LookupError("no compiler here")

    model, eager, graphs, recorder, games = make("frames", compile=True)
    monkeypatch.setattr(torch.nn.Module, "compile", lambda self, dynamic: setattr(self, "_compiled_call_impl", fail))
    for step in range(20):
        batch: Any = games.batch(min(MAX_ENVS, 3 + step))
        found, expected = (runner.run(batch, model, version=1) for runner in (graphs, eager))
        assert_alike(found, expected, model.distribution.num_logits)
    assert recorder.num_starts == 20
    assert caplog.text.count("no compiler here") == 1


@torch.inference_mode()
def test_an_error_of_the_model_is_not_taken_for_the_compilers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.nn.Module, "compile", lambda self, dynamic: None)
    model, _, graphs, _, games = make("frames", compile=True)
    convolutions, batch = model.low_precision_part, cast(Any, games.batch(3))
    assert convolutions is not None
    convolutions.register_forward_pre_hook(lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        graphs.run(batch, model, version=1)


def test_padding_is_at_most_half_of_the_rows() -> None:
    for rows in range(1, 3000):
        assert rows <= bucket_of(rows) <= max(8, 1.5 * rows)
    assert len({bucket_of(rows) for rows in range(1, 1025)}) == 15
