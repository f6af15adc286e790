"""Models from a user's plain torch module, module:Class; docs/models.md states the contract.

__init__(observation: Sequence[LeafSpec], num_actions: int, **options): num_actions is the width of policy_logits
initial_state(batch_size: int) -> tuple[Tensor, ...]
forward(inputs: ModelInputs, core_state) -> (ModelOutput, core_state)
"""

from collections.abc import Sequence

from torch import nn

from kubebeast_common.spec.leaves import LeafSpec
from kubebeast_learner.config import ModelConfig
from kubebeast_learner.config.checks import parse_object
from kubebeast_learner.config.plugins import check_options, describe, load_object
from kubebeast_learner.distributions import ActionDistribution
from kubebeast_learner.errors import ModelSpecError
from kubebeast_learner.models.action_mask import ActionMask
from kubebeast_learner.models.base import Model, ModelInputs, ModelOutput
from kubebeast_learner.models.contract import check_contract
from kubebeast_learner.models.core import CoreState


class UserModel(Model):
    """A model around a user's `net`, which computes in float32 unless its own code does otherwise."""

    def __init__(
        self, net: nn.Module, distribution: ActionDistribution, action_mask: ActionMask, num_tasks: int
    ) -> None:
        super().__init__()
        self.net = net
        self.num_tasks = num_tasks
        self.distribution = distribution
        self._action_mask = action_mask
        self.state_shapes = tuple((len(tensor), tensor.shape[2]) for tensor in net.initial_state(1))  # type: ignore[operator]

    def forward(self, inputs: ModelInputs, core_state: CoreState) -> tuple[ModelOutput, CoreState]:
        """See `Model.forward`."""
        output, core_state = self.net(self.normalised(inputs), core_state)
        if self._action_mask.exists:  # other fields of the output stay
            output = output._replace(policy_logits=self._action_mask.apply(output.policy_logits, inputs))
        return output, core_state

    def initial_state(self, batch_size: int) -> CoreState:
        """Returns the user's initial state, on the model's device."""
        device = next(self.parameters()).device
        return tuple(tensor.to(device) for tensor in self.net.initial_state(batch_size))  # type: ignore[operator]


def make_user_model(
    config: ModelConfig,
    observation: Sequence[LeafSpec],
    distribution: ActionDistribution,
    action_mask: ActionMask,
    num_tasks: int,
) -> UserModel:
    """Builds and checks the model module:Class that `config` names.

    Raises ConfigError if it cannot be loaded or does not take its options, ModelSpecError if it cannot be built or
    breaks the contract.
    """
    name, options = config.model, parse_object("model_options", config.model_options)
    user_class = load_object("model", name)
    if not (isinstance(user_class, type) and issubclass(user_class, nn.Module)):
        raise ModelSpecError(f"{name} must be a subclass of torch.nn.Module, it is {user_class!r}")
    check_options("model_options", config.model_options, user_class, 2, options)
    class_name, num_actions = user_class.__name__, distribution.num_logits
    try:
        net = user_class(observation, num_actions, **options)
    except Exception as error:  # the user's code may raise anything
        raise ModelSpecError(f"{class_name}(observation, num_actions={num_actions}): {describe(error)}") from error
    check_contract(net, class_name, observation, distribution, num_tasks)
    return UserModel(net, distribution, action_mask, num_tasks)
