"""The torso of an observation with leaves of different kinds: an encoder for each, and a layer that joins them."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from kubebeast_common.spec.leaves import LeafSpec
from kubebeast_learner.models.torsos.base import InputKind, Torso


class LeavesTorso(Torso):
    """Concatenated features of the encoders, joined by a ReLU layer as wide as the widest encoder.

    Without that layer the logits would be a sum of one term per leaf: the effect of an image could not depend on the
    vector beside it.
    """

    def __init__(self, encoders: Sequence[Torso]) -> None:
        """encoders: one for each leaf of the observation, in the same order."""
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
        """See `Torso.reads_interleaved`."""
        pairs = zip(self._encoders(), observation, strict=True)
        return [encoder.reads_interleaved([leaf])[0] for encoder, leaf in pairs]

    def kinds(self, observation: Sequence[LeafSpec]) -> list[InputKind]:
        """See `Torso.kinds`."""
        pairs = zip(self._encoders(), observation, strict=True)
        return [encoder.kinds([leaf])[0] for encoder, leaf in pairs]

    def describe(self, observation: Sequence[LeafSpec]) -> list[str]:
        """See `Torso.describe`."""
        pairs = zip(self._encoders(), observation, strict=True)
        return [encoder.describe([leaf])[0] for encoder, leaf in pairs]

    def forward(self, *leaves: Tensor) -> Tensor:
        """Maps leaves [T, B, *row_shape] to float32 [T, B, output_size]."""
        features = [_encode(encoder, leaf) for encoder, leaf in zip(self._encoders(), leaves, strict=True)]
        with torch.autocast(leaves[0].device.type, enabled=False):
            return F.relu_(self.join(torch.cat(features, dim=-1)))

    def _encoders(self) -> list[Torso]:
        return [encoder for encoder in self.encoders if isinstance(encoder, Torso)]


def _encode(encoder: Torso, leaf: Tensor) -> Tensor:
    """Runs the encoder, outside autocast unless it supports bfloat16."""
    if encoder.supports_bf16:
        return encoder(leaf)  # type: ignore[no-any-return]
    with torch.autocast(leaf.device.type, enabled=False):
        return encoder(leaf)  # type: ignore[no-any-return]
