"""Running statistics normalize observations."""

import math
from dataclasses import replace

import pytest
import torch

from kubebeast_learner.actors.weights import copy_weights, make_replica, weights_of
from kubebeast_learner.algorithm import Learner
from kubebeast_learner.config import LossConfig, ModelConfig, OptimizerConfig
from kubebeast_learner.models import ModelInputs, ModelSpecError, make_model
from kubebeast_learner.models.scales.moments import LIMIT, PixelMoments, RunningMoments
from kubebeast_learner.models.scales.observation import ObservationNormaliser, make_normaliser
from tests.unit.learner.algorithm.learning_data import VECTOR, Leaf, discrete, random_rollout
from tests.unit.learner.models import user_encoders
from tests.unit.learner.models.user_models import Memoryless

ALL = torch.ones(7, 5, dtype=torch.bool)


def of_numbers(*observation: Leaf) -> ObservationNormaliser:
    normaliser = make_normaliser(ModelConfig(normalise_observations=True), observation, ["other"] * len(observation))
    assert normaliser is not None
    return normaliser


def test_moments_of_batches_are_those_of_all_rows_together() -> None:
    torch.manual_seed(0)
    moments = RunningMoments((2, 3))
    batches = [1000.0 + scale * torch.randn(7, 5, 2, 3) for scale in (1.0, 5.0, 0.1)]
    for batch in batches:
        moments.add(batch, ALL)
    rows = torch.cat(batches).flatten(0, 1).double()
    torch.testing.assert_close(moments.mean, rows.mean(dim=0))
    torch.testing.assert_close(moments.variance, rows.var(dim=0, correction=0), rtol=1e-3, atol=0)
    assert moments.count == 3 * 35


def test_the_mean_of_a_billion_rows_still_moves() -> None:
    moments = RunningMoments((1,))
    moments.add(torch.full((7, 5, 1), 1e6), ALL)
    moments.count.fill_(1e9)
    for _ in range(10):
        moments.add(torch.full((7, 5, 1), 1e6 + 2.0), ALL)
    assert moments.mean.item() - 1e6 == pytest.approx(2.0 * 350 / 1e9, rel=0.01)


def test_clocks_keep_their_seconds() -> None:
    torch.manual_seed(0)
    clock = 1.7e9 + 30.0 * torch.randn(7, 5, 1, dtype=torch.float64)
    moments = RunningMoments((1,))
    moments.add(clock, ALL)
    expected = (clock - clock.mean()) / clock.std(correction=0)
    torch.testing.assert_close(moments(clock), expected.float(), rtol=1e-4, atol=1e-4)


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
    torch.testing.assert_close(moments(torch.ones(1, 1, 3)), torch.ones(1, 1, 3))
    moments.add(torch.randn(7, 5, 3), ALL)
    before = moments.mean.clone()
    moments.add(torch.randn(7, 5, 3), ~ALL)
    assert torch.equal(moments.mean, before)


def test_images_of_bytes_and_categories_are_not_normalised() -> None:
    torch.manual_seed(0)
    leaves = [Leaf((3, 4), "uint8", "pixels"), Leaf((2,), path="speed"), Leaf((), "int64", "room", num_categories=4)]
    normaliser = of_numbers(*leaves)
    pixels = torch.randint(256, (7, 5, 3, 4), dtype=torch.uint8)
    speed, room = 100 + 20 * torch.randn(7, 5, 2), torch.randint(4, (7, 5))
    normaliser.add((pixels, speed, room), ALL)
    seen = normaliser((pixels, speed, room))
    assert seen[0] is pixels
    assert seen[2] is room
    torch.testing.assert_close(seen[1].mean(dim=(0, 1)), torch.zeros(2), rtol=0, atol=1e-4)
    torch.testing.assert_close(seen[1].std(dim=(0, 1), correction=0), torch.ones(2), rtol=0, atol=1e-3)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int64", "float64"])
def test_numbers_of_every_type_are_normalised(dtype: str) -> None:
    normaliser = of_numbers(Leaf((2,), dtype))
    numbers = torch.randint(11, (7, 5, 2)).to(getattr(torch, dtype))
    normaliser.add((numbers,), ALL)
    (seen,) = normaliser((numbers,))
    assert seen.dtype == torch.float32
    torch.testing.assert_close(seen.std(dim=(0, 1), correction=0), torch.ones(2), rtol=0, atol=1e-3)


FRAMES = Leaf((4, 6, 5), "uint8", "screen", frame_stack=4)
"""Stacks of four images of 6 x 5 pixels."""


