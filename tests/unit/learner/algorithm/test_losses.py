"""The IMPALA loss agrees with handwritten values and analytic gradients, and obeys masks."""

import math
from dataclasses import replace
from typing import Any, Literal

import pytest
import torch
import torch.nn.functional as F

from kubebeast_learner.algorithm import vtrace
from kubebeast_learner.algorithm.losses import clip_rewards, impala_loss, policy_lag
from kubebeast_learner.algorithm.rollout import Rollout
from kubebeast_learner.config import LossConfig
from kubebeast_learner.distributions import ActionDistribution
from kubebeast_learner.models import ModelOutput
from tests.unit.learner.algorithm.learning_data import discrete, loss_of, make_mlp, random_rollout, shortened

T, B, A = 5, 4, 3
LOSSES = ("pg_loss", "baseline_loss", "entropy_loss")
CLIPPINGS: tuple[Literal["abs_one", "soft_asymmetric", "none"], ...] = ("abs_one", "soft_asymmetric", "none")
DEFAULT_VTRACE: dict[str, Any] = {
    "clip_rho_threshold": 1.0,
    "clip_c_threshold": 1.0,
    "clip_pg_rho_threshold": 1.0,
    "vtrace_lambda": 1.0,
}


def random_output(seed: int = 1, num_rows: int = T + 1) -> ModelOutput:
    generator = torch.Generator().manual_seed(seed)
    return ModelOutput(
        torch.randn(num_rows, B, A, generator=generator, requires_grad=True),
        torch.randn(num_rows, B, generator=generator, requires_grad=True),
    )


def test_values_written_out_by_hand() -> None:
    """One on-policy transition, uniform policy over two actions, reward 3 clipped to 1, V = 0.25, V' = 0.5."""
    rollout = random_rollout(
        1,
        1,
        2,
        rewards=torch.tensor([[0.0], [3.0]]),
        terminated=torch.zeros(2, 1, dtype=torch.bool),
        valid=torch.ones(1, 1, dtype=torch.bool),
        policy_logits=torch.zeros(1, 1, 2),
    )
    output = ModelOutput(torch.zeros(2, 1, 2), torch.tensor([[0.25], [0.5]]))
    config = LossConfig(discounting=0.9, baseline_cost=0.5, entropy_cost=0.01)
    loss = loss_of(output, rollout, config)
    advantage = 1.0 + 0.9 * 0.5 - 0.25
    log_2 = 0.6931471805599453
    assert loss.parts["pg_loss"].value.item() == pytest.approx(advantage * log_2)
    assert loss.parts["baseline_loss"].value.item() == pytest.approx(0.5 * 0.5 * advantage**2)
    assert loss.parts["entropy_loss"].value.item() == pytest.approx(-0.01 * log_2)
    assert loss.total.item() == pytest.approx(sum(loss.parts[name].value.item() for name in LOSSES))
    assert loss.parts["entropy"].value.item() == pytest.approx(log_2)
    assert loss.parts["mean_rho"].value.item() == pytest.approx(1.0)


def test_gradients_are_the_analytic_ones() -> None:
    rollout, output = random_rollout(T, B, A), random_output()
    config = LossConfig(baseline_cost=0.7, entropy_cost=0.3)
    loss_of(output, rollout, config).total.backward()  # type: ignore[no-untyped-call]

    mask = rollout.valid.float()
    policy = F.softmax(output.policy_logits[:-1].detach(), dim=-1)
    returns = vtrace.from_logits(
        rollout.policy_logits,
        output.policy_logits[:-1],
        rollout.action,
        0.99 * (~rollout.terminated[1:]).float(),
        rollout.rewards[1:].clamp(-1, 1),
        output.baseline[:-1],
        output.baseline[-1],
        valid=rollout.valid,
    )
    # d(-log pi_a)/dz = pi - 1_a; d(sum p log p)/dz = p (log p + H) with H = -sum p log p.
    chosen = F.one_hot(rollout.action, A)
    entropy = -(policy * policy.log()).sum(-1, keepdim=True)
    expected = (policy - chosen) * returns.pg_advantages.unsqueeze(-1) + 0.3 * policy * (policy.log() + entropy)
    assert output.policy_logits.grad is not None
    assert output.baseline.grad is not None
    torch.testing.assert_close(output.policy_logits.grad[:-1], expected * mask.unsqueeze(-1))
    torch.testing.assert_close(output.baseline.grad[:-1], 0.7 * (output.baseline[:-1].detach() - returns.vs) * mask)
    assert output.policy_logits.grad[-1].count_nonzero() == 0
    assert output.baseline.grad[-1].count_nonzero() == 0


