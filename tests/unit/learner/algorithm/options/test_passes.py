"""Several passes in minibatches train on each transition once per pass, with the gradients of PPO's objective."""

from copy import deepcopy
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from kubebeast_learner.algorithm.learner import Learner
from kubebeast_learner.algorithm.losses import estimate, impala_loss
from kubebeast_learner.algorithm.options.passes import Passes, fitted
from kubebeast_learner.algorithm.rollout import Rollout
from kubebeast_learner.config import (
    LossConfig,
    ModelConfig,
    MonoConfig,
    OptimizerConfig,
    PassesConfig,
    RolloutConfig,
)
from kubebeast_learner.models import Model, make_model
from tests.unit.learner.algorithm.learning_data import VECTOR, discrete, make_mlp, random_rollout

T, B = 6, 4
LOSS = LossConfig(reward_clipping="none", entropy_cost=0.01, loss_reduction="sum")
PLAIN_SGD = OptimizerConfig(optimizer="torch.optim:SGD", learning_rate=0.1, learning_rate_schedule="constant")


def numbered() -> Rollout:
    """Returns a batch with the numbers of its rows as observations and rewards."""
    rollout = random_rollout(T, B)
    number = torch.arange((T + 1) * B, dtype=torch.float32).view(T + 1, B)
    return replace(
        rollout,
        observation=(number.unsqueeze(-1).expand(T + 1, B, 5).contiguous(),),
        rewards=number,
        policy_version=number[:-1].long(),
        value_targets=number[:-1],
        advantages=number[:-1],
        valid=torch.ones(T, B, dtype=torch.bool),
    )


def over(rollout: Rollout, passes: int, minibatches: int, *, by_unroll: bool = False, seed: int = 1) -> list[Rollout]:
    settings = PassesConfig(passes=passes, minibatches=minibatches)
    pairs = Passes(settings, by_unroll=by_unroll).over(rollout, lambda batch: batch, seed)
    return [part for _, part in pairs]


def gradients(model: Model, rollouts: list[Rollout], loss: LossConfig = LOSS) -> list[Tensor]:
    """Returns the sum of the gradients of several losses."""
    model = deepcopy(model)
    for rollout in rollouts:
        output, _ = model(rollout.model_inputs, rollout.core_state)
        impala_loss(output, rollout, loss, torch.tensor(loss.entropy_cost)).total.backward()  # type: ignore[no-untyped-call]
    return [weight.grad for weight in model.parameters() if weight.grad is not None]


def estimated(model: Model, rollout: Rollout, loss: LossConfig = LOSS) -> Rollout:
    with torch.no_grad():
        return estimate(model(rollout.model_inputs, rollout.core_state)[0], rollout, loss)


def learner_of(passes: PassesConfig, loss: LossConfig = LOSS, *, use_lstm: bool = False) -> Learner:
    return Learner(make_mlp(use_lstm=use_lstm), PLAIN_SGD, loss, schedule_steps=1000, passes=passes)


@pytest.mark.parametrize("minibatches", [1, 3, 4, 6])
def test_each_pass_trains_on_each_transition_once(minibatches: int) -> None:
    batch = numbered()
    parts = over(batch, 2, minibatches)
    assert len(parts) == 2 * minibatches
    for each in (parts[:minibatches], parts[minibatches:]):
        rows = torch.cat([part.rewards.flatten() for part in each])
        assert torch.equal(rows.sort().values, batch.rewards[:-1].flatten())
        for part in each:
            assert part.valid.shape[1] == B
            of_unroll = torch.arange(B).expand_as(part.rewards)
            assert torch.equal(part.rewards.long() % B, of_unroll)
            for of_row in (part.observation[0][..., 0], part.policy_version, part.value_targets, part.advantages):
                assert of_row is not None
                assert torch.equal(of_row.float(), part.rewards)
    if minibatches > 1:
        assert not torch.equal(parts[0].rewards, parts[minibatches].rewards)


