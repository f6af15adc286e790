"""What every torso is to the core behind it, and every encoder to the torso that joins it with others."""

from collections.abc import Sequence
from typing import ClassVar, Protocol

from torch import Tensor, nn

from kubebeast_learner.spec import LeafSpec


class Torso(nn.Module):
    """Maps leaves of an observation, [T, B, *row_shape] each, to float32 features [T, B, output_size], every row on its
    own. The leaves are the positional arguments of `forward`, in the order of the observation.
    """

    supports_bf16: ClassVar[bool] = False
    """Whether bfloat16 arithmetic is faster and accurate enough here."""
    output_size: int

    @property
    def low_precision_part(self) -> nn.Module | None:
        """The part that may compute in bfloat16."""
        return self if self.supports_bf16 else None

    def reads_interleaved(self, observation: Sequence[LeafSpec]) -> list[bool]:
        """For each leaf, whether the frames of its stack should lie innermost in memory."""
        return [False for _ in observation]

    def describe(self, observation: Sequence[LeafSpec]) -> list[str]:
        """For people, what each leaf is taken for."""
        raise NotImplementedError


class Encoder(Protocol):
    """What a module of one's own must be to encode one leaf: `module:Class`, built as `Class(leaf, **options)`.

    It is also a torch.nn.Module.
    """

    output_size: int
    """Numbers that a row becomes."""

    def __call__(self, rows: Tensor) -> Tensor:
        """Rows [T, B, *row_shape] of the leaf's dtype to float32 features [T, B, output_size]; no row sees another."""
        ...
