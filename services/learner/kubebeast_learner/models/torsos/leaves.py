"""The torso of an observation whose leaves are of different kinds: an encoder for each, and a layer that joins them."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from kubebeast_learner.models.torsos.base import Torso
from kubebeast_learner.spec import LeafSpec


class LeavesTorso(Torso):
    """Concatenates what the encoders make of their leaves; a ReLU layer as wide as the widest of them joins it.

    Without that layer the logits would be a sum of what each leaf says alone: what an image means could not depend on
    what a vector beside it says.
    """

    def __init__(self, encoders: Sequence[Torso]) -> None:
        """encoders: one for each leaf of the observation, in its order."""
        super().__init__()
        self.encoders = nn.ModuleList(encoders)
        self.output_size = max(encoder.output_size for encoder in encoders)
        self.join = nn.Linear(sum(encoder.output_size for encoder in encoders), self.output_size)

    @property
    def low_precision_part(self) -> nn.Module | None:
        """The encoders that may compute in bfloat16."""
        parts = [part for encoder in self._encoders() if (part := encoder.low_precision_part) is not None]
        return nn.ModuleList(parts) if parts else None

    def reads_interleaved(self, observation: Sequence[LeafSpec]) -> list[bool]:
        """As in Torso."""
        pairs = zip(self._encoders(), observation, strict=True)
        return [encoder.reads_interleaved([leaf])[0] for encoder, leaf in pairs]

    def describe(self, observation: Sequence[LeafSpec]) -> list[str]:
        """As in Torso."""
        pairs = zip(self._encoders(), observation, strict=True)
        return [encoder.describe([leaf])[0] for encoder, leaf in pairs]

    def forward(self, *leaves: Tensor) -> Tensor:
        """float32 [T, B, output_size] from [T, B, *row_shape] each."""
        features = [_encode(encoder, leaf) for encoder, leaf in zip(self._encoders(), leaves, strict=True)]
        with torch.autocast(leaves[0].device.type, enabled=False):
            return F.relu_(self.join(torch.cat(features, dim=-1)))

    def _encoders(self) -> list[Torso]:
        return [encoder for encoder in self.encoders if isinstance(encoder, Torso)]


def _encode(encoder: Torso, leaf: Tensor) -> Tensor:
    """Outside autocast unless the encoder stands it."""
    if encoder.supports_bf16:
        return encoder(leaf)  # type: ignore[no-any-return]
    with torch.autocast(leaf.device.type, enabled=False):
        return encoder(leaf)  # type: ignore[no-any-return]
