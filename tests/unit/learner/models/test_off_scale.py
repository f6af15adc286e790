"""Only numbers and bytes that are far off scale are normalized, so that any units are learned."""

import logging
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from kubebeast_learner.algorithm import Learner
from kubebeast_learner.config import LossConfig, ModelConfig, OptimizerConfig
from kubebeast_learner.models import make_model
from kubebeast_learner.models.scales.moments import LIMIT
from kubebeast_learner.models.scales.observation import ObservationNormaliser
from tests.unit.learner.algorithm.learning_data import Leaf, discrete, random_rollout
from tests.unit.learner.models import user_encoders

T, B = 40, 8
ALL = torch.ones(T, B, dtype=torch.bool)
CONFIG = ModelConfig(normalise_off_scale=True, hidden_sizes=(8,))
NUMBER, CELLS = Leaf((1,)), Leaf((7, 7, 3), "uint8")


def normaliser_of(*observation: Leaf, config: ModelConfig = CONFIG) -> ObservationNormaliser:
    normaliser = make_model(observation, [discrete(3)], config).normaliser
    assert normaliser is not None
    return normaliser


def rare_flags() -> Tensor:
    flags = torch.zeros(T, B, 1)
    flags[3, 4] = 1.0
    return flags


ON_SCALE: dict[str, Callable[[], Tensor]] = {
    "numbers near 0": lambda: torch.randn(T, B, 1),
    "angles": lambda: 0.05 * torch.randn(T, B, 1),
    "speeds": lambda: 60.0 * torch.randn(T, B, 1),
    "numbers near 5": lambda: 5.0 + 0.1 * torch.randn(T, B, 1),
    "a constant": lambda: torch.full((T, B, 1), 0.5),
    "nothing but 0": lambda: torch.zeros(T, B, 1),
    "a flag that is rarely set": rare_flags,
}
OFF_SCALE: dict[str, Callable[[], Tensor]] = {
    "meters in kilometers": lambda: 1e-3 * torch.randn(T, B, 1),
    "meters in micrometers": lambda: 1e6 * torch.randn(T, B, 1),
    "prices": lambda: 50.0 + torch.randn(T, B, 1),
    "temperatures": lambda: 300.0 + 20.0 * torch.randn(T, B, 1),
    "a far constant": lambda: torch.full((T, B, 1), 1e4),
}


@pytest.mark.parametrize("kind", ON_SCALE)
def test_numbers_on_scale_stay_as_they_are(kind: str) -> None:
    torch.manual_seed(0)
    normaliser, rows = normaliser_of(NUMBER), ON_SCALE[kind]()

    normaliser.add((rows,), ALL)
    normaliser.add((1e6 * rows,), ALL)  # the first batch has decided

    assert torch.equal(normaliser((rows,))[0], rows)
    assert normaliser.describe_off_scale() == []


@pytest.mark.parametrize("kind", OFF_SCALE)
def test_numbers_off_scale_are_normalised(kind: str) -> None:
    torch.manual_seed(0)
    normaliser, rows = normaliser_of(NUMBER), OFF_SCALE[kind]()
    before = rows[:1]

    assert torch.equal(normaliser((before,))[0], before)
    normaliser.add((rows,), ALL)

    seen = normaliser((rows,))[0]
    torch.testing.assert_close(seen.mean(), torch.tensor(0.0), rtol=0, atol=1e-3)
    torch.testing.assert_close(seen.std(), torch.tensor(float(kind != "a far constant")), rtol=0.01, atol=1e-3)
    assert normaliser((1e9 * rows,))[0].abs().max() <= LIMIT
    assert normaliser.describe_off_scale() == ['1 of 1 numbers of "" (float32 [1])']


def test_each_number_of_a_leaf_is_judged_alone() -> None:
    torch.manual_seed(0)
    normaliser = normaliser_of(Leaf((3,), path="state"), Leaf((2,), "uint8", "memory"))
    state = torch.randn(T, B, 3) * torch.tensor([1.0, 1e4, 1.0])
    memory = torch.stack([torch.randint(256, (T, B)), torch.randint(2, (T, B))], dim=-1).to(torch.uint8)

    normaliser.add((state, memory), ALL)

    numbers, of_bytes = normaliser((state, memory))
    assert torch.equal(numbers[..., ::2], state[..., ::2]) and numbers[..., 1].abs().max() <= LIMIT
    torch.testing.assert_close(of_bytes[..., 0], memory[..., 0] / 255)
    torch.testing.assert_close(of_bytes[..., 1].std(), torch.tensor(1.0), rtol=0.01, atol=0)
    described = normaliser.describe_off_scale()
    assert [text.split(" of ")[0] for text in described] == ["1", "1"]