def test_entropy_cost_pushes_towards_the_uniform_policy() -> None:
    rollout, output = random_rollout(T, B, A), random_output()
    loss = loss_of(output, rollout, LossConfig(entropy_cost=1e6))
    (gradient,) = torch.autograd.grad(loss.total, output.policy_logits)
    moved = ModelOutput(output.policy_logits.detach() - 1e-7 * gradient, output.baseline.detach())
    assert loss_of(moved, rollout).parts["entropy"].value > loss.parts["entropy"].value


def test_mean_reduction_divides_by_the_valid_transitions() -> None:
    rollout, output = random_rollout(T, B, A), random_output()
    total = {}
    reductions: tuple[Literal["sum", "mean"], ...] = ("sum", "mean")
    for reduction in reductions:
        loss = loss_of(output, rollout, LossConfig(loss_reduction=reduction))
        total[reduction] = loss.total.item()
    assert 0 < rollout.valid.sum() < T * B
    assert total["mean"] == pytest.approx(total["sum"] / rollout.valid.sum().item())


@pytest.mark.parametrize(
    ("clipping", "expected"),
    [
        ("abs_one", [-1.0, -1.0, 0.0, 0.5, 1.0]),
        ("soft_asymmetric", [-1.5, -0.3 * 5 * math.tanh(0.2), 0.0, 5 * math.tanh(0.1), 5.0]),
        ("none", [-1000.0, -1.0, 0.0, 0.5, 1000.0]),
    ],
)
def test_rewards_are_clipped_as_chosen(
    clipping: Literal["abs_one", "soft_asymmetric", "none"], expected: list[float]
) -> None:
    rewards = torch.tensor([-1000.0, -1.0, 0.0, 0.5, 1000.0])
    torch.testing.assert_close(clip_rewards(rewards, clipping), torch.tensor(expected))


def test_reward_clipping_enters_the_loss() -> None:
    rollout, output = random_rollout(T, B, A), random_output()
    large = replace(rollout, rewards=rollout.rewards * 100)
    totals = []
    for clipping in CLIPPINGS:
        clipped = replace(large, rewards=clip_rewards(large.rewards, clipping))
        total = loss_of(output, large, LossConfig(reward_clipping=clipping)).total.item()
        assert total == loss_of(output, clipped, LossConfig(reward_clipping="none")).total.item()
        totals.append(total)
    assert len(set(totals)) == len(CLIPPINGS)


@pytest.mark.parametrize(
    ("settings", "arguments"),
    [
        ({"clip_rho_threshold": None}, {"clip_rho_threshold": None}),
        ({"clip_c_threshold": 2.5}, {"clip_c_threshold": 2.5}),
        ({"clip_pg_rho_threshold": 0.5}, {"clip_pg_rho_threshold": 0.5}),
        ({"vtrace_lambda": 0.5}, {"lambda_": 0.5}),
    ],
)
def test_vtrace_settings_reach_the_targets(settings: dict[str, Any], arguments: dict[str, Any]) -> None:
    rollout, output = random_rollout(8, B, A), random_output(num_rows=9)
    config = LossConfig(baseline_cost=1.0, entropy_cost=0.0, reward_clipping="none", **settings)
    loss, plain = loss_of(output, rollout, config), loss_of(output, rollout, replace(config, **DEFAULT_VTRACE))
    values = output.baseline.detach()
    returns = vtrace.from_logits(
        rollout.policy_logits,
        output.policy_logits[:-1],
        rollout.action,
        0.99 * (~rollout.terminated[1:]).float(),
        rollout.rewards[1:],
        values[:-1],
        values[-1],
        valid=rollout.valid,
        **arguments,
    )
    expected = 0.5 * (returns.vs - values[:-1]).square().sum().item()
    assert loss.parts["baseline_loss"].value.item() == pytest.approx(expected, rel=1e-5)
    assert loss.total.item() != pytest.approx(plain.total.item())


