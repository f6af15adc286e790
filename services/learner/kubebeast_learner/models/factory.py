"""Chooses and builds the model for an environment's observation and action leaves."""

import logging
from collections.abc import Sequence

from kubebeast_learner.config import ModelConfig
from kubebeast_learner.config.learning import InputChoice
from kubebeast_learner.distributions import ActionDistribution
from kubebeast_learner.models.action_mask import ActionMask, data_leaves
from kubebeast_learner.models.actor_critic import ActorCritic, Torso
from kubebeast_learner.models.base import Model
from kubebeast_learner.models.core import Core, LSTMCore
from kubebeast_learner.models.deep import DeepTorso
from kubebeast_learner.models.image import ImageLayout
from kubebeast_learner.models.initialisation import initialise_orthogonally
from kubebeast_learner.models.mlp import MLPTorso, flat_size
from kubebeast_learner.models.shallow import ShallowTorso
from kubebeast_learner.models.user import make_user_model
from kubebeast_learner.spec import LeafSpec, ModelSpecError, describe_leaf

logger = logging.getLogger(__name__)


def make_model(observation: Sequence[LeafSpec], action: Sequence[LeafSpec], config: ModelConfig) -> Model:
    """Builds a model, its initial weights drawn from the global generator (torch.manual_seed).

    Raises ModelSpecError, which names the leaf, for observations or actions that the chosen model cannot take, and for
    a user's model that breaks its contract; ConfigError for a user's model that cannot be loaded.
    """
    distribution = ActionDistribution.of(action, config.bounded_actions)
    action_mask = ActionMask(observation, distribution)
    if ":" in config.model:
        return make_user_model(config.model, observation, distribution, action_mask)
    observation = data_leaves(observation)
    if len(observation) == 0:
        raise ModelSpecError("the observation has no leaf: a model needs at least one")
    name = config.model
    if name == "auto":
        name = _choose(observation)

    # Which inputs each network has in the original: arXiv:1802.01561, figure 3, and TorchBeast.
    reward_input = _is_on(config.reward_input, name in ("shallow", "deep"))
    last_action_input = _is_on(config.last_action_input, name == "shallow")
    torso = _torso(name, observation, config)
    core_input_size = torso.output_size + reward_input + last_action_input * distribution.num_features
    core = _lstm(name, torso.output_size, core_input_size) if config.use_lstm else Core(core_input_size)
    model = ActorCritic(
        torso, core, distribution, action_mask, reward_input=reward_input, last_action_input=last_action_input
    )
    if config.initialisation == "orthogonal":
        initialise_orthogonally(model)
    return model


def describe_inputs(model: Model, observation: Sequence[LeafSpec]) -> str:
    """What becomes of every leaf, for people."""
    if not isinstance(model, ActorCritic):
        return f"{', '.join(map(describe_leaf, observation))} as they are"
    observation = data_leaves(observation)
    image: ImageLayout | None = getattr(model.torso, "image", None)
    if image is not None:
        return f"{describe_leaf(observation[0])} as an image of {image}"
    return ", ".join(f"{describe_leaf(leaf)} flattened to {flat_size(leaf):,} numbers" for leaf in observation)


def _is_on(choice: InputChoice, auto: bool) -> bool:
    return auto if choice == "auto" else choice == "on"


def _torso(name: str, observation: Sequence[LeafSpec], config: ModelConfig) -> Torso:
    if name == "shallow":
        return ShallowTorso(_image(observation, name, ShallowTorso.smallest_side))
    if name == "deep":
        return DeepTorso(_image(observation, name, DeepTorso.smallest_side))
    return MLPTorso(observation, config.hidden_sizes)


def _lstm(name: str, torso_size: int, input_size: int) -> LSTMCore:
    """As TorchBeast has it: behind shallow two layers as wide as their input, else one as wide as the torso."""
    return LSTMCore(input_size, input_size, 2) if name == "shallow" else LSTMCore(input_size, torso_size)


def _choose(observation: Sequence[LeafSpec]) -> str:
    """The network for `auto`. ModelSpecError where the mlp would flatten an image, a warning where it may be one."""
    images = [leaf for leaf in observation if _is_large(leaf) and leaf.dtype == "uint8"]
    if not images:
        if len(observation) == 1 and _is_large(observation[0]) and ImageLayout.of(observation[0]) is not None:
            logger.warning("%s is flattened: --model shallow takes it as an image", describe_leaf(observation[0]))
        return "mlp"
    if len(observation) == 1 and ImageLayout.of(images[0]) is not None:
        return "shallow"
    if len(observation) == 1:
        what = "has no axis that must be its channels"
    else:
        what = f"is one of {len(observation)} leaves ({', '.join(map(describe_leaf, observation))})"
    raise ModelSpecError(
        f"the image {describe_leaf(images[0])} {what}, and no built-in network takes it as an image: --model mlp "
        "flattens it, module:Class is a network of your own"
    )


def _is_large(leaf: LeafSpec) -> bool:
    """Whether a leaf of numbers spans two axes that convolutions could look at."""
    frame = leaf.row_shape[1:] if leaf.frame_stack > 1 else leaf.row_shape
    return leaf.num_categories == 0 and sum(size >= ShallowTorso.smallest_side for size in frame) >= 2


def _image(observation: Sequence[LeafSpec], model: str, smallest_side: int) -> ImageLayout:
    if len(observation) != 1:
        raise ModelSpecError(
            f"--model {model} takes one image, the observation has {len(observation)} leaves "
            f"({', '.join(map(describe_leaf, observation))}): use --model mlp"
        )
    leaf = observation[0]
    image = ImageLayout.of(leaf)
    if image is None or leaf.num_categories > 0:
        raise ModelSpecError(
            f"--model {model} takes an image [H, W], [C, H, W] or [H, W, C], or a stack of them, whose channels are "
            f"fewer than its rows and columns, not the leaf {describe_leaf(leaf)}: use --model mlp"
        )
    if min(image.height, image.width) < smallest_side:
        raise ModelSpecError(
            f"--model {model} needs images of at least {smallest_side}x{smallest_side}, the leaf {describe_leaf(leaf)} "
            "is smaller: use --model mlp or --model deep"
        )
    return image
