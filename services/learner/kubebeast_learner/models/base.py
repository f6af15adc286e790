"""What every model is: a torso over the observations, a recurrent or empty core, a policy head and a value head.

Notation: T rows in time, B environments, A actions; every input is time-major, T may be 1.
"""

from typing import ClassVar, NamedTuple, Protocol

import torch
from torch import Tensor, nn

from kubebeast_learner.models.core import Core, CoreState, pack_core_state, unpack_core_state


class LeafSpec(Protocol):
    """Shape and dtype of one leaf of an observation or action structure; kubebeast_native.LeafSpec is one."""

    @property
    def path(self) -> str: ...
    @property
    def dtype(self) -> str: ...
    @property
    def frame_stack(self) -> int: ...
    @property
    def num_categories(self) -> int: ...
    @property
    def row_shape(self) -> tuple[int, ...]: ...


class ModelSpecError(ValueError):
    """A model cannot take these observations or actions; the message names the leaf and what to use instead."""


class ModelInputs(NamedTuple):
    observation: tuple[Tensor, ...]
    """One tensor a leaf, [T, B, *row_shape], of the leaf's dtype."""
    reward: Tensor
    """float32 [T, B]: received on arrival at the row, not clipped; models clip it to [-1, 1]."""
    last_action: Tensor
    """int64 [T, B]: the action that led to the row."""
    is_first: Tensor
    """bool [T, B]: an episode starts with the row; core_state is zeroed before it."""


class ModelOutput(NamedTuple):
    policy_logits: Tensor
    """float32 [T, B, A]."""
    baseline: Tensor
    """float32 [T, B]: the value estimate V(x_t)."""


class Torso(nn.Module):
    """Maps ModelInputs to float32 features [T, B, output_size], each row on its own."""

    supports_bf16: ClassVar[bool] = False
    """Whether bfloat16 arithmetic is faster and accurate enough here."""
    output_size: int


class Model(nn.Module):
    """An actor-critic model. Only the torso may run in low precision: core and heads always compute in float32."""

    def __init__(self, torso: Torso, core: Core, num_actions: int) -> None:
        super().__init__()
        self.torso = torso
        self.core = core
        self.policy = nn.Linear(core.output_size, num_actions)
        self.baseline = nn.Linear(core.output_size, 1)
        self.num_actions = num_actions

    def forward(self, inputs: ModelInputs, core_state: CoreState) -> tuple[ModelOutput, CoreState]:
        """Runs T rows of B environments; core_state is the state before row 0, its is_first not yet applied."""
        features = self.torso(inputs)
        with torch.autocast(features.device.type, enabled=False):
            features, core_state = self.core(features, inputs.is_first, core_state)
            policy_logits = self.policy(features)
            baseline = self.baseline(features).squeeze(-1)
        return ModelOutput(policy_logits, baseline), core_state

    def initial_state(self, batch_size: int) -> CoreState:
        """Zeros for batch_size environments, on the model's device; () without a recurrent core."""
        weight = self.policy.weight
        return tuple(weight.new_zeros(n, batch_size, size) for n, size in self.core.state_shapes)

    @property
    def core_state_size(self) -> int:
        """Numbers of one environment's core state (S); 0 without a recurrent core."""
        return sum(num_layers * size for num_layers, size in self.core.state_shapes)

    def pack_core_state(self, core_state: CoreState) -> Tensor:
        """float32 [B, S] from the state tensors."""
        return pack_core_state(core_state)

    def unpack_core_state(self, packed: Tensor) -> CoreState:
        """The state tensors from float32 [B, S]."""
        return unpack_core_state(packed, self.core.state_shapes)
