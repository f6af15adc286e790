"""Choices among categories: Discrete spaces, the entries of MultiDiscrete ones and the bits of MultiBinary ones."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Categorical:
    """Softmax over num_categories for each element; the logits are those of one element after the other.

    A category with the logit -inf is masked: it has probability 0, and does not affect log-probabilities of others, the
    entropy or gradients. Elements are int64.
    """

    num_elements: int
    num_categories: int
    is_squashed = False

    def __str__(self) -> str:
        return f"{self.num_elements} x {self.num_categories} logits, one category an element, the largest is greedy"

    @property
    def num_logits(self) -> int:
        return self.num_elements * self.num_categories

    @property
    def num_features(self) -> int:
        return self.num_logits

    def sample(self, logits: Tensor, generator: torch.Generator) -> Tensor:
        """Draws by the Gumbel-max trick, argmax of logits - log(Exp(1)), which never draws a masked category."""
        noise = torch.empty_like(logits).exponential_(generator=generator)
        return self._by_element(logits - noise.log_()).argmax(dim=-1)

    def mode(self, logits: Tensor) -> Tensor:
        return self._by_element(logits).argmax(dim=-1)

    def log_prob(self, logits: Tensor, elements: Tensor) -> Tensor:
        """Returns the log-probability, -inf if a masked category is chosen."""
        log_policy = F.log_softmax(self._by_element(logits), dim=-1)
        return log_policy.gather(-1, elements.long().unsqueeze(-1)).squeeze(-1).sum(dim=-1)

    def entropy(self, logits: Tensor) -> Tensor:
        log_policy = F.log_softmax(self._by_element(logits), dim=-1)
        # 0 * -inf is NaN: the lowest number keeps the terms of masked categories, and their gradients, at 0.
        policy, log_policy = log_policy.exp(), log_policy.clamp(min=torch.finfo(log_policy.dtype).min)
        return -(policy * log_policy).sum(dim=(-2, -1))

    def masked(self, logits: Tensor, mask: Tensor) -> Tensor:
        """Returns the logits with -inf for each false element of mask, bool [*, L].

        Elements without any allowed category stay unmasked.
        """
        allowed = self._by_element(mask)
        return logits.masked_fill(~(allowed | ~allowed.any(dim=-1, keepdim=True)).flatten(-2), -torch.inf)

    def features(self, elements: Tensor) -> Tensor:
        """Returns one-hot categories."""
        return F.one_hot(elements.long(), self.num_categories).flatten(-2).float()

    def _by_element(self, logits: Tensor) -> Tensor:
        """Returns [*, E, num_categories]."""
        return logits.reshape(*logits.shape[:-1], self.num_elements, self.num_categories)