def test_the_order_is_that_of_the_seed() -> None:
    batch = numbered()
    first, again, other = (over(batch, 1, 3, seed=seed)[0].rewards for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_each_pass_begins_with_estimates_of_the_present_weights() -> None:
    events: list[str] = []

    def estimate(batch: Rollout) -> Rollout:
        events.append("estimate")
        return batch

    for _ in Passes(PassesConfig(passes=2, minibatches=2), by_unroll=False).over(numbered(), estimate, 1):
        events.append("step")
    assert events == ["estimate", "step", "step"] * 2


def test_minibatches_of_unrolls_keep_their_memory() -> None:
    batch = replace(numbered(), core_state=(torch.arange(B, dtype=torch.float32).view(1, B, 1),), num_replayed=2)
    parts = over(batch, 1, 2, by_unroll=True)
    assert [part.batch_size for part in parts] == [2, 2]
    columns = torch.cat([part.core_state[0][0, :, 0] for part in parts])
    assert torch.equal(columns.sort().values, torch.arange(B, dtype=torch.float32))
    for part in parts:
        assert torch.equal(part.rewards, batch.rewards[:, part.core_state[0][0, :, 0].long()])
        assert part.num_replayed == 0


@pytest.mark.parametrize("by_unroll", [True, False])
def test_a_batch_with_fewer_parts_is_every_minibatch(by_unroll: bool) -> None:
    # As for a rank without a batch, whose networks and memories take no rows of size 0.
    small = random_rollout(1, 1)

    parts = over(small, 2, 4, by_unroll=by_unroll)

    assert [(part.unroll_length, part.batch_size) for part in parts] == [(1, 1)] * 8
    assert all(part.is_minibatch for part in parts)


@pytest.mark.parametrize("use_lstm", [False, True])
@pytest.mark.parametrize("minibatches", [1, 2, 4])
def test_gradients_of_the_minibatches_add_up_to_that_of_the_batch(use_lstm: bool, minibatches: int) -> None:
    model = make_mlp(use_lstm=use_lstm)
    batch = random_rollout(T, B, core_state=model.initial_state(B))
    parts = over(estimated(model, batch), 1, minibatches, by_unroll=use_lstm)
    torch.testing.assert_close(gradients(model, parts), gradients(model, [batch]))


def test_gradient_is_that_of_the_clipped_objective_once_the_policy_has_moved() -> None:
    """min(r A, clip(r, 1 - e, 1 + e) A) of arXiv:1707.06347, equation 7, with the advantages of before the move."""
    model, epsilon = make_mlp(), 0.2
    loss = replace(LOSS, clip_policy_ratio=epsilon, clip_pg_rho_threshold=None, baseline_cost=0.0, entropy_cost=0.0)
    batch = estimated(model, random_rollout(T, B), loss)
    (part, _) = over(batch, 1, 2)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.3 * torch.randn_like(weight))

    expected = deepcopy(model)
    logits = expected(part.model_inputs, ())[0].policy_logits
    chosen = logits.log_softmax(-1).gather(-1, part.action.unsqueeze(-1)).squeeze(-1)
    before = part.policy_logits.log_softmax(-1).gather(-1, part.action.unsqueeze(-1)).squeeze(-1)
    ratio = (chosen - before).exp()
    assert part.advantages is not None
    objective = torch.min(ratio * part.advantages, ratio.clamp(1 - epsilon, 1 + epsilon) * part.advantages)
    (-objective[part.valid].sum()).backward()
    found = gradients(model, [part], loss)
    wanted = [weight.grad for weight in expected.parameters() if weight.grad is not None]
    torch.testing.assert_close(found[: len(wanted)], wanted)


def steps_by_hand(learner: Learner, batch: Rollout, passes: int, minibatches: int, *, by_unroll: bool) -> Model:
    """Returns the model after plain gradient descent over the minibatches."""
    model = deepcopy(learner.model)
    settings = Passes(PassesConfig(passes=passes, minibatches=minibatches), by_unroll=by_unroll)
    for _, part in settings.over(batch, lambda whole: estimated(model, whole), learner.version):
        found = gradients(model, [part])
        norm = torch.cat([each.flatten() for each in found]).norm()
        with torch.no_grad():
            for weight, gradient in zip(model.parameters(), found, strict=True):
                weight.sub_(0.1 * gradient * min(1.0, 40.0 / norm.item()))
    return model


