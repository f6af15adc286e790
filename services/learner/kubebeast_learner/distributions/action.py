"""Joint distribution over the leaves of an action, with a model's policy_logits as parameters."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kubebeast_common.spec.leaves import Leaf, LeafSpec, describe_leaf
from kubebeast_learner.config.learning import BoundedActions
from kubebeast_learner.distributions.categorical import Categorical
from kubebeast_learner.distributions.normal import Normal, SquashedNormal
from kubebeast_learner.distributions.part import Part
from kubebeast_learner.errors import ModelSpecError


@dataclass(frozen=True, slots=True)
class ActionDistribution:
    """Independent parts, one per action leaf; log-probabilities and entropies are those of the whole action.

    Notation: * is any leading shape, such as [T, B]; A is the number of policy_logits of one row, one leaf after the
    other. Categories have logits; numbers have means and log standard deviations, which are also called policy_logits.
    An action is one tensor: int64 [*] for one Discrete choice, float32 [*, K] for all other spaces, the K elements of
    all leaves in order, categories as whole numbers. A draw has probabilities; an environment receives the `squashed`
    draw, which differs only in numbers that tanh keeps in their bounds. Immutable, without tensors: equal in every
    process, on any device.
    """

    parts: tuple[Part, ...]
    leaves: tuple[Leaf, ...]
    """Dtypes and shapes of the arrays that `to_leaves` returns."""

    @classmethod
    def of(cls, action: Sequence[LeafSpec], bounded_actions: BoundedActions = "clip") -> "ActionDistribution":
        """Returns the distribution for the action leaves of an environment.

        Args:
            action: Leaves of the environment's action, in order.
            bounded_actions: Bounding of numbers: "clip" by the env-server, or "tanh".

        Raises:
            ModelSpecError: The action has no leaf, or a leaf without a matching distribution.
        """
        if len(action) == 0:
            raise ModelSpecError("the action has no leaf: there is nothing to choose")
        parts = tuple(_part(leaf, bounded_actions) for leaf in action)
        return cls(parts, tuple(map(Leaf.of, action)))

    @property
    def num_logits(self) -> int:
        """Number of policy_logits of one row (A)."""
        return sum(part.num_logits for part in self.parts)

    @property
    def num_features(self) -> int:
        """Size of the last axis of `features`."""
        return sum(part.num_features for part in self.parts)

    @property
    def is_one_choice(self) -> bool:
        """True if the action is one Discrete choice."""
        return len(self.parts) == 1 and isinstance(self.parts[0], Categorical) and self.leaves[0].shape == ()

    @property
    def action_shape(self) -> tuple[int, ...]:
        """Shape of the action of one row: () for one Discrete choice, else (K,)."""
        return () if self.is_one_choice else (sum(part.num_elements for part in self.parts),)

    @property
    def action_dtype(self) -> torch.dtype:
        return torch.int64 if self.is_one_choice else torch.float32

    def none(self, *leading: int) -> Tensor:
        """Returns the action [*leading, *action_shape] before the first one: zeros."""
        return torch.zeros(*leading, *self.action_shape, dtype=self.action_dtype)

    def sample(self, policy_logits: Tensor, generator: torch.Generator) -> Tensor:
        """Draws actions [*, *action_shape] from float32 [*, A], without gradient."""
        return self._joined(lambda part, logits: part.sample(logits, generator), policy_logits)

    def mode(self, policy_logits: Tensor) -> Tensor:
        """Returns the most likely draw [*, *action_shape] of float32 [*, A]; for squashed numbers, the mean."""
        return self._joined(lambda part, logits: part.mode(logits), policy_logits)

    def log_prob(self, policy_logits: Tensor, action: Tensor) -> Tensor:
        """Returns the log-probability, or log-density, float32 [*], of drawn actions [*, *action_shape].

        Differentiable; -inf for a chosen category with the logit -inf.

        Raises:
            ValueError: The shape of `action` does not fit that of `policy_logits`.
        """
        if (*policy_logits.shape[:-1], *self.action_shape) != tuple(action.shape):
            expected = [*policy_logits.shape[:-1], *self.action_shape]
            raise ValueError(f"action has shape {list(action.shape)}, it must be {expected}")
        pairs = zip(self.parts, self._split_logits(policy_logits), self._split_action(action), strict=True)
        first, *others = [part.log_prob(logits, elements) for part, logits, elements in pairs]
        return sum(others, first)

    def squashed(self, drawn: Tensor) -> Tensor:
        """Returns the actions [*, *action_shape] that an environment receives for a draw: in [-1, 1] if tanh bounds."""
        if not self.num_squashed:
            return drawn
        pairs = zip(self.parts, self._split_action(drawn), strict=True)
        return torch.cat([elements.tanh() if part.is_squashed else elements for part, elements in pairs], dim=-1)

    @property
    def num_squashed(self) -> int:
        """Number of elements of an action that do not determine their draw."""
        return sum(part.num_elements for part in self.parts if part.is_squashed)

    @property
    def record_size(self) -> int:
        """Size of the last axis of `record`."""
        return self.num_logits + self.num_squashed

    def record(self, policy_logits: Tensor, drawn: Tensor) -> Tensor:
        """Returns float32 [*, record_size]: data that a rollout keeps, in addition to the action, for `recall`."""
        if not self.num_squashed:
            return policy_logits
        pairs = zip(self.parts, self._split_action(drawn), strict=True)
        return torch.cat([policy_logits, *(elements for part, elements in pairs if part.is_squashed)], dim=-1)

    def recall(self, record: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
        """Returns policy_logits [*, A] and the draw from them, given a record and an environment's action."""
        if not self.num_squashed:
            return record, action
        sizes = [part.num_elements for part in self.parts if part.is_squashed]
        policy_logits, *kept = torch.split(record, [self.num_logits, *sizes], dim=-1)
        pairs = zip(self.parts, self._split_action(action), strict=True)
        drawn = [kept.pop(0) if part.is_squashed else elements for part, elements in pairs]
        return policy_logits.contiguous(), torch.cat(drawn, dim=-1)

    def entropy(self, policy_logits: Tensor) -> Tensor:
        """Returns the entropy, float32 [*], in nats; negative for numbers that are nearly certain.

        Differentiable, and finite with logits of -inf.
        """
        pairs = zip(self.parts, self._split_logits(policy_logits), strict=True)
        first, *others = [part.entropy(logits) for part, logits in pairs]
        return sum(others, first)

    def masked(self, policy_logits: Tensor, mask: Tensor) -> Tensor:
        """Returns policy_logits [*, A] with -inf for categories that bool [*, num_categories] forbids.

        A choice without any allowed category stays unmasked: the action of such a row is not used.
        """
        pieces = []
        sizes = [part.num_logits for part in self.parts if isinstance(part, Categorical)]
        masks = iter(torch.split(mask, sizes, dim=-1))
        for part, logits in zip(self.parts, self._split_logits(policy_logits), strict=True):
            pieces.append(part.masked(logits, next(masks)) if isinstance(part, Categorical) else logits)
        return torch.cat(pieces, dim=-1)

    @property
    def num_categories(self) -> int:
        """Size of an action mask: the number of categories of all choices."""
        return sum(part.num_logits for part in self.parts if isinstance(part, Categorical))

    def features(self, action: Tensor) -> Tensor:
        """Returns float32 [*, num_features]: actions as inputs of a network, categories one-hot."""
        elements = self._split_action(action)
        return torch.cat([part.features(x) for part, x in zip(self.parts, elements, strict=True)], dim=-1)

    def to_leaves(self, action: Tensor) -> list[NDArray[Any]]:
        """Returns one C-contiguous array [*, *shape] of the leaf's dtype per action leaf, for actions on any device."""
        on_cpu = action.cpu()
        return [
            np.ascontiguousarray(elements.numpy(), leaf.dtype).reshape(*elements.shape[:-1], *leaf.shape)
            for leaf, elements in zip(self.leaves, self._split_action(on_cpu), strict=True)
        ]

    def from_leaves(self, leaves: Sequence[NDArray[Any]]) -> Tensor:
        """Returns the actions for arrays of `to_leaves`, on the CPU."""
        if self.is_one_choice:
            return torch.from_numpy(leaves[0]).long()
        pieces = [
            array.reshape(*array.shape[: array.ndim - len(leaf.shape)], -1).astype(np.float32, copy=False)
            for leaf, array in zip(self.leaves, leaves, strict=True)
        ]
        return torch.from_numpy(np.concatenate(pieces, axis=-1))

    def _joined(self, choose: Callable[[Part, Tensor], Tensor], policy_logits: Tensor) -> Tensor:
        chosen = [choose(part, x) for part, x in zip(self.parts, self._split_logits(policy_logits), strict=True)]
        return chosen[0].squeeze(-1) if self.is_one_choice else torch.cat([x.float() for x in chosen], dim=-1)

    def _split_logits(self, policy_logits: Tensor) -> Sequence[Tensor]:
        return torch.split(policy_logits, [part.num_logits for part in self.parts], dim=-1)

    def _split_action(self, action: Tensor) -> Sequence[Tensor]:
        """Returns [*, E] for every part."""
        if self.is_one_choice:
            return [action.unsqueeze(-1)]
        return torch.split(action, [part.num_elements for part in self.parts], dim=-1)


def _part(leaf: LeafSpec, bounded_actions: BoundedActions) -> Part:
    num_elements = int(np.prod(leaf.shape, dtype=np.int64))
    if num_elements == 0:
        raise ModelSpecError(f"the action leaf {describe_leaf(leaf)} has no elements: there is nothing to choose")
    if leaf.num_categories > 0:
        return Categorical(num_elements, leaf.num_categories)
    if np.dtype(leaf.dtype).kind != "f":
        raise ModelSpecError(
            f"the action leaf {describe_leaf(leaf)} holds whole numbers without categories: make it Discrete, "
            "MultiDiscrete, MultiBinary or a Box of floats with a wrapper"
        )
    return SquashedNormal(num_elements) if leaf.bounded and bounded_actions == "tanh" else Normal(num_elements)
