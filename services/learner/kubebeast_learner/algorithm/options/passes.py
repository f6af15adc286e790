"""Several passes over a training batch, in minibatches (Schulman et al. 2017, https://arxiv.org/abs/1707.06347,
algorithm 1).

Each pass makes value targets and advantages anew with the present weights, and one gradient step for each minibatch.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

import torch
from torch import Tensor

from kubebeast_learner.algorithm.rollout import Rollout, map_tensors, to_device
from kubebeast_learner.config import PassesConfig, TrainingConfig
from kubebeast_learner.models import Model
from kubebeast_learner.ranks.group import sum_over_ranks
from kubebeast_learner.ranks.turns import Share


class Passes:
    """The minibatches of the passes over one batch after the other."""

    def __init__(self, config: PassesConfig, *, by_unroll: bool) -> None:
        """by_unroll: True if minibatches are whole unrolls, False if they are transitions."""
        self._passes, self._minibatches = config.passes, config.minibatches
        self._split = _unrolls if by_unroll else _transitions

    @property
    def are_plain(self) -> bool:
        """True if each batch is one gradient step."""
        return self._passes == self._minibatches == 1

    def over(
        self, rollout: Rollout, estimate: Callable[[Rollout], Rollout], seed: int
    ) -> Iterator[tuple[Rollout, Rollout]]:
        """Yields the batch with its estimates and a minibatch, for the minibatches of all passes, the same number for
        every batch.

        Args:
            rollout: a batch with whole stacks.
            estimate: called before each pass; returns the batch with value_targets and advantages.
            seed: seed of the order.
        """
        generator = torch.Generator().manual_seed(seed)
        for _ in range(self._passes):
            estimated = estimate(rollout)
            if self._minibatches > self._most(rollout):  # the made-up batch of a rank without one
                yield from [(estimated, replace(estimated, is_minibatch=True))] * self._minibatches
            else:
                yield from ((estimated, part) for part in self._split(estimated, self._minibatches, generator))

    def _most(self, rollout: Rollout) -> int:
        return rollout.batch_size if self._split is _unrolls else rollout.unroll_length


def share_of(minibatch: Rollout) -> Share:
    """Returns the share of this rank's minibatch in the global one. All ranks call this together."""
    mine = minibatch.valid.sum().float()
    return Share(valid=float(mine / sum_over_ranks(mine.clone()).clamp(min=1.0)))


def fitted(config: TrainingConfig, model: Model) -> PassesConfig:
    """Returns the passes of a training, with at most as many minibatches as a batch has parts: one for each unroll, or
    for each transition of an unroll.
    """
    passes, rollout = config.passes, config.rollout
    most = rollout.batch_size if splits_by_unroll(model, config.loss.loss) else rollout.unroll_length
    return replace(passes, minibatches=min(passes.minibatches, most))


def splits_by_unroll(model: Model, loss: str) -> bool:
    """Returns True if minibatches have to be whole unrolls: for a model with a memory, or a loss of the user's own."""
    return model.core_state_size > 0 or ":" in loss


def _transitions(rollout: Rollout, number: int, generator: torch.Generator) -> Iterator[Rollout]:
    """Yields disjoint minibatches with random transitions of every unroll, [T / number, B], without a last row."""
    length, batch_size = rollout.unroll_length, rollout.batch_size
    order = to_device(torch.rand(length, batch_size, generator=generator).argsort(dim=0), rollout.valid.device)
    places = order * batch_size + torch.arange(batch_size, device=order.device)
    for part in places.tensor_split(number):

        def chosen(tensor: Tensor, part: Tensor = part) -> Tensor:
            return _rows_at(part, tensor) if tensor.shape[0] >= length else tensor

        yield map_tensors(chosen, rollout, core_state=(), is_minibatch=True)


def _rows_at(places: Tensor, tensor: Tensor) -> Tensor:
    """Returns rows [t, B, ...] of a tensor [T, B, ...] in its memory layout; places: int64 [t, B], each t * B + b."""
    # A row in the order of its memory is copied at once, other rows number by number.
    inner = sorted(range(2, tensor.ndim), key=tensor.stride, reverse=True)
    in_order = tensor.permute(0, 1, *inner)
    rows = in_order.flatten(0, 1).index_select(0, places.flatten()).view(*places.shape, *in_order.shape[2:])
    return rows.permute(0, 1, *(2 + inner.index(dim) for dim in range(2, tensor.ndim)))


def _unrolls(rollout: Rollout, number: int, generator: torch.Generator) -> Iterator[Rollout]:
    """Yields disjoint minibatches of random unrolls, [T, B / number]."""
    order = to_device(torch.randperm(rollout.batch_size, generator=generator), rollout.valid.device)
    for columns in order.tensor_split(number):

        def chosen(tensor: Tensor, columns: Tensor = columns) -> Tensor:
            return tensor.index_select(1, columns)

        yield map_tensors(chosen, rollout, num_replayed=0, is_minibatch=True)