@pytest.mark.parametrize(("largest", "divisor"), [(1, 1.0), (10, 3.0), (255, 255.0)])
def test_cells_with_small_bytes_are_divided_by_their_size(largest: int, divisor: float) -> None:
    torch.manual_seed(0)
    normaliser = normaliser_of(CELLS)
    cells = torch.where(torch.rand(T, B, 7, 7, 3) < 0.1, divisor if largest < 255 else 255, 0).to(torch.uint8)

    normaliser.add((torch.zeros_like(cells),), ALL)  # nothing is known yet
    normaliser.add((cells,), ALL)
    normaliser.add((torch.full_like(cells, 200),), ALL)

    torch.testing.assert_close(normaliser((cells,))[0], cells / divisor)
    assert len(normaliser.describe_off_scale()) == (largest < 255)


IMAGES: dict[str, tuple[str, Callable[[Tensor], Tensor], str]] = {
    "in [0, 1]": ("float32", lambda image: image, ""),
    "standardized": ("float64", lambda image: 2.0 * image - 1.0, ""),
    "kinds of things": ("int64", lambda image: 9 * image, ""),
    "bytes in floats": ("float32", lambda image: 255.0 * image, "of size 2.6e+02"),
    "meters in kilometers": ("float32", lambda image: 1e-3 * image, "of size 0.001"),
    "large numbers": ("int32", lambda image: 1_000_000 * image, "of size 1e+06"),
    "temperatures": ("float32", lambda image: 300.0 + image, "of size 0.3 around 3e+02"),
}


@pytest.mark.parametrize("kind", IMAGES)
@pytest.mark.parametrize("shape", [(10, 10, 4), (64, 64, 3)])
def test_images_of_other_numbers_have_one_scale(kind: str, shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    dtype, make, off_scale = IMAGES[kind]
    normaliser = normaliser_of(Leaf(shape, dtype))
    image = make((torch.rand(T, B, *shape) < 0.1).double()).to(getattr(torch, dtype))

    normaliser.add((image,), ALL)
    normaliser.add((1000 * image,), ALL)  # the first batch has decided

    seen = normaliser((image,))[0]
    assert seen.dtype == torch.float32
    assert normaliser.describe_off_scale() == [
        f'numbers {size} of "" ({dtype} [{", ".join(map(str, shape))}])' for size in [off_scale] if size
    ]
    if not off_scale:
        assert torch.equal(seen, image.float())
    else:
        assert seen.std() * 10 > 1.0 and seen.abs().max() < 10.0
        assert (seen == 0).float().mean() > 0.8 or "around" in off_scale


@pytest.mark.parametrize(
    ("observation", "config"),
    [
        ((Leaf((84, 84), "uint8"),), CONFIG),
        ((Leaf((10, 10, 4), "bool"),), CONFIG),
        ((Leaf((), "int64", num_categories=5),), CONFIG),
        ((NUMBER,), replace(CONFIG, model="tests.unit.learner.models.user_models:Memoryless")),
        ((Leaf((3,), path="a"),), replace(CONFIG, encoder=(f"a={user_encoders.__name__}:Good",))),
    ],
)
def test_screens_categories_and_networks_of_a_user_get_the_observation_as_it_is(
    observation: tuple[Leaf, ...], config: ModelConfig
) -> None:
    assert make_model(observation, [discrete(3)], config).normaliser is None


def test_the_first_batch_is_known_before_it_is_trained_on(caplog: pytest.LogCaptureFixture) -> None:
    torch.manual_seed(0)
    caplog.set_level(logging.INFO)
    learner = Learner(make_model([NUMBER], [discrete(3)], CONFIG), OptimizerConfig(), LossConfig(), schedule_steps=100)
    rollout = random_rollout(observation=(1e8 * torch.randn(6, 4, 1),))

    norms = [learner.update(rollout, step=0).grad_norm for _ in range(3)]

    assert max(norms) < 1e4
    assert [text for text in caplog.messages if "off scale" in text] == [
        'off scale, therefore normalized: 1 of 1 numbers of "" (float32 [1])'
    ]
    assert learner.model.normaliser is not None
    (moments,) = learner.model.normaliser.leaves.values()
    assert moments.count == 3 * rollout.valid.sum()