@pytest.mark.parametrize("part", LOSSES)
def test_each_loss_has_its_own_analytic_gradient(part: str) -> None:
    """One valid transition, on-policy; the costs or the advantage of the two other parts are 0."""
    logits = torch.tensor([[[0.2, -0.4, 1.0]], [[0.0, 0.0, 0.0]]], requires_grad=True)
    baseline = torch.tensor([[0.25], [0.5]], requires_grad=True)
    reward = 0.8 if part != "entropy_loss" else 0.25 - 0.99 * 0.5  # the second value makes the advantage 0
    rollout = random_rollout(
        1,
        1,
        3,
        rewards=torch.tensor([[0.0], [reward]]),
        terminated=torch.zeros(2, 1, dtype=torch.bool),
        valid=torch.ones(1, 1, dtype=torch.bool),
        action=torch.tensor([[2]]),
        policy_logits=logits.detach()[:1],
    )
    config = LossConfig(
        baseline_cost=0.7 if part == "baseline_loss" else 0.0, entropy_cost=0.3 if part == "entropy_loss" else 0.0
    )
    loss = loss_of(ModelOutput(logits, baseline), rollout, config)
    assert loss.parts[part].value.item() != 0
    loss.total.backward()  # type: ignore[no-untyped-call]
    policy, advantage = logits.detach()[0, 0].softmax(-1), reward + 0.99 * 0.5 - 0.25
    policy_gradient = advantage * (policy - torch.tensor([0.0, 0.0, 1.0]))
    entropy = -(policy * policy.log()).sum()
    expected = policy_gradient + config.entropy_cost * policy * (policy.log() + entropy)
    assert logits.grad is not None
    assert baseline.grad is not None
    torch.testing.assert_close(logits.grad[0, 0], expected)
    assert baseline.grad[0, 0].item() == pytest.approx(-config.baseline_cost * advantage)


def test_entropy_cost_counts_at_the_value_of_its_schedule() -> None:
    rollout, output = random_rollout(T, B, A), random_output()
    config = LossConfig(entropy_cost=0.5)
    half, tenth = (impala_loss(output, rollout, config, torch.tensor(cost)).parts for cost in (0.5, 0.05))
    assert half["entropy_loss"].value.item() == pytest.approx(10 * tenth["entropy_loss"].value.item())


def test_batch_without_valid_transitions_has_zero_loss_and_gradient() -> None:
    rollout, output = random_rollout(T, B, A), random_output()
    nothing = replace(rollout, valid=torch.zeros_like(rollout.valid))
    loss = loss_of(output, nothing, LossConfig(loss_reduction="mean"))
    loss.total.backward()  # type: ignore[no-untyped-call]
    assert loss.total == 0
    assert loss.parts["entropy"].value == 0
    assert output.policy_logits.grad is not None
    assert output.policy_logits.grad.count_nonzero() == 0


def test_garbage_in_padding_changes_neither_loss_nor_gradients() -> None:
    rollout = random_rollout(T, B, A)
    padding = ~rollout.valid[:, -1]
    gradients = []
    for garbage in (0.0, torch.nan, torch.inf):
        output = random_output()
        with torch.no_grad():
            output.policy_logits[:-1, -1][padding] = garbage
            output.policy_logits[-1, -1] = garbage
        rewards, behavior = rollout.rewards.clone(), rollout.policy_logits.clone()
        rewards[1:, -1][padding] = garbage
        behavior[:, -1][padding] = garbage
        batch = replace(rollout, rewards=rewards, policy_logits=behavior)
        loss_of(output, batch).total.backward()  # type: ignore[no-untyped-call]
        assert output.policy_logits.grad is not None
        assert output.baseline.grad is not None
        gradients.append(torch.cat([output.policy_logits.grad.flatten(), output.baseline.grad.flatten()]))
    for gradient in gradients[1:]:
        torch.testing.assert_close(gradient, gradients[0])


