"""Choice of the torso of an observation, from the kind of each leaf."""

from collections.abc import Collection, Iterable, Sequence

from kubebeast_common.spec.leaves import LeafSpec, describe_leaf
from kubebeast_learner.config import ConfigError, ModelConfig
from kubebeast_learner.config.checks import require
from kubebeast_learner.errors import ModelSpecError
from kubebeast_learner.models.torsos.base import Torso
from kubebeast_learner.models.torsos.category import CategoryTorso
from kubebeast_learner.models.torsos.deep import DeepTorso
from kubebeast_learner.models.torsos.image import ImageLayout
from kubebeast_learner.models.torsos.leaves import LeavesTorso
from kubebeast_learner.models.torsos.mlp import MLPTorso
from kubebeast_learner.models.torsos.own import make_own_encoder
from kubebeast_learner.models.torsos.shallow import ShallowTorso
from kubebeast_learner.models.torsos.small import SmallTorso

SMALLEST_SIDE = 3
"""Smallest height and width of an image with channels, from the 3x3 convolutions of the small network."""
SMALLEST_PLAIN_SIDE = ShallowTorso.smallest_side
"""Smallest height and width of an image [H, W]: the rows and columns of smaller tables may have no order."""


def make_torso(observation: Sequence[LeafSpec], config: ModelConfig) -> tuple[str, Torso]:
    """Builds an encoder for every leaf, joined, or one mlp if there is neither an image nor a user's encoder.

    Returns the torso after the name of the network that determines the core and further inputs: shallow, deep or mlp.
    Raises ModelSpecError for a leaf that the network cannot take, ConfigError for a setting that names no leaf or does
    not suit it, and for a wrong encoder of the user.
    """
    own = {
        index: make_own_encoder(config, path, observation[index])
        for path, index in _places("encoder", config.encoders, observation).items()
    }
    images = {} if config.model == "mlp" else _images(observation, config, without=own)
    if not images and not own:
        if config.model in ("shallow", "deep"):
            raise ModelSpecError(
                f"--model {config.model} needs an image, {_listed(observation)} has none: use --model mlp"
            )
        return "mlp", MLPTorso(observation, config.hidden_sizes)
    encoders = [own.get(index) or _encoder(leaf, images.get(index), config) for index, leaf in enumerate(observation)]
    network = config.model if config.model != "auto" else "shallow" if images else "mlp"
    return network, encoders[0] if len(encoders) == 1 else LeavesTorso(encoders)


def find_image(leaf: LeafSpec) -> ImageLayout | None:
    """Returns the layout of a leaf that is an image, else None.

    A leaf of numbers of any dtype is an image if it has rows, columns and channels, or frames, or only rows and
    columns but many of them. Raises ModelSpecError if the meaning of its axes is ambiguous.
    """
    frame = leaf.row_shape[1:] if leaf.frame_stack > 1 else leaf.row_shape
    smallest = SMALLEST_PLAIN_SIDE if len(leaf.row_shape) == 2 else SMALLEST_SIDE
    if leaf.num_categories > 0 or sum(size >= smallest for size in frame) < 2:
        return None
    image = ImageLayout.of(leaf)
    if image is None:
        raise ModelSpecError(
            f"the leaf {describe_leaf(leaf)} may be an image, but its shape does not determine the axes of rows, "
            f"columns and channels: {_layout_hint(leaf)}"
        )
    return image if min(image.height, image.width) >= smallest else None


def find_images(observation: Sequence[LeafSpec], config: ModelConfig) -> dict[int, ImageLayout]:
    """Returns the layouts of the leaves that are images, by index; of leaves that cannot be told, none."""
    if config.model == "mlp":
        return {}
    try:
        return _images(observation, config, without=())
    except (ConfigError, ModelSpecError):  # the model refuses the environment, with the reason
        return {}


