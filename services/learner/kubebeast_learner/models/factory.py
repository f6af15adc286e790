"""Construction of the model for an environment's observation and action leaves."""

from collections.abc import Sequence

from kubebeast_common.spec.leaves import LeafSpec, describe_leaf
from kubebeast_learner.config import ModelConfig
from kubebeast_learner.config.learning import InputChoice
from kubebeast_learner.distributions import ActionDistribution
from kubebeast_learner.errors import ModelSpecError
from kubebeast_learner.models.action_mask import ActionMask, data_leaves
from kubebeast_learner.models.actor_critic import ActorCritic
from kubebeast_learner.models.base import Model
from kubebeast_learner.models.core import Core, LSTMCore
from kubebeast_learner.models.initialisation import initialise_orthogonally
from kubebeast_learner.models.scales.observation import make_normaliser
from kubebeast_learner.models.torsos.base import InputKind, Torso
from kubebeast_learner.models.torsos.choice import make_torso
from kubebeast_learner.models.user import make_user_model


def make_model(
    observation: Sequence[LeafSpec], action: Sequence[LeafSpec], config: ModelConfig, num_tasks: int = 1
) -> Model:
    """Builds a model. Its initial weights are drawn from the global generator (torch.manual_seed).

    Args:
        observation: leaves of the observation.
        action: leaves of the action.
        config: settings of the model.
        num_tasks: number of tasks that the model is trained on.

    Raises:
        ModelSpecError: if the chosen model cannot take a leaf, which the message names, or if a user's model breaks its
            contract.
        ConfigError: if a user's model cannot be loaded or does not take its options, or if a setting for a single leaf
            is wrong.
    """
    distribution = ActionDistribution.of(action, config.bounded_actions)
    action_mask = ActionMask(observation, distribution)
    model: Model
    if ":" in config.model:
        if config.normalise_values:
            raise ModelSpecError(f"normalise_values = True: model = {config.model!r} has a value head of its own")
        model = make_user_model(config, observation, distribution, action_mask, num_tasks)
    else:
        model = _make_built_in(config, observation, distribution, action_mask, num_tasks)
    model.normaliser = make_normaliser(config, observation, _kinds(model, observation))
    model.observation_names = list(map(describe_leaf, observation))
    return model


def _make_built_in(
    config: ModelConfig,
    observation: Sequence[LeafSpec],
    distribution: ActionDistribution,
    action_mask: ActionMask,
    num_tasks: int,
) -> ActorCritic:
    if config.task_input and num_tasks == 1:
        raise ModelSpecError("task_input = True: there is one task, task_shares names several")
    data = data_leaves(observation)
    if len(data) == 0:
        raise ModelSpecError("the observation has no leaf: a model needs at least one")
    name, torso = make_torso(data, config)

    # The inputs of each network as in the original: arXiv:1802.01561, figure 3, and TorchBeast.
    reward_input = _is_on(config.reward_input, name in ("shallow", "deep"))
    last_action_input = _is_on(config.last_action_input, name == "shallow")
    core_input_size = torso.output_size + reward_input + last_action_input * distribution.num_features
    core_input_size += config.task_input * num_tasks
    core = _make_core(name, torso, core_input_size, config)
    value_torso = make_torso(data, config)[1] if config.separate_baseline else None
    value_core = _make_core(name, torso, core_input_size, config) if config.separate_baseline else None
    model = ActorCritic(
        torso,
        core,
        distribution,
        action_mask,
        value_torso=value_torso,
        value_core=value_core,
        reward_input=reward_input,
        last_action_input=last_action_input,
        task_input=config.task_input,
        log_std_init=config.log_std_init,
        normalise_values=config.normalise_values,
        num_tasks=num_tasks,
    )
    reads_interleaved = iter(torso.reads_interleaved(data))
    model.interleaved = [not leaf.is_action_mask and next(reads_interleaved) for leaf in observation]
    if config.initialisation == "orthogonal":
        initialise_orthogonally(model)
    return model


def describe_inputs(model: Model, observation: Sequence[LeafSpec]) -> str:
    """Returns a readable summary of the leaves and their encodings."""
    if not isinstance(model, ActorCritic):
        return f"{', '.join(map(describe_leaf, observation))} as they are"
    observation = data_leaves(observation)
    taken = zip(observation, model.torso.describe(observation), strict=True)
    return ", ".join(f"{describe_leaf(leaf)} {what}" for leaf, what in taken)


def _kinds(model: Model, observation: Sequence[LeafSpec]) -> list[InputKind]:
    """Returns the kind of each leaf to the torso of a built-in network."""
    if not isinstance(model, ActorCritic):
        return ["other" for _ in observation]
    kinds = iter(model.torso.kinds(data_leaves(observation)))
    return ["other" if leaf.is_action_mask else next(kinds) for leaf in observation]


def _is_on(choice: InputChoice, auto: bool) -> bool:
    return auto if choice == "auto" else choice == "on"


def _make_core(name: str, torso: Torso, input_size: int, config: ModelConfig) -> Core:
    """Returns TorchBeast's LSTM: two layers as wide as their input after shallow, else one as wide as the torso."""
    if not config.use_lstm:
        return Core(input_size)
    return LSTMCore(input_size, input_size, 2) if name == "shallow" else LSTMCore(input_size, torso.output_size)
