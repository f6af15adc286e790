"""Every leaf of an observation gets its network: images of all layouts, vectors, categories."""

from dataclasses import replace

import pytest
import torch

from kubebeast_learner.actors.weights import make_replica
from kubebeast_learner.algorithm.precision import low_precision_dtype
from kubebeast_learner.config import ConfigError, ModelConfig
from kubebeast_learner.distributions import ActionDistribution
from kubebeast_learner.models import ImageLayout, Model, ModelInputs, ModelSpecError, describe_inputs, make_model
from kubebeast_learner.models.actor_critic import ActorCritic
from kubebeast_learner.models.dummy import dummy_inputs
from kubebeast_learner.models.torsos import mlp
from kubebeast_learner.models.torsos.category import EMBEDDING_SIZE, CategoryTorso
from kubebeast_learner.models.torsos.deep import DeepTorso
from kubebeast_learner.models.torsos.image import ImageTorso
from kubebeast_learner.models.torsos.leaves import LeavesTorso
from kubebeast_learner.models.torsos.mlp import MLPTorso
from kubebeast_learner.models.torsos.shallow import ShallowTorso
from kubebeast_learner.models.torsos.small import SmallTorso
from tests.unit.learner.algorithm.learning_data import FRAMES, VECTOR, Leaf, discrete, random_leaf

A = 4
ROOM = Leaf((2,), "int64", "room", num_categories=7)
MIXED = [FRAMES, VECTOR, ROOM, Leaf((), "int64", "word", num_categories=500), Leaf((9, 9, 2), "bool", "map")]


def random_inputs(observation: list[Leaf], T: int, B: int) -> ModelInputs:
    return dummy_inputs(observation, ActionDistribution.of([discrete(A)]), T, B)


def joined() -> tuple[LeavesTorso, Model]:
    torch.manual_seed(0)
    model = make_model([FRAMES, VECTOR], [discrete(A)], ModelConfig())
    assert isinstance(model, ActorCritic)
    assert isinstance(model.torso, LeavesTorso)
    return model.torso, model


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
        (Leaf((7, 7, 3), "uint8"), SmallTorso),
        (Leaf((10, 10, 4), "bool"), SmallTorso),
        (Leaf((4, 35, 35), "uint8", frame_stack=4), SmallTorso),
        (Leaf((35, 84, 1), "float32"), SmallTorso),
        (Leaf((84, 84), "float32"), ShallowTorso),
        (Leaf((84, 84, 3), "float32"), ShallowTorso),
        (Leaf((20, 84), "uint8"), MLPTorso),
        (Leaf((2, 2, 5), "float32"), MLPTorso),
        (Leaf((2, 2, 2, 2, 2), "float32"), MLPTorso),
        (VECTOR, MLPTorso),
        (Leaf((), "int64", num_categories=16), MLPTorso),
    ],
)
def test_auto_chooses_by_shape(leaf: Leaf, torso: type) -> None:
    model = make_model([leaf], [discrete(A)], ModelConfig())
    assert isinstance(model, ActorCritic)
    assert type(model.torso) is torso


def test_many_categories_have_outputs_and_gradients_of_one_hot_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    observation = (Leaf((3,), "int64", num_categories=50), VECTOR, Leaf((), "int64", num_categories=7))
    torso = MLPTorso(observation, (16, 8))
    inputs = random_inputs(list(observation), 5, 3)
    results = []
    for most_one_hot in (1024, 10):
        monkeypatch.setattr(mlp, "_MOST_ONE_HOT", most_one_hot)
        torso.zero_grad()
        features = torso(*inputs.observation)
        features.square().sum().backward()
        results.append([features.detach(), *(weight.grad for weight in torso.parameters())])
    torch.testing.assert_close(*results)


def test_observations_of_a_million_categories_need_no_one_hot_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    leaf = Leaf((2,), "int64", num_categories=1_000_000)
    inputs = random_inputs([leaf], 5, 3)
    monkeypatch.setattr("torch.nn.functional.one_hot", None)

    assert MLPTorso([leaf], (4,))(*inputs.observation).shape == (5, 3, 4)


