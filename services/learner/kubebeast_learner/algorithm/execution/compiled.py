"""torch.compile for the forward and backward pass of an update, with eager code in reserve."""

import logging
from collections.abc import Callable, Hashable

import torch
from torch import Tensor

from kubebeast_learner.algorithm.losses import LossOutput
from kubebeast_learner.algorithm.rollout import Rollout, layout_of
from kubebeast_learner.distributions.normal import keep_quadrature_constant
from kubebeast_learner.models import Model
from kubebeast_learner.models.core import keep_cores_eager

_log = logging.getLogger(__name__)


class CompiledOrEager:
    """A compiled loss that turns eager, with one warning, if its forward or backward pass cannot be compiled."""

    def __init__(self, loss: Callable[[Rollout, Tensor], LossOutput], model: Model) -> None:
        """loss: a loss of `model` with a gradient in its total."""
        keep_cores_eager()
        keep_quadrature_constant()
        self._eager, self._model = loss, model
        self._function = torch.compile(loss, dynamic=False)
        self._proven: set[Hashable] = set()

    def __call__(self, rollout: Rollout, entropy_cost: Tensor) -> LossOutput:
        """Returns the loss. The first call for a layout compiles it, and the backward pass by one of its own."""
        layout = layout_of(rollout)
        if layout not in self._proven and self._function is not self._eager:
            self._prove(rollout, entropy_cost)
            self._proven.add(layout)
        return self._function(rollout, entropy_cost)

    def _prove(self, rollout: Rollout, entropy_cost: Tensor) -> None:
        kept = [buffer.clone() for buffer in self._model.buffers()]
        weights = [weight for weight in self._model.parameters() if weight.requires_grad]
        try:
            # The loss that the backward pass then uses up is not the caller's.
            torch.autograd.grad(self._function(rollout, entropy_cost).total, weights, allow_unused=True)
        except Exception as error:  # the compiler's own errors have no common base
            _log.warning("torch.compile failed, the update runs without it: %s", str(error).partition("\n")[0])
            self._function = self._eager
        for buffer, before in zip(self._model.buffers(), kept, strict=True):
            buffer.copy_(before)
