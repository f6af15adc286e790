"""The action mask among the leaves of an observation."""

from collections.abc import Sequence

from torch import Tensor

from kubebeast_learner.distributions import ActionDistribution
from kubebeast_learner.models.base import ModelInputs
from kubebeast_learner.spec import LeafSpec, ModelSpecError, describe_leaf


class ActionMask:
    """Takes the mask out of a model's inputs and applies it to its policy_logits, in acting and in training alike."""

    def __init__(self, observation: Sequence[LeafSpec], distribution: ActionDistribution) -> None:
        """Without a mask among the leaves it does nothing. ModelSpecError where there is one of another size."""
        self._distribution = distribution
        self._index = next((i for i, leaf in enumerate(observation) if leaf.is_action_mask), None)
        if self._index is not None and tuple(observation[self._index].shape) != (distribution.num_categories,):
            raise ModelSpecError(
                f"the action mask {describe_leaf(observation[self._index])} does not fit the action, which has "
                f"{distribution.num_categories} categories"
            )

    @property
    def exists(self) -> bool:
        return self._index is not None

    def without(self, inputs: ModelInputs) -> ModelInputs:
        """The inputs that say something of the observation."""
        if self._index is None:
            return inputs
        leaves = inputs.observation
        return inputs._replace(observation=leaves[: self._index] + leaves[self._index + 1 :])

    def apply(self, policy_logits: Tensor, inputs: ModelInputs) -> Tensor:
        """policy_logits [T, B, A], -inf where `inputs`, those of the whole observation, forbid a category."""
        if self._index is None:
            return policy_logits
        return self._distribution.masked(policy_logits, inputs.observation[self._index])


def data_leaves(observation: Sequence[LeafSpec]) -> list[LeafSpec]:
    """The leaves that `ActionMask.without` keeps."""
    return [leaf for leaf in observation if not leaf.is_action_mask]