@pytest.mark.parametrize("use_lstm", [False, True])
def test_padded_batch_has_the_gradients_of_the_unpadded_unrolls(use_lstm: bool) -> None:
    model = make_mlp(A, use_lstm=use_lstm)
    core_state = tuple(torch.randn_like(tensor) for tensor in model.initial_state(2))
    rollout = random_rollout(8, 2, A, core_state=core_state, seed=3)
    lengths = (8, 3)
    for column, length in enumerate(lengths):
        rollout.valid[length:, column] = False
        rollout.is_first[length + 1 :, column] = False
        rollout.observation[0][length + 1 :, column] = 0
        rollout.rewards[length + 1 :, column] = 0

    def gradients(batches: list[Rollout]) -> torch.Tensor:
        model.zero_grad()
        for batch in batches:
            output, _ = model(batch.model_inputs, batch.core_state)
            loss_of(output, batch).total.backward()  # type: ignore[no-untyped-call]
        return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])

    padded = gradients([rollout])
    unpadded = gradients([shortened(rollout, column, length) for column, length in enumerate(lengths)])
    assert padded.norm() > 0.1
    torch.testing.assert_close(padded, unpadded, rtol=1e-5, atol=1e-6)


def test_policy_lag_is_the_mean_over_valid_transitions() -> None:
    policy_version = torch.tensor([[3, 5], [4, 0]])
    valid = torch.tensor([[True, True], [True, False]])
    assert policy_lag(policy_version, valid, 6).item() == pytest.approx((3 + 1 + 2) / 3)
    assert policy_lag(policy_version, torch.zeros_like(valid), 6).item() == 0


def test_masked_actions_count_as_if_they_were_not_there() -> None:
    """A third action, masked everywhere, changes neither the loss nor a gradient."""
    rollout = random_rollout(T, B, 2)
    output = random_output()
    two = output._replace(policy_logits=output.policy_logits.detach()[..., :2].clone().requires_grad_())
    hidden = torch.full((T + 1, B, 1), -torch.inf)
    three = ModelOutput(torch.cat([two.policy_logits, hidden], dim=-1), two.baseline)
    wider = replace(
        rollout,
        policy_logits=torch.cat([rollout.policy_logits, hidden[:T]], dim=-1),
        distribution=ActionDistribution.of([discrete(3)]),
    )
    config = LossConfig(entropy_cost=0.1)
    expected, actual = loss_of(two, rollout, config), loss_of(three, wider, config)
    torch.testing.assert_close((actual.total, actual.value_targets), (expected.total, expected.value_targets))
    for mine, other in zip(actual.parts.values(), expected.parts.values(), strict=True):
        torch.testing.assert_close(mine.value, other.value)
    gradients = [torch.autograd.grad(loss.total, two.policy_logits)[0] for loss in (expected, actual)]
    torch.testing.assert_close(gradients[1], gradients[0])


def test_an_action_that_only_the_target_policy_masks_has_no_weight() -> None:
    rollout = random_rollout(action=torch.full((T, B), 2))
    logits = random_output().policy_logits
    output = random_output()._replace(policy_logits=logits.masked_fill(torch.tensor([False, False, True]), -torch.inf))
    loss = loss_of(output, rollout)
    (gradient,) = torch.autograd.grad(loss.total, logits)
    assert (loss.parts["mean_rho"].value.item(), loss.parts["pg_loss"].value.item()) == (0.0, 0.0)
    assert loss.total.isfinite() and gradient.isfinite().all()
