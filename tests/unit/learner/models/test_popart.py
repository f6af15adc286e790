"""The value head normalizes its targets without a change of its values."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from kubebeast_learner.algorithm import Learner
from kubebeast_learner.algorithm.loss_choice import check_loss
from kubebeast_learner.algorithm.losses import LossOutput, impala_loss
from kubebeast_learner.algorithm.rollout import Rollout
from kubebeast_learner.config import ConfigError, LossConfig, ModelConfig, OptimizerConfig
from kubebeast_learner.models import Model, ModelOutput, ModelSpecError, make_model
from kubebeast_learner.models.popart import MIN_SCALE, RATE, PopArt
from tests.unit.learner.algorithm.learning_data import VECTOR, discrete, random_rollout

T, B = 6, 4
ALL = torch.ones(T, B, dtype=torch.bool)


def make(seed: int = 0, *, normalise_values: bool = True) -> Model:
    torch.manual_seed(seed)
    return make_model([VECTOR], [discrete(3)], ModelConfig(hidden_sizes=(8,), normalise_values=normalise_values))


def targets_of(task: Tensor, means: Tensor, scales: Tensor) -> Tensor:
    return means[task] + scales[task] * torch.randn(T, B)


def test_new_statistics_leave_every_value_as_it_was() -> None:
    torch.manual_seed(0)
    head, features, task = PopArt(5, 3), torch.randn(T, B, 5), torch.randint(3, (T, B))
    torch.nn.init.normal_(head.weight)
    before = head.values(features, task).detach()
    for scale in (1.0, 1000.0, 0.01):
        head.add(scale * torch.randn(T, B) + 7 * scale, ALL, torch.tensor([0, 2, 2, 0]))
        # Rounding errors occur if scales are a thousand times the values.
        torch.testing.assert_close(head.values(features, task), before, rtol=0, atol=1e-3)


def test_each_task_has_its_own_statistics() -> None:
    torch.manual_seed(0)
    head, task = PopArt(5, 3), torch.tensor([0, 2, 2, 0])
    means, scales = torch.tensor([-40.0, 0.0, 3.0]), torch.tensor([200.0, 1.0, 0.1])
    for _ in range(300):
        head.add(targets_of(task, means, scales), ALL, task)
    torch.testing.assert_close(head.mean, means, rtol=0.1, atol=20.0)
    torch.testing.assert_close(head.scale, scales, rtol=0.1, atol=0)
    assert head.num_updates.tolist() == [300, 0, 300]


def test_the_first_batch_is_all_that_is_known_after_it() -> None:
    head, targets = PopArt(5), torch.randn(T, B)
    head.add(targets, ALL, None)
    torch.testing.assert_close(head.mean, targets.mean().view(1))
    torch.testing.assert_close(head.scale, targets.std(correction=0).view(1))


def test_old_targets_are_forgotten() -> None:
    head = PopArt(5)
    for level in (0.0, 100.0):
        for _ in range(round(6 / RATE)):
            head.add(level + torch.randn(T, B), ALL, None)
    torch.testing.assert_close(head.mean, torch.tensor([100.0]), rtol=0.01, atol=0)


def test_targets_that_are_not_counted_may_be_anything() -> None:
    counted = torch.rand(T, B) < 0.5
    first, second, targets = PopArt(5), PopArt(5), torch.randn(T, B)
    first.add(targets, counted, None)
    second.add(targets.masked_fill(~counted, torch.nan), counted, None)
    assert torch.equal(first.mean, second.mean)
    assert torch.equal(first.variance, second.variance)
    second.add(targets, ~ALL, None)
    assert torch.equal(first.mean, second.mean)


def test_equal_targets_keep_the_scale_above_zero() -> None:
    head = PopArt(5)
    head.add(torch.full((T, B), 3.0), ALL, None)
    assert head.scale.item() == pytest.approx(MIN_SCALE)


@pytest.mark.parametrize("value", [2e19, -1e30, torch.inf, torch.nan])
def test_targets_whose_square_is_not_finite_are_no_part_of_the_statistics(value: float) -> None:
    torch.manual_seed(0)
    clean, spoilt, targets = PopArt(5), PopArt(5), torch.randn(T, B)
    others = ALL.clone()
    others[1, 2] = False
    clean.add(targets, others, None)
    targets[1, 2] = value
    spoilt.add(targets, ALL, None)
    torch.testing.assert_close(spoilt.state_dict(), clean.state_dict())


def test_large_targets_leave_statistics_that_are_finite() -> None:
    head = PopArt(5)
    for sign in (1.0, -1.0, 1.0):
        head.add(sign * 8e18 * torch.ones(T, B), ALL, None)
        head.add(torch.randn(T, B), ALL, None)
    assert all(tensor.isfinite().all() for tensor in head.state_dict().values())


def test_before_the_first_reward_the_scale_is_1() -> None:
    head, targets = PopArt(5), torch.zeros(T, B)
    for _ in range(100):
        head.add(targets, ALL, None)
    assert (head.scale.item(), head.num_updates.item()) == (1.0, 0.0)
    targets[0, 0] = 1.0
    head.add(targets, ALL, None)
    torch.testing.assert_close(head.scale, targets.std(correction=0).view(1))


@pytest.mark.parametrize("initialisation", ["pytorch", "orthogonal"])
@pytest.mark.parametrize("factor", [1e-6, 1e-3, 1.0, 1e5])
@pytest.mark.parametrize("discounting", [0.0, 0.9])
def test_what_is_learnt_does_not_depend_on_the_size_of_rewards(
    factor: float, initialisation: Any, discounting: float
) -> None:
    """A choice of two by the sign of a number, with a reward of `factor` for the right one and 0 for the other."""
    torch.manual_seed(0)
    config = ModelConfig(hidden_sizes=(8,), normalise_values=True, initialisation=initialisation)
    model = make_model([VECTOR], [discrete(2)], config)
    loss = LossConfig(reward_clipping="none", entropy_cost=0.0, discounting=discounting)
    learner = Learner(model, OptimizerConfig(learning_rate=0.01), loss, schedule_steps=10**9)
    for seed in range(100):
        rollout = random_rollout(batch_size=8, num_actions=2, seed=seed)
        with torch.no_grad():
            policy_logits = model(rollout.model_inputs, ())[0].policy_logits[:-1]
        action = rollout.distribution.sample(policy_logits, torch.Generator().manual_seed(seed))
        rewards = torch.zeros_like(rollout.rewards)
        if seed >= 10:  # the first reward comes late
            rewards[1:] = factor * (action == (rollout.observation[0][:-1, :, 0] > 0)).float()
        learner.update(replace(rollout, action=action, policy_logits=policy_logits, rewards=rewards), step=0)
    rollout = random_rollout(unroll_length=50, num_actions=2, seed=1000)
    right = (rollout.observation[0][..., 0] > 0).long()
    with torch.no_grad():
        policy = model(rollout.model_inputs, ())[0].policy_logits.softmax(dim=-1)
    assert policy.gather(-1, right.unsqueeze(-1)).mean() > 0.8


@pytest.mark.parametrize("factor", [1e-2, 1e3])
def test_rewards_of_any_size_train_the_same_policy(factor: float) -> None:
    rollout = random_rollout()
    states = []
    for scale in (1.0, factor):
        model = make()
        # The two updates with rewards of different size begin with statistics of their size.
        model.popart.add(scale * torch.randn(T, B, generator=torch.Generator().manual_seed(1)), ALL, None)  # type: ignore[union-attr]
        with torch.no_grad():
            model.popart.weight.zero_()  # type: ignore[union-attr]
            model.popart.bias.zero_()  # type: ignore[union-attr]
        config = LossConfig(reward_clipping="none", reward_scale=scale)
        learner = Learner(model, OptimizerConfig(), config, schedule_steps=1000)
        for _ in range(3):
            learner.update(replace(rollout, core_state=model.initial_state(rollout.batch_size)), step=0)
        states.append(learner.model.state_dict())
    for name, value in states[0].items():
        if name not in ("baseline.mean", "baseline.variance"):
            torch.testing.assert_close(states[1][name], value, rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(states[1]["baseline.mean"], factor * states[0]["baseline.mean"], rtol=1e-3, atol=0)


def test_an_update_moves_the_statistics_of_its_own_tasks_only() -> None:
    torch.manual_seed(0)
    model = make_model([VECTOR], [discrete(3)], ModelConfig(hidden_sizes=(8,), normalise_values=True), num_tasks=3)
    learner, head = Learner(model, OptimizerConfig(learning_rate=1e-9), LossConfig(), schedule_steps=1000), model.popart
    assert head is not None
    rollout = random_rollout(task=torch.tensor([[0, 2, 2, 0]]))
    inputs = rollout.model_inputs
    everywhere = [inputs._replace(task=torch.full_like(inputs.is_first, task, dtype=torch.int64)) for task in range(3)]
    before = [model(rows, ())[0].baseline.detach() for rows in everywhere]
    learner.update(rollout, step=0)
    assert head.num_updates.tolist() == [1, 0, 1]
    assert head.mean[1] == 0 and head.scale[1] == 1
    assert head.mean[0] != head.mean[2] and head.scale[0] != head.scale[2]
    for rows, values in zip(everywhere, before, strict=True):  # the gradient is almost zero
        torch.testing.assert_close(model(rows, ())[0].baseline, values, rtol=0, atol=1e-4)


def test_errors_of_a_task_are_divided_by_its_own_scale() -> None:
    torch.manual_seed(0)
    model = make_model([VECTOR], [discrete(3)], ModelConfig(hidden_sizes=(8,), normalise_values=True), num_tasks=2)
    assert model.popart is not None
    task = torch.tensor([[0, 1, 1, 0]])
    model.popart.add(targets_of(task[0], torch.zeros(2), torch.tensor([1.0, 100.0])), ALL, task[0])
    seen: list[Tensor] = []

    def loss(output: ModelOutput, rollout: Rollout, config: LossConfig, entropy_cost: Tensor) -> LossOutput:
        assert rollout.value_scale is not None
        seen.append(rollout.value_scale)
        return impala_loss(output, rollout, config, entropy_cost)

    learner = Learner(model, OptimizerConfig(), LossConfig(), schedule_steps=1000)
    learner._steps._loss = loss
    scale = model.popart.scale.clone()
    learner.update(random_rollout(task=task), step=0)
    assert torch.equal(seen[0], scale[task])
    assert seen[0].shape == (1, B)


def test_replayed_unrolls_do_not_change_the_statistics() -> None:
    fresh, seen = (Learner(make(), OptimizerConfig(), LossConfig(), schedule_steps=1000) for _ in range(2))
    rollout = random_rollout()
    fresh.update(rollout, step=0)
    seen.update(replace(rollout, num_replayed=rollout.batch_size), step=0)
    assert [learner.model.popart.num_updates.item() for learner in (fresh, seen)] == [1, 0]  # type: ignore[union-attr]


def test_a_loss_that_does_not_tell_its_value_targets_is_refused() -> None:
    loss = LossConfig(loss="tests.unit.learner.models.user_models:loss_without_targets")
    check_loss(loss, make(normalise_values=False), [VECTOR])
    with pytest.raises(ConfigError, match="value_targets are missing, which normalise_values needs"):
        check_loss(loss, make(), [VECTOR])


def test_a_model_of_ones_own_has_a_value_head_of_its_own() -> None:
    config = ModelConfig(model="tests.unit.learner.models.user_models:Good", normalise_values=True)
    with pytest.raises(ModelSpecError, match=r"normalise_values = True: model = .*Good' has a value head of its own"):
        make_model([VECTOR], [discrete(3)], config)
