"""The interface of models: inputs and a core state go in, policy_logits, baseline and a new core state come out.

Notation: T rows in time, B environments, A policy_logits; every input is time-major, T may be 1.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from kubebeast_learner.distributions import ActionDistribution
from kubebeast_learner.models.core import CoreState
from kubebeast_learner.models.popart import PopArt
from kubebeast_learner.models.scales.observation import ObservationNormaliser


class ModelInputs(NamedTuple):
    """T rows of B environments; row t precedes action t."""

    observation: tuple[Tensor, ...]
    """One tensor per leaf, [T, B, *row_shape], in the leaf's dtype."""
    reward: Tensor
    """float32 [T, B]: reward received on arrival at the row, not clipped; models clip it to [-1, 1]."""
    last_action: Tensor
    """[T, B, *action_shape]: action that led to the row, zeros if is_first; int64 [T, B] for one Discrete choice."""
    is_first: Tensor
    """bool [T, B]: True if an episode starts with the row; core_state is reset before it."""
    task: Tensor | None = None
    """int64 [T, B]: index in task_shares of the row's task; None if there is one task."""

    def map(self, function: Callable[..., Tensor], *others: "ModelInputs") -> "ModelInputs":
        """Returns inputs of function(tensor, *its namesakes in others) for every tensor."""
        each = (self, *others)
        return ModelInputs(
            observation=tuple(map(function, *(inputs.observation for inputs in each))),
            reward=function(*(inputs.reward for inputs in each)),
            last_action=function(*(inputs.last_action for inputs in each)),
            is_first=function(*(inputs.is_first for inputs in each)),
            task=None if self.task is None else function(*(inputs.task for inputs in each)),
        )


class ModelOutput(NamedTuple):
    """The output of a model for T rows of B environments."""

    policy_logits: Tensor
    """float32 [T, B, A]: parameters of the policy's distribution over actions; the logits of one Discrete choice."""
    baseline: Tensor
    """float32 [T, B]: value estimate V(x_t)."""


class Model(nn.Module, ABC):
    """Base class of the networks that act and are trained."""

    distribution: ActionDistribution
    """The distribution that policy_logits parametrize."""
    num_tasks: int = 1
    """Number of tasks that the model is trained on; if there are several, inputs have a task."""
    state_shapes: tuple[tuple[int, int], ...] = ()
    """(num_layers, size) of every tensor of the core state; () without a recurrent core."""
    normaliser: ObservationNormaliser | None
    """Normalization of the observation before the network; None if not configured."""
    interleaved: Sequence[bool] = ()
    """For each leaf of the observation, True if its tensors [T, B, k, *shape] are read fastest with the k frames
    innermost in memory; () if none are.
    """
    observation_names: Sequence[str] = ()
    """Readable names of the leaves of the observation."""

    def __init__(self) -> None:
        super().__init__()
        self.normaliser = None

    @abstractmethod
    def forward(self, inputs: ModelInputs, core_state: CoreState) -> tuple[ModelOutput, CoreState]:
        """Runs T rows of B environments.

        Args:
            inputs: the rows, [T, B, ...] each.
            core_state: state before row 0, to which is_first of that row is not yet applied.

        Returns:
            The output for all rows, and the core state after the last one.
        """

    def normalised(self, inputs: ModelInputs) -> ModelInputs:
        """Returns the inputs with a normalized observation, if the model has a normalizer."""
        if self.normaliser is None:
            return inputs
        return inputs._replace(observation=self.normaliser(inputs.observation))

    def with_frames_first(self, observation: Iterable[Tensor], axis: int) -> tuple[Tensor, ...]:
        """Returns views of the leaves that have their frames at `axis`.

        Args:
            observation: one tensor per leaf; if the leaf is interleaved, its last dimension is the frames.
            axis: dimension of the frames in the result.
        """
        if not self.interleaved:
            return tuple(observation)
        pairs = zip(observation, self.interleaved, strict=True)
        return tuple(leaf.movedim(-1, axis) if interleaved else leaf for leaf, interleaved in pairs)

    @property
    def low_precision_part(self) -> nn.Module | None:
        """The part that is faster and accurate enough in bfloat16; the rest always computes in float32."""
        return None

    @property
    def popart(self) -> PopArt | None:
        """The value head if it normalizes its targets, else None."""
        return None

    def initial_state(self, batch_size: int) -> CoreState:
        """Returns zeros for batch_size environments, on the model's device; () without a recurrent core."""
        weight = next(self.parameters())
        return tuple(weight.new_zeros(num_layers, batch_size, size) for num_layers, size in self.state_shapes)

    @property
    def core_state_size(self) -> int:
        """Size S of one environment's core state, in numbers; 0 without a recurrent core."""
        return sum(num_layers * size for num_layers, size in self.state_shapes)

    def pack_core_state(self, core_state: CoreState) -> Tensor:
        """Returns float32 [B, S], one row per environment, from the state tensors in order, layer by layer.

        The table of the inference threads and native rollouts use this format.
        """
        return torch.cat([tensor.transpose(0, 1).flatten(1) for tensor in core_state], dim=1)

    def unpack_core_state(self, packed: Tensor) -> CoreState:
        """Inverts `pack_core_state`.

        Raises:
            ValueError: if the width of `packed` is not that of the state.
        """
        if packed.ndim != 2 or packed.shape[1] != self.core_state_size:
            raise ValueError(
                f"packed core_state has shape {list(packed.shape)}, it must be [B, {self.core_state_size}]"
            )
        parts = torch.split(packed, [num_layers * size for num_layers, size in self.state_shapes], dim=1)
        return tuple(
            part.reshape(-1, *shape).transpose(0, 1).contiguous()
            for part, shape in zip(parts, self.state_shapes, strict=True)
        )
