"""The learner: exact updates, skipped updates, state, precision and compilation."""

import logging
from copy import deepcopy
from dataclasses import replace

import pytest
import torch

from kubebeast_learner.config import LossConfig, ModelConfig, OptimizerConfig
from kubebeast_learner.learner import MAX_SKIPPED_UPDATES, DivergedError, Learner
from kubebeast_learner.losses import impala_loss
from kubebeast_learner.models import make_model
from kubebeast_learner.precision import should_compile, torso_dtype
from kubebeast_learner.rollout import Rollout
from tests.unit.learning_data import FRAMES, discrete, make_mlp, random_rollout


def make_learner(optimizer: OptimizerConfig | None = None, **options: object) -> Learner:
    return Learner(make_mlp(), optimizer or OptimizerConfig(), LossConfig(), **options)  # type: ignore[arg-type]


def weights(learner: Learner) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in learner.model.parameters()])


def gradient_of(learner: Learner, rollout: Rollout) -> torch.Tensor:
    model = deepcopy(learner.model)
    output, _ = model(rollout.model_inputs, rollout.core_state)
    loss = impala_loss(output, rollout, LossConfig())
    return torch.cat([g.flatten() for g in torch.autograd.grad(loss.total, list(model.parameters()))])


def broken(rollout: Rollout) -> Rollout:
    return replace(rollout, rewards=torch.full_like(rollout.rewards, torch.nan))


def test_first_rmsprop_step_is_the_textbook_one() -> None:
    """square_avg = (1 - alpha) g^2, step = lr g / (sqrt(square_avg) + epsilon)."""
    learner = make_learner(OptimizerConfig(alpha=0.9, epsilon=0.1, grad_norm_clipping=0.0))
    rollout = random_rollout()
    before, gradient = weights(learner), gradient_of(learner, rollout)
    stats = learner.update(rollout, learning_rate=0.01)
    expected = before - 0.01 * gradient / ((0.1 * gradient.square()).sqrt() + 0.1)
    torch.testing.assert_close(weights(learner), expected)
    assert stats.grad_norm == pytest.approx(gradient.norm().item(), rel=1e-5)
    assert stats.learning_rate == 0.01
    assert not stats.skipped


def test_large_gradients_are_scaled_to_the_norm() -> None:
    learner = make_learner(OptimizerConfig(alpha=0.0, epsilon=1e6, grad_norm_clipping=0.5))
    rollout = random_rollout()
    before, gradient = weights(learner), gradient_of(learner, rollout)
    assert gradient.norm() > 0.5
    stats = learner.update(rollout, learning_rate=1e6)  # epsilon and rate cancel: plain gradient descent
    torch.testing.assert_close(before - weights(learner), 0.5 * gradient / gradient.norm(), rtol=1e-4, atol=1e-5)
    assert stats.grad_norm == pytest.approx(gradient.norm().item(), rel=1e-5)


def test_learning_rate_zero_changes_nothing_but_the_version() -> None:
    learner = make_learner()
    before = weights(learner)
    assert learner.update(random_rollout(), learning_rate=0.0).version == learner.version == 1
    torch.testing.assert_close(weights(learner), before, rtol=0, atol=0)


def test_stats_describe_the_batch() -> None:
    learner = make_learner()
    rollout = random_rollout()
    learner.update(rollout, 1e-3)
    stats = learner.update(rollout, 1e-3)
    assert stats.num_transitions == rollout.valid.sum()
    assert stats.policy_lag == 1.0  # version 1 was updated by rows of version 0
    assert stats.total_loss == pytest.approx(stats.pg_loss + stats.baseline_loss + stats.entropy_loss, rel=1e-4)
    assert stats.entropy_loss == pytest.approx(-0.0006 * stats.entropy * stats.num_transitions, rel=1e-4)


def test_baseline_loss_falls_on_a_repeated_batch() -> None:
    """Without discounting the targets stay where they are: the baseline learns to predict each reward."""
    learner = Learner(make_mlp(), OptimizerConfig(), LossConfig(discounting=0.0))
    rollout = random_rollout()
    losses = [learner.update(rollout, 3e-3).baseline_loss for _ in range(200)]
    assert losses[-1] < 0.3 * losses[0]


def test_update_that_is_not_finite_is_skipped_and_counted() -> None:
    learner = make_learner()
    learner.update(random_rollout(), 1e-3)
    before, state = weights(learner), deepcopy(learner.optimizer.state_dict())
    stats = learner.update(broken(random_rollout()), 1e-3)
    assert stats.skipped
    assert learner.num_skipped == 1
    assert stats.version == learner.version == 1
    torch.testing.assert_close(weights(learner), before, rtol=0, atol=0)
    torch.testing.assert_close(learner.optimizer.state_dict()["state"], state["state"], rtol=0, atol=0)
    assert not learner.update(random_rollout(seed=2), 1e-3).skipped


