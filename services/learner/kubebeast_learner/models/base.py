"""What every model is to the rest of KubeBeast: inputs to policy_logits and baseline, with a core state in between.

Notation: T rows in time, B environments, A policy_logits; every input is time-major, T may be 1.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from kubebeast_learner.distributions import ActionDistribution
from kubebeast_learner.models.core import CoreState
from kubebeast_learner.models.normalisation import ObservationNormaliser
from kubebeast_learner.models.popart import PopArt


class ModelInputs(NamedTuple):
    """T rows of B environments; row t is what was there before action t."""

    observation: tuple[Tensor, ...]
    """One tensor a leaf, [T, B, *row_shape], of the leaf's dtype."""
    reward: Tensor
    """float32 [T, B]: received on arrival at the row, not clipped; models clip it to [-1, 1]."""
    last_action: Tensor
    """[T, B, *action_shape]: that led to the row, zeros where is_first; int64 [T, B] of one Discrete choice."""
    is_first: Tensor
    """bool [T, B]: an episode starts with the row; core_state is reset before it."""
    task: Tensor | None = None
    """int64 [T, B]: the task that the row belongs to, its place in task_shares; None where there is one task."""

    def map(self, function: Callable[..., Tensor], *others: "ModelInputs") -> "ModelInputs":
        """The inputs of function(tensor, *its namesakes in others) for every tensor."""
        each = (self, *others)
        return ModelInputs(
            observation=tuple(map(function, *(inputs.observation for inputs in each))),
            reward=function(*(inputs.reward for inputs in each)),
            last_action=function(*(inputs.last_action for inputs in each)),
            is_first=function(*(inputs.is_first for inputs in each)),
            task=None if self.task is None else function(*(inputs.task for inputs in each)),
        )


class ModelOutput(NamedTuple):
    """What a model says of T rows of B environments."""

    policy_logits: Tensor
    """float32 [T, B, A]: parameters of the policy's distribution over actions; of one Discrete choice, its logits."""
    baseline: Tensor
    """float32 [T, B]: the value estimate V(x_t)."""


class Model(nn.Module, ABC):
    """What acts and what is trained."""

    distribution: ActionDistribution
    """What policy_logits mean."""
    num_tasks: int = 1
    """Those that it is trained on; where there are several, inputs have a task."""
    state_shapes: tuple[tuple[int, int], ...] = ()
    """(num_layers, size) of every tensor of the core state; () without a recurrent core."""
    normaliser: ObservationNormaliser | None
    """What the observation goes through first, where that was chosen."""
    interleaved: Sequence[bool] = ()
    """For each leaf of the observation, whether its tensors [T, B, k, *shape] are read fastest where the k frames lie
    innermost in memory; () where none are.
    """

    def __init__(self) -> None:
        super().__init__()
        self.normaliser = None

    @abstractmethod
    def forward(self, inputs: ModelInputs, core_state: CoreState) -> tuple[ModelOutput, CoreState]:
        """Runs T rows of B environments; core_state is the state before row 0, its is_first not yet applied."""

    def normalised(self, inputs: ModelInputs) -> ModelInputs:
        """The inputs as the network sees them."""
        if self.normaliser is None:
            return inputs
        return inputs._replace(observation=self.normaliser(inputs.observation))

    def with_frames_first(self, observation: Iterable[Tensor], axis: int) -> tuple[Tensor, ...]:
        """The leaves of the observation as views whose frames are at `axis`; they come last where interleaved."""
        if not self.interleaved:
            return tuple(observation)
        pairs = zip(observation, self.interleaved, strict=True)
        return tuple(leaf.movedim(-1, axis) if interleaved else leaf for leaf, interleaved in pairs)

    @property
    def low_precision_part(self) -> nn.Module | None:
        """The part that gains from bfloat16 and stands it; the rest always computes in float32."""
        return None

    @property
    def popart(self) -> PopArt | None:
        """The value head, where it normalises what it is trained towards."""
        return None

    def initial_state(self, batch_size: int) -> CoreState:
        """Zeros for batch_size environments, on the model's device; () without a recurrent core."""
        weight = next(self.parameters())
        return tuple(weight.new_zeros(num_layers, batch_size, size) for num_layers, size in self.state_shapes)

    @property
    def core_state_size(self) -> int:
        """Numbers of one environment's core state (S); 0 without a recurrent core."""
        return sum(num_layers * size for num_layers, size in self.state_shapes)

    def pack_core_state(self, core_state: CoreState) -> Tensor:
        """float32 [B, S], a row an environment, from the state tensors in order, layer by layer.

        So the table of the inference threads and native rollouts hold it.
        """
        return torch.cat([tensor.transpose(0, 1).flatten(1) for tensor in core_state], dim=1)

    def unpack_core_state(self, packed: Tensor) -> CoreState:
        """The inverse of pack_core_state. ValueError when the width of `packed` is not that of the state."""
        if packed.ndim != 2 or packed.shape[1] != self.core_state_size:
            raise ValueError(
                f"packed core_state has shape {list(packed.shape)}, it must be [B, {self.core_state_size}]"
            )
        parts = torch.split(packed, [num_layers * size for num_layers, size in self.state_shapes], dim=1)
        return tuple(
            part.reshape(-1, *shape).transpose(0, 1).contiguous()
            for part, shape in zip(parts, self.state_shapes, strict=True)
        )
