"""The learner makes exact updates, skips broken ones, and keeps its state, precision and compilation."""

import logging
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
import torch

from kubebeast_learner.algorithm.learner import MAX_SKIPPED_UPDATES, DivergedError, Learner
from kubebeast_learner.algorithm.precision import low_precision_dtype, should_compile
from kubebeast_learner.algorithm.rollout import Rollout
from kubebeast_learner.config import LossConfig, ModelConfig, OptimizerConfig
from kubebeast_learner.models import Model, ModelSpecError, make_model
from tests.unit.learner.algorithm.learning_data import FRAMES, VECTOR, discrete, loss_of, make_mlp, random_rollout

TOTAL_STEPS = 1000


def make_learner(
    optimizer: OptimizerConfig | None = None, loss: LossConfig | None = None, model: Model | None = None, **options: Any
) -> Learner:
    optimizer = optimizer or OptimizerConfig(learning_rate=1e-3)
    return Learner(model or make_mlp(), optimizer, loss or LossConfig(), schedule_steps=TOTAL_STEPS, **options)


def weights(learner: Learner) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in learner.model.parameters()])


def gradient_of(learner: Learner, rollout: Rollout) -> torch.Tensor:
    model = deepcopy(learner.model)
    output, _ = model(rollout.model_inputs, rollout.core_state)
    loss = loss_of(output, rollout)
    return torch.cat([g.flatten() for g in torch.autograd.grad(loss.total, list(model.parameters()))])


def broken(rollout: Rollout) -> Rollout:
    return replace(rollout, rewards=torch.full_like(rollout.rewards, torch.nan))


def test_first_rmsprop_step_is_the_textbook_one() -> None:
    """square_avg = (1 - alpha) g^2, step = lr g / (sqrt(square_avg) + epsilon)."""
    learner = make_learner(OptimizerConfig(learning_rate=0.01, alpha=0.9, epsilon=0.1, grad_norm_clipping=0.0))
    rollout = random_rollout()
    before, gradient = weights(learner), gradient_of(learner, rollout)
    stats = learner.update(rollout, step=0)
    expected = before - 0.01 * gradient / ((0.1 * gradient.square()).sqrt() + 0.1)
    torch.testing.assert_close(weights(learner), expected)
    assert stats.grad_norm == pytest.approx(gradient.norm().item(), rel=1e-5)
    assert stats.learning_rate == 0.01
    assert not stats.skipped


def test_large_gradients_are_scaled_to_the_norm() -> None:
    # epsilon and learning rate cancel: plain gradient descent.
    learner = make_learner(OptimizerConfig(learning_rate=1e6, alpha=0.0, epsilon=1e6, grad_norm_clipping=0.5))
    rollout = random_rollout()
    before, gradient = weights(learner), gradient_of(learner, rollout)
    assert gradient.norm() > 0.5
    stats = learner.update(rollout, step=0)
    torch.testing.assert_close(before - weights(learner), 0.5 * gradient / gradient.norm(), rtol=1e-4, atol=1e-5)
    assert stats.grad_norm == pytest.approx(gradient.norm().item(), rel=1e-5)


def test_learning_rate_zero_changes_nothing_but_the_version() -> None:
    learner = make_learner()
    before = weights(learner)
    stats = learner.update(random_rollout(), step=TOTAL_STEPS)
    assert stats.learning_rate == 0
    assert stats.version == learner.version == 1
    torch.testing.assert_close(weights(learner), before, rtol=0, atol=0)