def _images(observation: Sequence[LeafSpec], config: ModelConfig, without: Collection[int]) -> dict[int, ImageLayout]:
    """Returns the layouts of the leaves that are images, by index."""
    layouts = config.image_layouts
    images: dict[int, ImageLayout | None] = {}
    for path, index in _places("image_layout", layouts, observation).items():
        told = f"{path}={layouts[path]}"
        require(index not in without, "image_layout", told, "the leaf has an encoder of your own")
        images[index] = _image_as_told(observation[index], layouts[path], told)
    for index, leaf in enumerate(observation):
        if index not in images and index not in without:
            by_name = len(observation) == 1 and config.model in ("shallow", "deep")
            images[index] = _only_image(leaf, config.model) if by_name else find_image(leaf)
    return {index: image for index, image in images.items() if image is not None}


def _image_as_told(leaf: LeafSpec, axes: str, told: str) -> ImageLayout | None:
    """Returns the layout `axes` of the leaf, None for "flat". `told`: the entry of image_layout, for messages."""
    if axes == "flat":
        return None
    what = describe_leaf(leaf)
    require(leaf.num_categories == 0, "image_layout", told, f"the leaf {what} holds categories, which are no image")
    num_axes = len(leaf.row_shape)
    require(
        len(axes) == num_axes, "image_layout", told, f"must have a letter for each of the {num_axes} axes of {what}"
    )
    return ImageLayout.from_axes(axes, leaf.row_shape)


def _only_image(leaf: LeafSpec, model: str) -> ImageLayout:
    """Returns the layout of the only leaf for the network `model`, which was chosen by name."""
    image = None if leaf.num_categories > 0 else ImageLayout.of(leaf)
    if image is None:
        raise ModelSpecError(
            f"--model {model} takes an image [H, W], [C, H, W] or [H, W, C], or a stack of them, with "
            f"fewer channels than rows and columns, not the leaf {describe_leaf(leaf)}: {_layout_hint(leaf)}, or use "
            "--model mlp"
        )
    return image


def _encoder(leaf: LeafSpec, image: ImageLayout | None, config: ModelConfig) -> Torso:
    if image is None:
        return CategoryTorso(leaf) if leaf.num_categories > 0 else MLPTorso([leaf], config.hidden_sizes)
    if config.model == "deep":
        return DeepTorso(image)
    if min(image.height, image.width) >= ShallowTorso.smallest_side:
        return ShallowTorso(image)
    if config.model == "shallow":
        side = ShallowTorso.smallest_side
        raise ModelSpecError(
            f"--model shallow needs images of at least {side}x{side}, the leaf {describe_leaf(leaf)} is smaller: use "
            "--model auto, deep or mlp"
        )
    return SmallTorso(image)


def _places(setting: str, paths: Iterable[str], observation: Sequence[LeafSpec]) -> dict[str, int]:
    """Returns the index of the leaf of each path; "." is the only leaf."""
    known = [leaf.path for leaf in observation]
    places = {}
    for path in paths:
        if path in known:
            places[path] = known.index(path)
        elif path == "." and len(known) == 1:
            places[path] = 0
        else:
            names = ", ".join(repr(_name(leaf)) for leaf in observation)
            raise ConfigError(f"{setting} = {path!r}: there is no such leaf; the observation has {names}")
    return places


def _layout_hint(leaf: LeafSpec) -> str:
    name = _name(leaf)
    axes = {2: ("hw",), 3: ("hwc", "chw"), 4: ("khwc", "kchw")}.get(len(leaf.row_shape), ())
    layouts = f"--image-layout {' or '.join(f'{name}={each}' for each in axes)} names the axes, " if axes else ""
    return f"{layouts}--image-layout {name}=flat takes it as a vector, --encoder {name}=module:Class uses your encoder"


def _name(leaf: LeafSpec) -> str:
    """Returns the name of the leaf in settings."""
    return leaf.path or "."


def _listed(observation: Sequence[LeafSpec]) -> str:
    return ", ".join(map(describe_leaf, observation))
