"""The policy head, which maps features to policy_logits."""

import torch
from torch import Tensor, nn

from kubebeast_learner.distributions import ActionDistribution, Categorical


class PolicyHead(nn.Linear):
    """Logits and means linear in the features, and learned standard deviations that are the same for all observations
    (Schulman et al. 2015, arXiv:1502.05477, section 7). The logarithms of the deviations begin at log_std_init.
    """

    def __init__(self, in_features: int, distribution: ActionDistribution, log_std_init: float = 0.0) -> None:
        parts = distribution.parts
        self._num_outputs = [x.num_logits if isinstance(x, Categorical) else x.num_elements for x in parts]
        self._num_deviations = [x.num_logits - n for x, n in zip(parts, self._num_outputs, strict=True)]
        super().__init__(in_features, sum(self._num_outputs))
        log_std = torch.full((sum(self._num_deviations),), log_std_init)
        self.log_std = nn.Parameter(log_std) if any(self._num_deviations) else None

    def forward(self, features: Tensor) -> Tensor:
        """Maps features [T, B, in_features] to float32 [T, B, A]."""
        outputs = super().forward(features)
        if self.log_std is None:
            return outputs
        log_std = self.log_std.expand(*outputs.shape[:-1], -1)
        pieces = torch.split(outputs, self._num_outputs, -1), torch.split(log_std, self._num_deviations, -1)
        return torch.cat([piece for pair in zip(*pieces, strict=True) for piece in pair], dim=-1)
