"""The action mask among the leaves of an observation."""

from collections.abc import Sequence

from torch import Tensor

from kubebeast_common.spec.leaves import LeafSpec, describe_leaf
from kubebeast_learner.distributions import ActionDistribution
from kubebeast_learner.errors import ModelSpecError
from kubebeast_learner.models.base import ModelInputs


class ActionMask:
    """The action mask of an observation, removed from a model's inputs and applied to its policy_logits."""

    def __init__(self, observation: Sequence[LeafSpec], distribution: ActionDistribution) -> None:
        """Finds the mask, if there is one, among the leaves. Raises ModelSpecError if its size does not fit."""
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
        """Returns the inputs without the mask."""
        if self._index is None:
            return inputs
        leaves = inputs.observation
        return inputs._replace(observation=leaves[: self._index] + leaves[self._index + 1 :])

    def apply(self, policy_logits: Tensor, inputs: ModelInputs) -> Tensor:
        """Returns policy_logits [T, B, A] with -inf for the categories that the mask in `inputs` forbids."""
        if self._index is None:
            return policy_logits
        return self._distribution.masked(policy_logits, inputs.observation[self._index])


def data_leaves(observation: Sequence[LeafSpec]) -> list[LeafSpec]:
    """Returns the leaves that `ActionMask.without` keeps."""
    return [leaf for leaf in observation if not leaf.is_action_mask]