def test_learning_rate_and_entropy_cost_follow_their_schedules() -> None:
    optimizer = OptimizerConfig(learning_rate=0.01, learning_rate_final=0.002, alpha=0.0, epsilon=1e6)
    loss = LossConfig(entropy_cost=0.1, entropy_schedule="linear", entropy_cost_final=0.02)
    learner = make_learner(optimizer, loss)
    seen = [learner.update(random_rollout(), step) for step in (0, TOTAL_STEPS // 2, TOTAL_STEPS)]
    assert [stats.learning_rate for stats in seen] == pytest.approx([0.01, 0.006, 0.002])
    assert [stats.entropy_cost for stats in seen] == pytest.approx([0.1, 0.06, 0.02])
    for stats in seen:
        expected = -stats.entropy_cost * stats.parts["entropy"] * stats.num_transitions
        assert stats.parts["entropy_loss"] == pytest.approx(expected, rel=1e-4)


def test_replayed_unrolls_are_trained_on_and_count_as_no_steps() -> None:
    rollout = random_rollout()
    replayed = replace(rollout, num_replayed=1)
    replayed.policy_version[:, -1] = -1000
    learners = make_learner(), make_learner()
    fresh, stats = (learner.update(batch, 0) for learner, batch in zip(learners, (rollout, replayed), strict=True))
    torch.testing.assert_close(weights(learners[0]), weights(learners[1]), rtol=0, atol=0)
    assert stats.num_transitions == rollout.valid[:, :-1].sum()
    assert stats.num_transitions < fresh.num_transitions == rollout.valid.sum()
    assert stats.policy_lag == 0


def test_stats_describe_the_batch() -> None:
    learner = make_learner()
    rollout = random_rollout()
    learner.update(rollout, 0)
    stats = learner.update(rollout, 0)
    assert stats.num_transitions == rollout.valid.sum()
    assert stats.policy_lag == 1.0  # version 1 was updated by rows of version 0
    parts = stats.parts
    losses = parts["pg_loss"] + parts["baseline_loss"] + parts["entropy_loss"]
    assert stats.total_loss == pytest.approx(losses, rel=1e-4)
    assert parts["entropy_loss"] == pytest.approx(-0.0006 * parts["entropy"] * stats.num_transitions, rel=1e-4)


def test_baseline_loss_falls_on_a_repeated_batch() -> None:
    """Without discounting the targets are constant: the baseline learns to predict each reward."""
    learner = make_learner(OptimizerConfig(learning_rate=3e-3), LossConfig(discounting=0.0))
    rollout = random_rollout()
    losses = [learner.update(rollout, 0).parts["baseline_loss"] for _ in range(200)]
    assert losses[-1] < 0.3 * losses[0]


def test_update_that_is_not_finite_is_skipped() -> None:
    learner = make_learner()
    learner.update(random_rollout(), 0)
    before, state = weights(learner), deepcopy(learner.optimizer.state_dict())
    stats = learner.update(broken(random_rollout()), 0)
    assert stats.skipped
    assert stats.num_transitions == 0
    assert stats.version == learner.version == 1
    torch.testing.assert_close(weights(learner), before, rtol=0, atol=0)
    torch.testing.assert_close(learner.optimizer.state_dict()["state"], state["state"], rtol=0, atol=0)
    assert not learner.update(random_rollout(seed=2), 0).skipped


def test_many_skipped_updates_in_a_row_stop_training() -> None:
    learner = make_learner()
    for _ in range(MAX_SKIPPED_UPDATES - 1):
        learner.update(broken(random_rollout()), 0)
    learner.update(random_rollout(), 0)
    for _ in range(MAX_SKIPPED_UPDATES - 1):
        learner.update(broken(random_rollout()), 0)
    with pytest.raises(DivergedError, match=f"{MAX_SKIPPED_UPDATES} updates in a row"):
        learner.update(broken(random_rollout()), 0)


def test_the_end_of_a_training_names_what_is_large() -> None:
    learner = make_learner(loss=LossConfig(reward_clipping="none"))
    rollout = random_rollout()
    t, b = rollout.valid.nonzero()[0]
    rollout.rewards[t + 1, b], rollout.observation[0][t, b, 3] = -1e30, 3e38
    for _ in range(MAX_SKIPPED_UPDATES - 1):
        learner.update(rollout, 0)
    with pytest.raises(DivergedError, match=r'reward is 1e\+30, .* observation "position" \(float32 \[5\]\) is 3e\+38'):
        learner.update(rollout, 0)


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_weights_that_are_not_finite_end_the_training_at_once(value: float) -> None:
    learner = make_learner()
    with torch.no_grad():
        learner.model.get_parameter("policy.weight")[0, 0] = value
    with pytest.raises(DivergedError, match=r"model\.policy\.weight holds -?(nan|inf): no update can mend that"):
        learner.update(random_rollout(), 0)


def test_a_skipped_update_leaves_the_buffers_of_a_users_model_as_they_were() -> None:
    model = make_model([VECTOR], [discrete(3)], ModelConfig(model="tests.unit.learner.models.user_models:Normed"))
    learner = make_learner(model=model)
    learner.update(random_rollout(), 0)
    before = {name: buffer.clone() for name, buffer in model.named_buffers()}
    assert before["net.norm.num_batches_tracked"] == 1
    rollout = random_rollout()
    stats = learner.update(replace(rollout, observation=(torch.full_like(rollout.observation[0], 3e38),)), 0)
    assert stats.skipped
    torch.testing.assert_close(dict(model.named_buffers()), before, rtol=0, atol=0)
    assert not learner.update(random_rollout(seed=2), 0).skipped


@pytest.mark.parametrize(
    ("reward", "loss", "said"),
    [
        (-100.0, LossConfig(), "a reward of -100 counts as -1 in the loss"),
        (3.0, LossConfig(reward_scale=0.5), "a reward of 3 times reward_scale = 0.5 counts as 1 in the loss"),
        (1.0, LossConfig(), None),
        (3.0, LossConfig(reward_scale=0.25), None),
        (-100.0, LossConfig(reward_clipping="none"), None),
    ],
)
def test_the_first_reward_that_is_clipped_is_said_once(
    reward: float, loss: LossConfig, said: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    learner, rollout = make_learner(loss=loss), random_rollout()
    rollout.rewards.clamp_(-0.5, 0.5)
    t, b = rollout.valid.nonzero()[0]
    rollout.rewards[t + 1, b] = reward
    with caplog.at_level(logging.INFO):
        for _ in range(3):
            learner.update(rollout, 0)
    assert [text.partition(":")[0] for text in caplog.messages if "reward" in text] == ([said] if said else [])


def test_a_policy_without_an_action_ends_the_training_at_once() -> None:
    rollout = random_rollout()
    nothing = torch.full_like(rollout.policy_logits, -torch.inf)
    in_padding = rollout.policy_logits.where(rollout.valid.unsqueeze(-1), nothing)
    assert not make_learner().update(replace(rollout, policy_logits=in_padding), 0).skipped
    with pytest.raises(ModelSpecError, match=r"all 3 actions are masked by -inf in .* rows: .* leave an action"):
        make_learner().update(replace(rollout, policy_logits=nothing), 0)


@pytest.mark.parametrize("optimizer", [OptimizerConfig(momentum=0.5), OptimizerConfig(optimizer="adam")])
def test_restored_learner_continues_exactly(optimizer: OptimizerConfig, tmp_path: object) -> None:
    learner, restored = make_learner(optimizer), make_learner(optimizer)
    learner.update(random_rollout(seed=1), 0)
    torch.save(learner.state_dict(), f"{tmp_path}/state.pt")
    restored.load_state_dict(torch.load(f"{tmp_path}/state.pt", weights_only=True))
    assert restored.version == 1
    for each in (learner, restored):
        each.update(random_rollout(seed=2), 0)
    torch.testing.assert_close(weights(restored), weights(learner), rtol=0, atol=0)


@pytest.mark.parametrize(
    ("saved", "resumed"),
    [
        (OptimizerConfig(), OptimizerConfig(alpha=0.5, epsilon=0.3, learning_rate=0.02)),
        (OptimizerConfig(), OptimizerConfig(momentum=0.9)),
        (OptimizerConfig(momentum=0.9), OptimizerConfig(momentum=0.0)),
        (OptimizerConfig(optimizer="adam"), OptimizerConfig(optimizer="adam", epsilon=0.3)),
    ],
)
def test_restored_learner_goes_on_with_its_own_settings(saved: OptimizerConfig, resumed: OptimizerConfig) -> None:
    learner, restored = make_learner(saved), make_learner(resumed)
    learner.update(random_rollout(seed=1), 0)
    restored.load_state_dict(deepcopy(learner.state_dict()))
    learner.optimizer.param_groups[0].update(eps=resumed.epsilon)
    if resumed.optimizer == "rmsprop":
        learner.optimizer.param_groups[0].update(alpha=resumed.alpha, momentum=resumed.momentum)
        for state in learner.optimizer.state.values():
            state.setdefault("momentum_buffer", torch.zeros_like(state["square_avg"]))
    learner._optimizer_config = resumed
    for each in (learner, restored):
        each.update(random_rollout(seed=2), 0)
    torch.testing.assert_close(weights(restored), weights(learner), rtol=0, atol=0)


def test_recurrent_models_train_from_the_stored_core_state() -> None:
    model = make_mlp(use_lstm=True)
    learner = make_learner(model=model)
    states = [tuple(scale * torch.ones_like(x) for x in model.initial_state(4)) for scale in (0.0, 1.0)]
    losses = [learner.update(random_rollout(core_state=state), TOTAL_STEPS).total_loss for state in states]
    assert losses[0] != pytest.approx(losses[1])


@pytest.mark.parametrize(
    ("capabilities", "expected"),
    [
        ({"cpu_name": "Intel Xeon", "avx512_bf16": True, "amx_bf16": True}, torch.bfloat16),
        ({"cpu_name": "Intel Xeon", "avx512_bf16": True}, torch.float32),
        ({"cpu_name": "AMD EPYC", "avx512_bf16": True}, torch.bfloat16),
        ({"avx512_f": True}, torch.float32),
    ],
)
def test_auto_precision_is_bf16_on_processors_that_gain_from_it(
    capabilities: dict[str, object], expected: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities)
    model = make_model([FRAMES], [discrete(3)], ModelConfig(model="shallow"))
    assert low_precision_dtype("auto", model, torch.device("cpu")) == expected


def test_bf16_torso_leaves_weights_and_heads_in_float32() -> None:
    torch.manual_seed(0)
    model = make_model([FRAMES], [discrete(3)], ModelConfig(model="shallow"))
    learners = [make_learner(model=deepcopy(model), precision=precision) for precision in ("fp32", "bf16")]
    frames = torch.randint(256, (3, 2, *FRAMES.row_shape), dtype=torch.uint8)
    rollout = random_rollout(2, 2, observation=(frames,))
    exact, rounded = (learner.update(rollout, 0) for learner in learners)
    assert {parameter.dtype for parameter in learners[1].model.parameters()} == {torch.float32}
    assert exact.total_loss != rounded.total_loss
    assert rounded.total_loss == pytest.approx(exact.total_loss, rel=0.05)


def test_precision_and_compile_follow_the_model_and_the_device() -> None:
    conv, mlp, lstm = make_model([FRAMES], [discrete(3)], ModelConfig()), make_mlp(), make_mlp(use_lstm=True)
    cpu, cuda = torch.device("cpu"), torch.device("cuda")
    assert low_precision_dtype("bf16", conv, cpu) == torch.bfloat16
    assert low_precision_dtype("fp32", conv, cpu) == torch.float32
    assert low_precision_dtype("bf16", mlp, cpu) == torch.float32
    assert [should_compile("auto", model, device) for model in (mlp, lstm) for device in (cpu, cuda)] == [
        False, True, False, False,
    ]  # fmt: skip
    assert [should_compile("auto", model, cuda, uses_graphs=True) for model in (conv, mlp)] == [True, False]
    assert should_compile("on", mlp, cpu)
    assert not should_compile("off", mlp, cuda)
