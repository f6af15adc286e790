"""Running statistics of observations."""

from dataclasses import replace

import pytest
import torch

from kubebeast_learner.actors.weights import copy_weights, make_replica
from kubebeast_learner.algorithm import Learner
from kubebeast_learner.config import LossConfig, ModelConfig, OptimizerConfig
from kubebeast_learner.models import ModelSpecError, make_model
from kubebeast_learner.models.normalisation import LIMIT, ObservationNormaliser, RunningMoments
from tests.unit.learner.algorithm.learning_data import VECTOR, Leaf, discrete, random_rollout

ALL = torch.ones(7, 5, dtype=torch.bool)


def test_moments_of_batches_are_those_of_all_rows_together() -> None:
    torch.manual_seed(0)
    moments = RunningMoments((2, 3))
    batches = [1000.0 + scale * torch.randn(7, 5, 2, 3) for scale in (1.0, 5.0, 0.1)]
    for batch in batches:
        moments.add(batch, ALL)
    rows = torch.cat(batches).flatten(0, 1).double()
    torch.testing.assert_close(moments.mean, rows.mean(dim=0).float())
    torch.testing.assert_close(moments.variance, rows.var(dim=0, correction=0).float(), rtol=1e-3, atol=0)
    assert moments.count == 3 * 35


def test_rows_that_are_not_counted_may_hold_anything() -> None:
    rows = torch.randn(7, 5, 3)
    counted = torch.rand(7, 5) < 0.5
    first, second = RunningMoments((3,)), RunningMoments((3,))
    first.add(rows, counted)
    second.add(rows.masked_fill(~counted.unsqueeze(-1), torch.nan), counted)
    assert torch.equal(first.mean, second.mean)
    assert torch.equal(first.variance, second.variance)


def test_a_batch_without_a_row_changes_nothing() -> None:
    moments = RunningMoments((3,))
    moments.add(torch.full((7, 5, 3), torch.nan), ~ALL)
    torch.testing.assert_close(moments(torch.ones(1, 1, 3)), torch.full((1, 1, 3), (1 + 1e-4) ** -0.5))
    moments.add(torch.randn(7, 5, 3), ALL)
    before = moments.mean.clone()
    moments.add(torch.randn(7, 5, 3), ~ALL)
    assert torch.equal(moments.mean, before)


def test_only_floats_are_normalised() -> None:
    torch.manual_seed(0)
    leaves = [Leaf((3,), "uint8", "pixels"), Leaf((2,), path="speed"), Leaf((), "int64", "room", num_categories=4)]
    normaliser = ObservationNormaliser(leaves)
    pixels = torch.randint(256, (7, 5, 3), dtype=torch.uint8)
    speed, room = 100 + 20 * torch.randn(7, 5, 2), torch.randint(4, (7, 5))
    normaliser.add((pixels, speed, room), ALL)
    seen = normaliser((pixels, speed, room))
    assert seen[0] is pixels
    assert seen[2] is room
    torch.testing.assert_close(seen[1].mean(dim=(0, 1)), torch.zeros(2), rtol=0, atol=1e-4)
    torch.testing.assert_close(seen[1].std(dim=(0, 1), correction=0), torch.ones(2), rtol=0, atol=1e-3)


def test_extremes_are_cut_off() -> None:
    moments = RunningMoments((1,))
    moments.add(torch.randn(7, 5, 1), ALL)
    assert moments(torch.full((1, 1, 1), 1e30)).item() == LIMIT


def test_an_observation_without_floats_has_nothing_to_normalise() -> None:
    with pytest.raises(ModelSpecError, match=r'no leaf holds floats: "pixels" \(uint8 \[3\]\)'):
        make_model([Leaf((3,), "uint8", "pixels")], [discrete(2)], ModelConfig(normalise_observations=True))


@pytest.mark.parametrize("name", ["mlp", "tests.unit.learner.models.user_models:Good"])
def test_the_statistics_are_part_of_the_weights_and_change_in_training_alone(name: str) -> None:
    torch.manual_seed(0)
    config = ModelConfig(model=name, hidden_sizes=(8,), normalise_observations=True)
    model = make_model([VECTOR], [discrete(3)], config)
    learner = Learner(model, OptimizerConfig(), LossConfig(), total_steps=100)
    rollout = random_rollout(core_state=model.initial_state(4))
    rollout = replace(rollout, observation=(50 + 3 * rollout.observation[0],))
    learner.update(rollout, step=0)
    acted_on = rollout.observation[0][:-1][rollout.valid]
    assert model.normaliser is not None
    (moments,) = model.normaliser.leaves.values()
    torch.testing.assert_close(moments.mean, acted_on.mean(dim=0))

    actor = make_replica(model, "fp32", torch.device("cpu"))
    copy_weights(model, actor)
    output, _ = model(rollout.model_inputs, rollout.core_state)
    acted, _ = actor(rollout.model_inputs, rollout.core_state)
    torch.testing.assert_close(acted.baseline, output.baseline)
    again = make_model([VECTOR], [discrete(3)], config)
    again.load_state_dict(model.state_dict())
    torch.testing.assert_close(again(rollout.model_inputs, rollout.core_state)[0].baseline, output.baseline)
