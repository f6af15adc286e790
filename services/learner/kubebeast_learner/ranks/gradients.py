"""Gradients that are summed over the ranks while the backward pass still runs."""

from collections.abc import Callable
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

LossT = TypeVar("LossT")


def with_summed_gradients(model: nn.Module, loss: Callable[..., LossT]) -> Callable[..., LossT]:
    """`loss`, a function that runs `model`; a backward pass from what it returns leaves in every parameter the sum of
    all ranks' gradients. Without a process group it is `loss` itself.

    All ranks begin with the first one's weights, and each `loss` with its buffers. The same parameters must get a
    gradient in every pass; some may get none.
    """
    if not dist.is_initialized():
        return loss
    parallel = DistributedDataParallel(
        _LossOf(model, loss),  # not the model alone: a loss may leave some of its outputs out
        gradient_as_bucket_view=True,
        static_graph=True,  # only the first pass searches for parameters without a gradient
    )
    parallel.register_comm_hook(None, _sum)
    return parallel


class _LossOf(nn.Module):
    def __init__(self, model: nn.Module, loss: Callable[..., Any]) -> None:
        super().__init__()
        self.model = model
        self._loss = loss

    def forward(self, *arguments: Any) -> Any:
        return self._loss(*arguments)


def _sum(
    state: None,
    bucket: dist.GradBucket,  # type: ignore[name-defined]
) -> torch.futures.Future[Tensor]:
    """Without a hook the sum is divided by the number of ranks: exact for equal shares only."""
    work = dist.all_reduce(bucket.buffer(), async_op=True)
    assert work is not None
    summed: torch.futures.Future[Tensor] = work.get_future().then(lambda future: future.value()[0])
    return summed
