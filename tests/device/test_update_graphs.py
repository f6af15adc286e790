"""Graphs of updates change the weights as eager updates do, and skip on the device if those skip on the host."""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from kubebeast_learner.algorithm.execution.update_graphs import MAX_GRAPHS, NUM_EAGER
from kubebeast_learner.algorithm.learner import MAX_SKIPPED_UPDATES, DivergedError, Learner, UpdateStats
from kubebeast_learner.algorithm.rollout import Rollout
from kubebeast_learner.config import LossConfig, ModelConfig, OptimizerConfig
from kubebeast_learner.models import Model, make_model
from tests.device.recorded_operations import OperationRecorder
from tests.unit.learner.algorithm.learning_data import VECTOR, Leaf, discrete, random_rollout

pytestmark = pytest.mark.usefixtures("lstms_do_as_in_a_capture")

RATE = 2.0**-8
"""A learning rate that float32, which graphs keep it in, holds exactly."""
MODELS = {
    "mlp": ModelConfig(model="mlp", hidden_sizes=(8,)),
    "lstm": ModelConfig(model="mlp", hidden_sizes=(8,), use_lstm=True),
    "tanh": ModelConfig(model="mlp", hidden_sizes=(8,), bounded_actions="tanh"),
    "normalised": ModelConfig(model="mlp", hidden_sizes=(8,), normalise_observations=True, normalise_values=True),
}
BOUNDED = Leaf((2,), "float32", "action", bounded=True)
OPTIMIZERS = {
    "rmsprop": OptimizerConfig(learning_rate=RATE, learning_rate_schedule="constant", grad_norm_clipping=1.0),
    "adam": OptimizerConfig(optimizer="adam", learning_rate=RATE, learning_rate_schedule="constant"),
    "free": OptimizerConfig(learning_rate=RATE, learning_rate_schedule="constant", grad_norm_clipping=0.0),
}


def make(model: str = "mlp", optimizer: str = "rmsprop") -> tuple[Learner, Learner, OperationRecorder]:
    """Returns an eager learner, an equal one with graphs, and the recorder of those."""
    torch.manual_seed(0)
    action = BOUNDED if model == "tanh" else discrete(3)
    source, recorder = make_model([VECTOR], [action], MODELS[model]), OperationRecorder()
    eager, graphed = (
        Learner(deepcopy(source), OPTIMIZERS[optimizer], LossConfig(), schedule_steps=10_000, recorder=each)
        for each in (None, recorder)
    )
    return eager, graphed, recorder


def batches(learner: Learner, count: int) -> Iterator[Rollout]:
    for seed in range(count):
        state = tuple(torch.randn(each.shape) for each in learner.model.initial_state(4))
        rollout = random_rollout(seed=seed, core_state=state)
        if learner.model.distribution.action_shape:
            numbers = torch.randn(6, 4, 2)
            rollout = replace(
                rollout,
                distribution=learner.model.distribution,
                last_action=numbers,
                action=numbers[1:],
                policy_logits=torch.randn(5, 4, 4),
            )
        yield rollout


def tensors_of(model: Model) -> list[Tensor]:
    return [*model.parameters(), *model.buffers()]


def update_both(eager: Learner, graphed: Learner, rollout: Rollout, step: int) -> tuple[UpdateStats, UpdateStats]:
    return eager.update(rollout, step), graphed.update(rollout, step)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("model", MODELS)
def test_updates_equal_eager_ones(model: str, optimizer: str) -> None:
    eager, graphed, recorder = make(model, optimizer)
    for index, rollout in enumerate(batches(eager, 12)):
        expected, found = update_both(eager, graphed, rollout, step=20 * index)
        assert found == expected  # the schedule of the entropy cost, and the policy lag, differ each time
    assert recorder.num_starts >= 12 - NUM_EAGER - 2  # the first targets of values are found eagerly
    for mine, other in zip(tensors_of(graphed.model), tensors_of(eager.model), strict=True):
        torch.testing.assert_close(mine, other, rtol=0, atol=0)


@pytest.mark.parametrize("model", MODELS)
def test_a_bad_batch_changes_nothing(model: str) -> None:
    eager, graphed, recorder = make(model)
    for rollout in batches(eager, NUM_EAGER + 3):
        update_both(eager, graphed, rollout, step=0)
    before, num_starts = [each.clone() for each in tensors_of(graphed.model)], recorder.num_starts
    state = deepcopy(graphed.optimizer.state_dict())
    rollout = next(batches(eager, 1))
    bad = replace(rollout, rewards=torch.full_like(rollout.rewards, torch.nan))

    stats = graphed.update(bad, step=0)

    assert recorder.num_starts == num_starts + 1
    assert stats.skipped and stats.num_transitions == 0
    assert stats.version == graphed.version == eager.version
    for mine, other in zip(tensors_of(graphed.model), before, strict=True):
        assert torch.equal(mine, other)
    torch.testing.assert_close(graphed.optimizer.state_dict(), state, rtol=0, atol=0)
    assert not graphed.update(rollout, step=0).skipped
    for _ in range(MAX_SKIPPED_UPDATES - 1):
        graphed.update(bad, step=0)
    with pytest.raises(DivergedError):
        graphed.update(bad, step=0)


def test_the_host_has_a_turn_while_a_graph_runs() -> None:
    _, graphed, recorder = make()
    starts: list[int] = []
    for rollout in batches(graphed, NUM_EAGER + 3):
        graphed.update(rollout, step=0, meanwhile=lambda: starts.append(recorder.num_starts))
    assert starts == [1, 2, 3]


def test_other_layouts_of_batches_are_trained_on_too() -> None:
    eager, graphed, recorder = make()
    for _ in range(NUM_EAGER + 2):
        for size in range(1, MAX_GRAPHS + 3):
            rollout = replace(random_rollout(batch_size=size, seed=size), num_replayed=size // 2)
            expected, found = update_both(eager, graphed, rollout, step=0)
            assert found == expected
    assert recorder.num_recordings == MAX_GRAPHS


def test_an_update_that_waits_for_the_device_stays_eager(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.undo()  # an LSTM reads the starts of episodes from the device
    eager, graphed, recorder = make("lstm")
    for rollout in batches(eager, NUM_EAGER + 4):
        expected, found = update_both(eager, graphed, rollout, step=0)
        assert found == expected
    assert recorder.num_starts == 0
    assert [each.message for each in caplog.records if "CUDA graphs" in each.message] == [
        "updates run without CUDA graphs, as they cannot be recorded: aten::nonzero: operation not permitted when "
        "stream is capturing"
    ]


def test_an_optimizer_that_cannot_skip_on_the_device_stays_eager() -> None:
    torch.manual_seed(0)
    model, recorder = make_model([VECTOR], [discrete(3)], MODELS["mlp"]), OperationRecorder()
    learner = Learner(model, OptimizerConfig(momentum=0.9), LossConfig(), schedule_steps=10, recorder=recorder)
    for rollout in batches(learner, NUM_EAGER + 2):
        learner.update(rollout, step=0)
    assert recorder.num_recordings == 0


def test_a_checkpoint_of_a_learner_with_graphs_has_numbers_alone() -> None:
    eager, graphed, _ = make("normalised", "adam")
    for rollout in batches(eager, NUM_EAGER + 3):
        update_both(eager, graphed, rollout, step=0)
    mine, other = (learner.state_dict()["optimizer"]["param_groups"] for learner in (graphed, eager))
    assert mine == other
