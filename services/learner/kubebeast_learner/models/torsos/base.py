"""The interfaces of torsos and of users' encoders."""

from collections.abc import Sequence
from typing import ClassVar, Literal, Protocol

from torch import Tensor, nn

from kubebeast_common.spec.leaves import LeafSpec

InputKind = Literal["numbers", "cells", "pixels", "image", "other"]
"""Kind of a leaf to a torso: numbers, a small or a large image of bytes, an image of other numbers, or anything else,
which has a scale."""


class Torso(nn.Module):
    """A map from leaves of an observation, [T, B, *row_shape] each, to float32 features [T, B, output_size], each row
    independent of the others. The leaves are the positional arguments of `forward`, in the order of the observation.
    """

    supports_bf16: ClassVar[bool] = False
    """True if bfloat16 arithmetic is faster and accurate enough."""
    output_size: int

    @property
    def low_precision_part(self) -> nn.Module | None:
        """The part that may compute in bfloat16; None if there is none."""
        return self if self.supports_bf16 else None

    def reads_interleaved(self, observation: Sequence[LeafSpec]) -> list[bool]:
        """Returns True for each leaf that should have the frames of its stack innermost in memory."""
        return [False for _ in observation]

    def kinds(self, observation: Sequence[LeafSpec]) -> list[InputKind]:
        """Returns the kind of each leaf to the torso, which takes it as it is or normalized."""
        return ["other" for _ in observation]

    def describe(self, observation: Sequence[LeafSpec]) -> list[str]:
        """Returns a readable description of the encoding of each leaf."""
        raise NotImplementedError


class Encoder(Protocol):
    """The interface of a user's encoder of one leaf: `module:Class`, built as `Class(leaf, **options)`.

    The class is also a torch.nn.Module.
    """

    output_size: int
    """Number of features of a row."""

    def __call__(self, rows: Tensor) -> Tensor:
        """Maps rows to features.

        Args:
            rows: [T, B, *row_shape] in the leaf's dtype.

        Returns:
            float32 [T, B, output_size]; the features of a row depend on no other row.
        """
        ...
