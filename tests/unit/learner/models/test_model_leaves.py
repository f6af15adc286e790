"""Which network takes which leaves of an observation: images of every layout, vectors, categories."""

from dataclasses import replace

import pytest
import torch

from kubebeast_learner.config import ModelConfig
from kubebeast_learner.models import ModelSpecError, describe_inputs, make_model
from kubebeast_learner.models.actor_critic import ActorCritic
from kubebeast_learner.models.image import ImageLayout
from kubebeast_learner.models.mlp import MLPTorso
from kubebeast_learner.models.shallow import ShallowTorso
from tests.unit.learner.algorithm.learning_data import FRAMES, VECTOR, Leaf, discrete, random_leaf

A = 4


@pytest.mark.parametrize(
    ("leaf", "torso"),
    [
        (FRAMES, ShallowTorso),
        (Leaf((96, 80), "uint8"), ShallowTorso),
        (Leaf((96, 80, 3), "uint8"), ShallowTorso),
        (Leaf((4, 96, 80, 3), "uint8", frame_stack=4), ShallowTorso),
        (Leaf((84, 84, 9), "uint8"), ShallowTorso),
        (Leaf((100, 84, 84), "uint8"), ShallowTorso),
        (Leaf((64, 100), "uint8", frame_stack=64), MLPTorso),
        (Leaf((7, 7, 3), "uint8"), MLPTorso),
        (Leaf((10, 10, 4), "bool"), MLPTorso),
        (Leaf((84, 84), "float32"), MLPTorso),
        (VECTOR, MLPTorso),
        (Leaf((), "int64", num_categories=16), MLPTorso),
    ],
)
def test_auto_chooses_by_shape(leaf: Leaf, torso: type) -> None:
    model = make_model([leaf], [discrete(A)], ModelConfig())
    assert isinstance(model, ActorCritic)
    assert type(model.torso) is torso


@pytest.mark.parametrize(
    ("leaf", "order"),
    [
        (Leaf((40, 38)), ()),
        (Leaf((40, 38, 3)), (2,)),
        (Leaf((40, 38, 12)), (2,)),
        (Leaf((38, 38, 50)), (2,)),
        (Leaf((3, 40, 38)), (0,)),
        (Leaf((50, 38, 38)), (0,)),
        (Leaf((60, 40, 38), frame_stack=60), (0,)),
        (Leaf((4, 40, 38, 3), frame_stack=4), (0, 3)),
        (Leaf((4, 3, 40, 38), frame_stack=4), (0, 1)),
        (Leaf((2, 40, 38, 3)), (0, 3)),
    ],
)
def test_every_image_layout_gives_the_same_pixels(leaf: Leaf, order: tuple[int, ...]) -> None:
    """order: the axes that become channels, the first one outermost."""
    leaf = replace(leaf, dtype="uint8")
    layout = ImageLayout.of(leaf)
    assert layout is not None
    image = random_leaf(leaf, 1, 1)
    sides = [axis for axis in range(len(leaf.row_shape)) if axis not in order]
    assert (layout.height, layout.width) == tuple(leaf.row_shape[axis] for axis in sides)
    expected = image[0, 0].permute(*order, *sides).reshape(layout.channels, layout.height, layout.width)
    torch.testing.assert_close(layout.to_nchw(image, torch.float32)[0], expected.float() / 255)


@pytest.mark.parametrize("shape", [(64, 64, 64), (84, 3, 84), (3, 84, 3)])
def test_an_image_whose_channels_could_stand_anywhere_is_refused(shape: tuple[int, ...]) -> None:
    leaf = Leaf(shape, "uint8", "eye")
    with pytest.raises(ModelSpecError, match=r'takes an image .*not the leaf "eye"'):
        make_model([leaf], [discrete(A)], ModelConfig(model="deep"))


@pytest.mark.parametrize(
    ("observation", "message"),
    [
        ([FRAMES, VECTOR], r'the image "screen" .* is one of 2 leaves .*"position".*--model mlp flattens it'),
        ([VECTOR, Leaf((2, 64, 48, 3), "uint8", "eye")], r'the image "eye" .* is one of 2 leaves'),
        ([Leaf((64, 64, 64), "uint8", "eye")], r'the image "eye" .* has no axis that must be its channels'),
    ],
)
def test_auto_flattens_no_image(observation: list[Leaf], message: str) -> None:
    with pytest.raises(ModelSpecError, match=message):
        make_model(observation, [discrete(A)], ModelConfig())
    assert isinstance(make_model(observation, [discrete(A)], ModelConfig(model="mlp")), ActorCritic)


def test_an_image_of_floats_is_flattened_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    make_model([Leaf((84, 84, 3), path="eye")], [discrete(A)], ModelConfig())
    assert caplog.messages == ['"eye" (float32 [84, 84, 3]) is flattened: --model shallow takes it as an image']


@pytest.mark.parametrize(
    ("observation", "name", "expected"),
    [
        ([FRAMES], "auto", '"screen" (uint8 [4, 84, 84]) as an image of 84x84 with 4 channels'),
        (
            [VECTOR, Leaf((2,), "int64", "room", num_categories=7)],
            "auto",
            '"position" (float32 [5]) flattened to 5 numbers, "room" (int64 [2], 7 categories) flattened to 14 numbers',
        ),
        ([VECTOR], "tests.unit.learner.models.user_models:Good", '"position" (float32 [5]) as they are'),
    ],
)
def test_what_becomes_of_every_leaf_is_told(observation: list[Leaf], name: str, expected: str) -> None:
    model = make_model(observation, [discrete(A)], ModelConfig(model=name))
    assert describe_inputs(model, observation) == expected


def test_images_of_float_keep_their_scale_and_are_not_overwritten() -> None:
    layout = ImageLayout.of(Leaf((2, 40, 40)))
    assert layout is not None
    images = torch.randn(1, 1, 2, 40, 40)
    before = images.clone()
    torch.testing.assert_close(layout.to_nchw(images, torch.float32), before[0])
    torch.testing.assert_close(images, before)


@pytest.mark.parametrize(
    ("name", "observation", "message"),
    [
        ("shallow", [VECTOR], r'"position" \(float32 \[5\]\).*--model mlp'),
        ("deep", [FRAMES, VECTOR], r"2 leaves.*--model mlp"),
        ("shallow", [Leaf((4, 20, 84), "uint8", "eye", 4)], r'36x36.*"eye" \(uint8 \[4, 20, 84\]\)'),
        ("deep", [Leaf((9, 9), "int64", "map", num_categories=5)], r'"map" .*5 categories'),
        ("mlp", [], "no leaf"),
    ],
)
def test_observation_a_model_cannot_take_is_named(name: str, observation: list[Leaf], message: str) -> None:
    with pytest.raises(ModelSpecError, match=message):
        make_model(observation, [discrete(A)], ModelConfig(model=name))