def test_numbers_and_images_are_normalised_together() -> None:
    torch.manual_seed(0)
    screen = Leaf((3, 4), "uint8", "pixels")
    normaliser = ObservationNormaliser([VECTOR, screen], {0: RunningMoments(VECTOR.shape), 1: PixelMoments(screen)})
    observation = (torch.randn(7, 5, *VECTOR.shape), torch.randint(256, (7, 5, 3, 4), dtype=torch.uint8))
    normaliser.add(observation, ALL)
    for seen in normaliser(observation):
        torch.testing.assert_close(seen.mean(dim=(0, 1)), torch.zeros(seen.shape[2:]), rtol=0, atol=1e-4)
    assert len(normaliser.names) == len(normaliser.of_numbers(observation)) == 1


@pytest.mark.parametrize("name", ["shallow", "deep"])
def test_networks_read_normalised_images(name: str) -> None:
    torch.manual_seed(0)
    leaf = Leaf((4, 84, 84), "uint8", frame_stack=4)
    config = ModelConfig(model=name, hidden_sizes=(8,), normalise_images=True)
    model = make_model([leaf], [discrete(3)], config)
    rollout = replace(
        random_rollout(2, 2), observation=(torch.randint(200, 256, (3, 2, 4, 84, 84), dtype=torch.uint8),)
    )
    learner = Learner(model, OptimizerConfig(), LossConfig(), schedule_steps=100, precision="fp32")
    assert not learner.update(rollout, step=0).skipped
    plain = make_model([leaf], [discrete(3)], replace(config, normalise_images=False))
    plain.load_state_dict({k: v for k, v in model.state_dict().items() if not k.startswith("normaliser")})
    assert model.normaliser is not None
    inputs = rollout.model_inputs
    shown = inputs._replace(observation=model.normaliser(inputs.observation))
    torch.testing.assert_close(model(inputs, ())[0].baseline, plain(shown, ())[0].baseline)


class OfBytes(Memoryless):
    """A model that scales bytes itself."""

    def encode(self, inputs: ModelInputs) -> torch.Tensor:
        (screen,) = inputs.observation
        assert screen.dtype == torch.uint8
        return torch.relu(self.input(screen[..., 0].float() / 255))


class EncoderOfBytes(user_encoders.Good):
    """An encoder that scales bytes itself."""

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        assert rows.dtype == torch.uint8
        return torch.relu(self.layer(rows[..., 0, :].float() / 255))


@pytest.mark.parametrize(
    "config",
    [
        ModelConfig(model="mlp", hidden_sizes=(8,)),
        ModelConfig(model=f"{__name__}:OfBytes"),
        ModelConfig(image_layout=("screen=flat",), hidden_sizes=(8,)),
        ModelConfig(encoder=(f"screen={__name__}:EncoderOfBytes",)),
    ],
    ids=lambda config: f"{config.model} {config.image_layout} {config.encoder}",
)
def test_only_images_that_built_in_convolutions_read_are_normalised(config: ModelConfig) -> None:
    leaf = Leaf((12, 12), "uint8", "screen")
    assert make_model([leaf], [discrete(3)], replace(config, normalise_images=True)).normaliser is None


def test_an_image_beside_a_mask_and_numbers_is_normalised() -> None:
    torch.manual_seed(0)
    mask = Leaf((3,), "bool", "mask", is_action_mask=True)
    model = make_model(
        [mask, VECTOR, Leaf((12, 12, 3), "uint8", "screen")], [discrete(3)], ModelConfig(normalise_images=True)
    )
    assert model.normaliser is not None
    assert list(model.normaliser.leaves) == ["2"]


def test_extremes_are_cut_off() -> None:
    moments = RunningMoments((1,))
    moments.add(torch.randn(7, 5, 1), ALL)
    assert moments(torch.full((1, 1, 1), 1e30)).item() == LIMIT


def test_an_observation_without_numbers_has_nothing_to_normalise() -> None:
    with pytest.raises(
        ModelSpecError, match=r'no leaf holds numbers that are no image of bytes: "pixels" \(uint8 \[9, 9\]'
    ):
        make_model([Leaf((9, 9), "uint8", "pixels")], [discrete(2)], ModelConfig(normalise_observations=True))


