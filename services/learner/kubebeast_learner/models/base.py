"""What every model is to the rest of KubeBeast: inputs to policy_logits and baseline, with a core state in between.

Notation: T rows in time, B environments, A actions; every input is time-major, T may be 1.
"""

from abc import ABC, abstractmethod
from typing import NamedTuple, Protocol

from torch import Tensor, nn

from kubebeast_learner.models.core import CoreState, pack_core_state, unpack_core_state


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
    """A model and an environment do not fit, or a model breaks its contract; the message says what to change."""


class ModelInputs(NamedTuple):
    """T rows of B environments; row t is what was there before action t."""

    observation: tuple[Tensor, ...]
    """One tensor a leaf, [T, B, *row_shape], of the leaf's dtype."""
    reward: Tensor
    """float32 [T, B]: received on arrival at the row, not clipped; models clip it to [-1, 1]."""
    last_action: Tensor
    """int64 [T, B]: the action that led to the row."""
    is_first: Tensor
    """bool [T, B]: an episode starts with the row; core_state is reset before it."""


class ModelOutput(NamedTuple):
    """What a model says of T rows of B environments."""

    policy_logits: Tensor
    """float32 [T, B, A]."""
    baseline: Tensor
    """float32 [T, B]: the value estimate V(x_t)."""


class Model(nn.Module, ABC):
    """What acts and what is trained."""

    num_actions: int
    state_shapes: tuple[tuple[int, int], ...] = ()
    """(num_layers, size) of every tensor of the core state; () without a recurrent core."""

    @abstractmethod
    def forward(self, inputs: ModelInputs, core_state: CoreState) -> tuple[ModelOutput, CoreState]:
        """Runs T rows of B environments; core_state is the state before row 0, its is_first not yet applied."""

    @property
    def low_precision_part(self) -> nn.Module | None:
        """The part that gains from bfloat16 and stands it; the rest always computes in float32."""
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
        """float32 [B, S] from the state tensors."""
        return pack_core_state(core_state)

    def unpack_core_state(self, packed: Tensor) -> CoreState:
        """The state tensors from float32 [B, S]."""
        return unpack_core_state(packed, self.state_shapes)
