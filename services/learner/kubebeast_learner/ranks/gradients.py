"""Gradients summed over the ranks during the backward pass."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from kubebeast_learner.machine.out_of_memory import is_out_of_memory
from kubebeast_learner.ranks.group import ending_waits, is_of_group, lost_rank

LossT = TypeVar("LossT")


class SummedGradients(Generic[LossT]):
    """Wrapper of `loss`, a function that runs `model`, for gradients that are summed over all ranks.

    A backward pass from its result leaves in every parameter the sum of all ranks' gradients. Without a process group
    it is `loss` itself. All ranks start with the first rank's weights, and each call of `loss` with its buffers. The
    same parameters must have a gradient in every pass; some may have none.
    """

    def __init__(self, model: nn.Module, loss: Callable[..., LossT]) -> None:
        """Waits for all ranks. Raises RankLostError if one does not come."""
        self._loss: Callable[..., LossT] = loss
        self._failures: list[RuntimeError] = []
        """Failures of sums, newest last."""
        if not dist.is_initialized():
            return
        with ending_waits(next(model.parameters()).device):
            parallel = DistributedDataParallel(
                _LossOf(model, loss),  # not only the model: a loss may not use all of its outputs
                gradient_as_bucket_view=True,
                static_graph=True,  # only the first pass searches for parameters without a gradient
            )
        parallel.register_comm_hook(self._failures, _sum)
        self._loss = parallel

    def __call__(self, *arguments: Any) -> LossT:
        """Returns the loss. Raises RankLostError if the first rank's buffers do not arrive."""
        try:
            return self._loss(*arguments)
        except RuntimeError as error:
            if is_of_group(error):
                raise lost_rank(error) from error
            raise

    def backward(self, total: Tensor) -> None:
        """Runs the backward pass. Raises RankLostError if a sum fails; other errors, such as lack of memory, stay."""
        try:
            total.backward()  # type: ignore[no-untyped-call]
        except RuntimeError as error:
            lost = [failure for failure in self._failures if not is_out_of_memory(failure)]
            if lost or is_of_group(error):
                raise lost_rank(lost[-1] if lost else error) from error
            raise


class _LossOf(nn.Module):
    def __init__(self, model: nn.Module, loss: Callable[..., Any]) -> None:
        super().__init__()
        self.model = model
        self._loss = loss

    def forward(self, *arguments: Any) -> Any:
        return self._loss(*arguments)


def _sum(
    failures: list[RuntimeError],
    bucket: dist.GradBucket,  # type: ignore[name-defined]
) -> torch.futures.Future[Tensor]:
    """Sums a bucket. The default divides the sum by the number of ranks, which is exact for equal shares only."""

    def finish(future: torch.futures.Future[list[Tensor]]) -> Tensor:
        try:
            return future.value()[0]
        except RuntimeError as error:
            failures.append(error)
            raise

    try:
        work = dist.all_reduce(bucket.buffer(), async_op=True)
    except RuntimeError as error:
        failures.append(error)
        raise
    assert work is not None
    summed: torch.futures.Future[Tensor] = work.get_future().then(finish)
    return summed