@pytest.mark.parametrize("value", [2e19, -1e20, torch.finfo(torch.float32).max, torch.inf, torch.nan])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_numbers_whose_square_is_not_finite_are_no_part_of_the_statistics(value: float, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    rows = torch.randn(7, 5, 3, dtype=dtype)
    clean, spoilt = RunningMoments((3,)), RunningMoments((3,))
    clean.add(rows, ALL)
    spoilt.add(rows, ALL)
    rows = torch.randn(7, 5, 3, dtype=dtype)
    rows[2, 3, 1] = value
    others = ALL.clone()
    others[2, 3] = False
    clean.add(rows, others)
    spoilt.add(rows, ALL)
    assert torch.equal(spoilt.left_out, torch.tensor([0.0, 1.0, 0.0], dtype=torch.float64))
    torch.testing.assert_close(spoilt.mean[1], clean.mean[1])
    torch.testing.assert_close(spoilt.variance[1], clean.variance[1])
    seen = spoilt(torch.tensor([[[value, value, 0.0]]], dtype=dtype))
    assert math.isnan(value) or seen.isfinite().all()


def test_the_squares_of_a_large_batch_may_add_up_to_more_than_a_float_holds() -> None:
    moments = RunningMoments((1,))
    rows = torch.full((200, 50, 1), 8e18)
    rows[::2] *= -1
    for _ in range(2):
        moments.add(rows, torch.ones(200, 50, dtype=torch.bool))
    torch.testing.assert_close(moments.variance, torch.tensor([6.4e37], dtype=torch.float64), rtol=1e-4, atol=0)
    assert moments(rows).abs().max() == pytest.approx(1.0, rel=1e-3)


def test_a_number_that_was_never_taken_in_is_learnt_from_its_first_real_rows() -> None:
    torch.manual_seed(0)
    moments, largest = RunningMoments((2,)), torch.finfo(torch.float32).max
    for _ in range(100):
        moments.add(torch.stack([torch.randn(7, 5), torch.full((7, 5), largest)], dim=-1), ALL)
    rows = 50.0 + 3.0 * torch.randn(7, 5, 2)
    moments.add(rows, ALL)
    torch.testing.assert_close(moments.mean[1], rows[..., 1].double().mean())


def test_statistics_of_an_older_version_are_taken_up() -> None:
    moments, older = RunningMoments((3,)), RunningMoments((3,))
    older.add(torch.randn(7, 5, 3), ALL)
    state = older.state_dict()
    del state["left_out"]
    moments.load_state_dict(state)
    assert torch.equal(moments.mean, older.mean)
    assert moments.count == 35 and not moments.left_out.any()


def test_a_run_says_once_which_observation_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    torch.manual_seed(0)
    config = ModelConfig(hidden_sizes=(8,), normalise_observations=True)
    learner = Learner(make_model([VECTOR], [discrete(3)], config), OptimizerConfig(), LossConfig(), schedule_steps=1000)
    rollout = random_rollout()
    where = rollout.valid.nonzero()[0]
    rollout.observation[0][where[0], where[1], 2] = 1e20
    for _ in range(3):
        assert not learner.update(rollout, step=0).skipped
    assert [text for text in caplog.messages if "running statistics" in text] == [
        'the observation "position" (float32 [5]) holds 1e+20: '
        "numbers beyond 9e+18 are no part of the running statistics"
    ]
    assert all(tensor.isfinite().all() for tensor in learner.model.state_dict().values())


@pytest.mark.parametrize("name", ["mlp", "tests.unit.learner.models.user_models:Good"])
def test_the_statistics_are_part_of_the_weights_and_change_in_training_alone(name: str) -> None:
    torch.manual_seed(0)
    config = ModelConfig(model=name, hidden_sizes=(8,), normalise_observations=True)
    model = make_model([VECTOR], [discrete(3)], config)
    learner = Learner(model, OptimizerConfig(), LossConfig(), schedule_steps=100)
    rollout = random_rollout(core_state=model.initial_state(4))
    rollout = replace(rollout, observation=(50 + 3 * rollout.observation[0],))
    learner.update(rollout, step=0)
    acted_on = rollout.observation[0][:-1][rollout.valid]
    assert model.normaliser is not None
    (moments,) = model.normaliser.leaves.values()
    torch.testing.assert_close(moments.mean, acted_on.double().mean(dim=0))

    actor = make_replica(model, "fp32", torch.device("cpu"))
    copy_weights(weights_of(model), weights_of(actor))
    output, _ = model(rollout.model_inputs, rollout.core_state)
    acted, _ = actor(rollout.model_inputs, rollout.core_state)
    torch.testing.assert_close(acted.baseline, output.baseline)
    again = make_model([VECTOR], [discrete(3)], config)
    again.load_state_dict(model.state_dict())
    torch.testing.assert_close(again(rollout.model_inputs, rollout.core_state)[0].baseline, output.baseline)
