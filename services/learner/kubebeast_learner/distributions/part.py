"""The distribution of the elements of one action leaf."""

from typing import Protocol

import torch
from torch import Tensor


class Part(Protocol):
    """E elements that are independent of each other, given their L parameters. Immutable, without tensors.

    Notation: * any leading shape, such as [T, B].
    """

    @property
    def num_elements(self) -> int:
        """E."""

    @property
    def num_logits(self) -> int:
        """L."""

    @property
    def num_features(self) -> int:
        """Size of what `features` returns."""

    def sample(self, logits: Tensor, generator: torch.Generator) -> Tensor:
        """Draws elements [*, E] from float32 [*, L]; without gradient."""

    def mode(self, logits: Tensor) -> Tensor:
        """The likeliest elements [*, E] of float32 [*, L]."""

    def log_prob(self, logits: Tensor, elements: Tensor) -> Tensor:
        """float32 [*]: log of the joint probability, or density, of elements [*, E]. Differentiable in logits."""

    def entropy(self, logits: Tensor) -> Tensor:
        """float32 [*]: joint entropy in nats. Differentiable."""

    def features(self, elements: Tensor) -> Tensor:
        """float32 [*, num_features]: elements [*, E] as a network takes them."""