@pytest.mark.parametrize(
    ("leaf", "order"),
    [
        (Leaf((40, 38)), ()),
        (Leaf((40, 38, 3)), (2,)),
        (Leaf((40, 38, 12)), (2,)),
        (Leaf((38, 38, 50)), (2,)),
        (Leaf((3, 40, 38)), (0,)),
        (Leaf((10, 10, 10)), (2,)),
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
    torch.testing.assert_close(layout.to_nchw(image, torch.float32)[0], expected.float())


@pytest.mark.parametrize(
    ("leaf", "hint"),
    [
        (Leaf((84, 3, 84), "uint8", "eye"), "--image-layout eye=hwc or eye=chw names the axes"),
        (Leaf((84, 3, 84), "uint8"), r"--image-layout \.=hwc or \.=chw names the axes"),
        (Leaf((2, 9, 3, 9), "float32", "map"), "--image-layout map=khwc or map=kchw names the axes"),
        (Leaf((2, 4, 9, 9, 3), "uint8", "eyes"), ": --image-layout eyes=flat takes it as a vector"),
    ],
)
def test_an_image_whose_axes_could_be_any_is_refused_with_what_tells_them(leaf: Leaf, hint: str) -> None:
    for observation in ([leaf], [leaf, VECTOR]):
        with pytest.raises(ModelSpecError, match=rf'"{leaf.path}" .*may be an image.*{hint}'):
            make_model(observation, [discrete(A)], ModelConfig())
        assert isinstance(make_model(observation, [discrete(A)], ModelConfig(model="mlp")), ActorCritic)
    with pytest.raises(ModelSpecError, match=rf'takes an image .*not the leaf "{leaf.path}".*{hint}'):
        make_model([leaf], [discrete(A)], ModelConfig(model="deep"))


@pytest.mark.parametrize(
    ("leaf", "axes", "order"),
    [
        (Leaf((38, 40, 42)), "chw", (0,)),
        (Leaf((38, 40, 42)), "hwc", (2,)),
        (Leaf((40, 3, 42)), "hcw", (1,)),
        (Leaf((40, 42, 3, 4)), "hwck", (3, 2)),
        (Leaf((4, 40, 41, 42), frame_stack=4), "kchw", (0, 1)),
        (Leaf((5, 6)), "hw", ()),
        (Leaf((5, 6)), "wh", ()),
    ],
)
def test_axes_are_what_one_says_they_are(leaf: Leaf, axes: str, order: tuple[int, ...]) -> None:
    model = make_model([leaf], [discrete(A)], ModelConfig(image_layout=(f".={axes}",)))
    assert isinstance(model, ActorCritic)
    assert isinstance(model.torso, ImageTorso)
    image = torch.randn(1, 1, *leaf.row_shape)
    sides = [axes.index("h"), axes.index("w")]
    expected = image[0, 0].permute(*order, *sides).reshape(1, -1, *(leaf.row_shape[axis] for axis in sides))
    torch.testing.assert_close(model.torso.image.to_nchw(image, torch.float32), expected)


def test_an_image_may_be_called_flat() -> None:
    leaf = replace(FRAMES, path="eye")
    model = make_model([leaf], [discrete(A)], ModelConfig(image_layout=("eye=flat",)))
    assert describe_inputs(model, [leaf]) == '"eye" (uint8 [4, 84, 84]) flattened to 28,224 numbers'


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("eye=hwc", r"image_layout = 'eye': there is no such leaf; the observation has 'screen', 'room'"),
        (".=hwc", r"image_layout = '.': there is no such leaf"),
        ("screen=hw", r"image_layout = 'screen=hw': must have a letter for each of the 3 axes of "),
        ("room=hw", r"image_layout = 'room=hw': the leaf .room. .* holds categories"),
    ],
)
def test_a_layout_that_does_not_suit_the_observation_is_refused(entry: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make_model([FRAMES, ROOM], [discrete(A)], ModelConfig(image_layout=(entry,)))


def test_leaves_of_several_kinds_are_encoded_each_in_its_way_and_joined() -> None:
    model = make_model(MIXED, [discrete(A)], ModelConfig())
    assert isinstance(model, ActorCritic)
    assert isinstance(model.torso, LeavesTorso)
    assert [type(encoder) for encoder in model.torso.encoders] == [
        ShallowTorso, MLPTorso, CategoryTorso, CategoryTorso, SmallTorso,
    ]  # fmt: skip
    assert model.torso.join.in_features == 512 + 64 + 2 * 7 + 32 + 128
    assert model.policy.in_features == 512 + 1 + A  # as with shallow: reward and last action are added
    assert describe_inputs(model, MIXED) == (
        '"screen" (uint8 [4, 84, 84]) as an image of 84x84 with 4 channels, '
        '"position" (float32 [5]) flattened to 5 numbers, '
        '"room" (int64 [2], 7 categories) one-hot, '
        '"word" (int64 [], 500 categories) embedded in 32 numbers, '
        '"map" (bool [9, 9, 2]) as an image of 9x9 with 2 channels'
    )
    output, _ = model(random_inputs(MIXED, 2, 3), ())
    assert output.baseline.shape == (2, 3)
    output.baseline.sum().backward()
    assert all(parameter.grad is not None for parameter in model.torso.parameters())


@pytest.mark.parametrize(("name", "encoder", "num_inputs"), [("deep", DeepTorso, 1), ("shallow", ShallowTorso, 1 + A)])
def test_a_named_network_takes_the_images_of_several_leaves(name: str, encoder: type, num_inputs: int) -> None:
    model = make_model([VECTOR, FRAMES], [discrete(A)], ModelConfig(model=name, use_lstm=True))
    assert isinstance(model, ActorCritic)
    assert isinstance(model.torso, LeavesTorso)
    assert type(model.torso.encoders[1]) is encoder
    core = model.state_dict()["core.lstm.weight_ih_l0"]
    assert core.shape[1] == model.torso.output_size + num_inputs


def test_what_one_leaf_means_may_depend_on_another() -> None:
    torso, _ = joined()
    screens, positions = random_leaf(FRAMES, 1, 2), random_leaf(VECTOR, 1, 2)
    features = {(i, j): torso(screens[:, i : i + 1], positions[:, j : j + 1]) for i in (0, 1) for j in (0, 1)}
    interaction = features[0, 0] - features[0, 1] - features[1, 0] + features[1, 1]
    assert interaction.abs().max() > 1e-4


def test_only_convolutions_compute_in_bfloat16() -> None:
    torso, model = joined()
    assert low_precision_dtype("bf16", model, torch.device("cpu")) == torch.bfloat16
    replica = make_replica(model, "bf16", torch.device("cpu"))
    in_bfloat16 = {name.split(".")[2] for name, p in replica.named_parameters() if p.dtype == torch.bfloat16}
    assert in_bfloat16 == {"0"} and isinstance(torso.encoders[0], ShallowTorso)
    inputs = random_inputs([FRAMES, VECTOR], 1, 2)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        trained, _ = model(inputs, ())
    acted, _ = replica(inputs, ())
    assert trained.baseline.dtype == acted.baseline.dtype == torch.float32
    torch.testing.assert_close(acted, trained, rtol=0.05, atol=0.02)


def test_categories_of_one_kind_are_encoded_alike_wherever_they_stand() -> None:
    torso = CategoryTorso(Leaf((3,), "int64", num_categories=100))
    features = torso(torch.tensor([[[5, 7, 5]]])).view(3, EMBEDDING_SIZE)
    assert torch.equal(features[0], features[2]) and not torch.equal(features[0], features[1])


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


MASK = Leaf((A,), "bool", "mask", is_action_mask=True)


@pytest.mark.parametrize(
    ("observation", "interleaved"),
    [
        ([FRAMES], [True]),
        ([VECTOR, MASK, FRAMES], [False, False, True]),
        ([replace(FRAMES, dtype="float32")], [False]),
        ([Leaf((84, 84, 3), "uint8")], [False]),
        ([VECTOR], [False]),
    ],
)
def test_stacks_of_byte_images_may_lie_interleaved_in_memory(observation: list[Leaf], interleaved: list[bool]) -> None:
    model = make_model(observation, [discrete(A)], ModelConfig())
    assert model.interleaved == interleaved

    inputs = dummy_inputs(observation, model.distribution, 2, 3)
    pairs = zip(inputs.observation, model.interleaved, strict=True)
    native = [leaf.movedim(2, -1).contiguous() if last else leaf for leaf, last in pairs]
    same = inputs._replace(observation=model.with_frames_first(native, axis=2))
    for output, expected in zip(model(same, ())[0], model(inputs, ())[0], strict=True):
        torch.testing.assert_close(output, expected)


@pytest.mark.parametrize("torso", [ShallowTorso, DeepTorso, SmallTorso])
def test_pixels_of_uint8_count_as_numbers_up_to_one(torso: type[ImageTorso]) -> None:
    leaf = Leaf((4, 40, 38), "uint8", frame_stack=4)
    layout = ImageLayout.of(leaf)
    assert layout is not None
    net, pixels = torso(layout), random_leaf(leaf, 2, 3)
    torch.testing.assert_close(net(pixels), net(pixels.float() / 255))


@pytest.mark.parametrize(
    ("name", "observation", "message"),
    [
        ("shallow", [VECTOR], r'"position" \(float32 \[5\]\).*--model mlp'),
        ("deep", [ROOM, VECTOR], r'needs an image, "room" .*, "position" .* has none: use --model mlp'),
        ("shallow", [VECTOR, Leaf((9, 9, 3), "uint8", "eye")], r'36x36.*"eye" .*--model auto, deep'),
        ("shallow", [Leaf((4, 20, 84), "uint8", "eye", 4)], r'36x36.*"eye" \(uint8 \[4, 20, 84\]\)'),
        ("deep", [Leaf((9, 9), "int64", "map", num_categories=5)], r'"map" .*5 categories'),
        ("mlp", [], "no leaf"),
    ],
)
def test_observation_a_model_cannot_take_is_named(name: str, observation: list[Leaf], message: str) -> None:
    with pytest.raises(ModelSpecError, match=message):
        make_model(observation, [discrete(A)], ModelConfig(model=name))


def test_one_lit_cell_of_a_small_image_is_seen() -> None:
    """If all boards looked alike to the layers above, they could not be distinguished in training."""
    torch.manual_seed(0)
    torso = SmallTorso(ImageLayout.from_axes("hwc", (10, 5, 1)))
    boards = torch.eye(50, dtype=torch.bool).view(1, 50, 10, 5, 1)
    features = torso(boards)[0]
    assert features.std(dim=0).mean() > 0.05