def test_many_skipped_updates_in_a_row_stop_training() -> None:
    learner = make_learner()
    for _ in range(MAX_SKIPPED_UPDATES - 1):
        learner.update(broken(random_rollout()), 1e-3)
    learner.update(random_rollout(), 1e-3)
    for _ in range(MAX_SKIPPED_UPDATES - 1):
        learner.update(broken(random_rollout()), 1e-3)
    with pytest.raises(DivergedError, match=f"{MAX_SKIPPED_UPDATES} updates in a row"):
        learner.update(broken(random_rollout()), 1e-3)


@pytest.mark.parametrize("optimizer", [OptimizerConfig(momentum=0.5), OptimizerConfig(optimizer="adam")])
def test_restored_learner_continues_exactly(optimizer: OptimizerConfig, tmp_path: object) -> None:
    learner, restored = make_learner(optimizer), make_learner(optimizer)
    learner.update(random_rollout(seed=1), 1e-3)
    torch.save(learner.state_dict(), f"{tmp_path}/state.pt")
    restored.load_state_dict(torch.load(f"{tmp_path}/state.pt", weights_only=True))
    assert restored.version == 1
    for each in (learner, restored):
        each.update(random_rollout(seed=2), 1e-3)
    torch.testing.assert_close(weights(restored), weights(learner), rtol=0, atol=0)


def test_recurrent_models_train_from_the_stored_core_state() -> None:
    model = make_mlp(use_lstm=True)
    learner = Learner(model, OptimizerConfig(), LossConfig())
    states = [tuple(scale * torch.ones_like(x) for x in model.initial_state(4)) for scale in (0.0, 1.0)]
    losses = [learner.update(random_rollout(core_state=state), 0.0).total_loss for state in states]
    assert losses[0] != pytest.approx(losses[1])


def test_bf16_torso_leaves_weights_and_heads_in_float32() -> None:
    torch.manual_seed(0)
    model = make_model([FRAMES], [discrete(3)], ModelConfig(model="shallow"))
    learners = [
        Learner(deepcopy(model), OptimizerConfig(), LossConfig(), precision=precision) for precision in ("fp32", "bf16")
    ]
    frames = torch.randint(256, (3, 2, *FRAMES.row_shape), dtype=torch.uint8)
    rollout = random_rollout(2, 2, observation=(frames,))
    exact, rounded = (learner.update(rollout, 1e-4) for learner in learners)
    assert {parameter.dtype for parameter in learners[1].model.parameters()} == {torch.float32}
    assert exact.total_loss != rounded.total_loss
    assert rounded.total_loss == pytest.approx(exact.total_loss, rel=0.05)


def test_precision_and_compile_follow_the_model_and_the_device() -> None:
    conv, mlp, lstm = make_model([FRAMES], [discrete(3)], ModelConfig()), make_mlp(), make_mlp(use_lstm=True)
    cpu, cuda = torch.device("cpu"), torch.device("cuda")
    assert torso_dtype("bf16", conv, cpu) == torch.bfloat16
    assert torso_dtype("fp32", conv, cpu) == torch.float32
    assert torso_dtype("bf16", mlp, cpu) == torch.float32
    assert [should_compile("auto", model, device) for model in (mlp, lstm) for device in (cpu, cuda)] == [
        False, True, False, False,
    ]  # fmt: skip
    assert should_compile("on", mlp, cpu)
    assert not should_compile("off", mlp, cuda)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_compiled_update_equals_the_eager_one() -> None:
    eager, compiled = make_learner(compile="off"), make_learner(compile="on")
    for seed in (1, 2):
        expected, actual = (learner.update(random_rollout(seed=seed), 1e-3) for learner in (eager, compiled))
        assert actual.total_loss == pytest.approx(expected.total_loss, rel=1e-4)
    torch.testing.assert_close(weights(compiled), weights(eager), rtol=1e-4, atol=1e-6)


def test_without_a_working_compiler_the_update_runs_eagerly(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def no_compiler(function: object, **options: object) -> object:
        def fail(rollout: Rollout) -> object:
            raise RuntimeError("no C++ compiler\nlong explanation")

        return fail

    monkeypatch.setattr(torch, "compile", no_compiler)
    eager, learner = make_learner(compile="off"), make_learner(compile="on")
    with caplog.at_level(logging.WARNING):
        for each in (eager, learner):
            each.update(random_rollout(), 1e-3)
            each.update(random_rollout(), 1e-3)
    torch.testing.assert_close(weights(learner), weights(eager), rtol=0, atol=0)
    assert [record.getMessage() for record in caplog.records] == [
        "torch.compile failed, the update runs without it: no C++ compiler"
    ]