@pytest.mark.parametrize("use_lstm", [False, True])
def test_learner_descends_over_all_minibatches_with_estimates_of_each_pass(use_lstm: bool) -> None:
    learner = learner_of(PassesConfig(passes=3, minibatches=2), use_lstm=use_lstm)
    batch = random_rollout(T, B, core_state=learner.model.initial_state(B))
    expected = steps_by_hand(learner, batch, 3, 2, by_unroll=use_lstm)
    stats = learner.update(batch, step=0)
    torch.testing.assert_close(list(learner.model.parameters()), list(expected.parameters()))
    assert stats.version == learner.version == 1
    assert stats.num_transitions == int(batch.valid.sum())


def test_batch_that_is_not_finite_changes_nothing() -> None:
    learner = learner_of(PassesConfig(passes=2, minibatches=2))
    before = deepcopy(learner.state_dict())
    batch = random_rollout(T, B)
    stats = learner.update(replace(batch, rewards=torch.full_like(batch.rewards, torch.nan)), step=0)
    assert stats.skipped
    assert stats.num_transitions == 0
    assert learner.version == 0
    torch.testing.assert_close(learner.state_dict()["model"], before["model"], rtol=0, atol=0)


def test_steps_end_at_the_first_minibatch_that_is_not_finite(caplog: pytest.LogCaptureFixture) -> None:
    learner = learner_of(PassesConfig(passes=1, minibatches=T))
    batch = random_rollout(T, B)
    order = over(replace(batch, rewards=numbered().rewards), 1, T, seed=learner.version)
    row = int(order[2].rewards[0, 0]) // B
    leaf = batch.observation[0].clone()
    leaf[row, 0] = torch.finfo(torch.float32).max
    before = deepcopy(learner.model)
    stats = learner.update(replace(batch, observation=(leaf,), valid=torch.ones_like(batch.valid)), step=0)
    assert not stats.skipped
    assert "update skipped" in caplog.text
    assert learner.version == 1
    assert not torch.equal(next(before.parameters()), next(learner.model.parameters()))


def test_statistics_take_a_batch_once() -> None:
    torch.manual_seed(0)
    settings = ModelConfig(model="mlp", hidden_sizes=(8,), normalise_observations=True, normalise_values=True)
    models = [make_model([VECTOR], [discrete(3)], settings)]
    models.append(deepcopy(models[0]))
    batch = random_rollout(T, B)
    for model, passes in zip(models, (PassesConfig(), PassesConfig(passes=3, minibatches=3)), strict=True):
        Learner(model, PLAIN_SGD, LOSS, schedule_steps=1000, passes=passes).update(batch, step=0)
    one, several = models
    assert one.normaliser is not None
    assert several.normaliser is not None
    torch.testing.assert_close(several.normaliser.state_dict(), one.normaliser.state_dict(), rtol=0, atol=0)
    assert one.popart is not None
    assert several.popart is not None
    assert several.popart.num_updates.item() == one.popart.num_updates.item()


def test_statistics_take_the_value_targets_of_the_last_estimates() -> None:
    model = make_model([VECTOR], [discrete(3)], ModelConfig(model="mlp", hidden_sizes=(8,), normalise_values=True))
    learner = Learner(model, PLAIN_SGD, LOSS, schedule_steps=1000, passes=PassesConfig(passes=2, minibatches=2))
    learner.update(random_rollout(T, B), step=0)  # the first batch with a reward begins the statistics
    calls: list[int] = []
    model.register_forward_hook(lambda _module, inputs, _output: calls.append(inputs[0].is_first.numel()))
    learner.update(random_rollout(T, B), step=1)
    assert calls.count((T + 1) * B) == 2
    assert len(calls) == 2 * (1 + 2)


@pytest.mark.parametrize(("use_lstm", "wanted", "expected"), [(False, 6, 5), (False, 4, 4), (True, 6, 3), (True, 2, 2)])
def test_a_batch_has_at_most_as_many_minibatches_as_parts(use_lstm: bool, wanted: int, expected: int) -> None:
    rollout = RolloutConfig(unroll_length=5, batch_size=3)
    config = MonoConfig(passes=PassesConfig(passes=2, minibatches=wanted), rollout=rollout)
    assert fitted(config, make_mlp(use_lstm=use_lstm)) == PassesConfig(passes=2, minibatches=expected)
