"""Distribution of the elements of one action leaf."""

from typing import Protocol

import torch
from torch import Tensor


class Part(Protocol):
    """Distribution of E independent elements with L parameters. Immutable, without tensors.

    Notation: * is any leading shape, such as [T, B].
    """

    @property
    def num_elements(self) -> int:
        """Number of elements (E)."""

    @property
    def num_logits(self) -> int:
        """Number of parameters (L)."""

    @property
    def num_features(self) -> int:
        """Size of the last axis of `features`."""

    @property
    def is_squashed(self) -> bool:
        """True if an environment receives tanh of the elements."""

    def sample(self, logits: Tensor, generator: torch.Generator) -> Tensor:
        """Draws elements [*, E] from float32 [*, L], without gradient."""

    def mode(self, logits: Tensor) -> Tensor:
        """Returns the most likely elements [*, E] of float32 [*, L]."""

    def log_prob(self, logits: Tensor, elements: Tensor) -> Tensor:
        """Returns the joint log-probability, or density, float32 [*], of elements [*, E]. Differentiable in logits."""

    def entropy(self, logits: Tensor) -> Tensor:
        """Returns the joint entropy, float32 [*], in nats. Differentiable."""

    def features(self, elements: Tensor) -> Tensor:
        """Returns float32 [*, num_features]: elements [*, E] of an environment's action, as inputs of a network."""
