"""Experience replay: a share of every training batch is drawn uniformly from the newest unrolls.

V-trace corrects for the age of replayed unrolls, since their behavior policy_logits are replayed with them. Schmitt
et al. 2019, https://arxiv.org/abs/1909.11583, argue for mixing both kinds in a batch.
"""

import torch
from torch import Tensor

from kubebeast_learner.algorithm.rollout import Rollout, map_tensors
from kubebeast_learner.config import ReplayConfig


class ReplayBuffer:
    """The newest `capacity` unrolls, on the CPU, overwritten oldest first. Not thread-safe.

    Its memory is allocated once, with the first batch: capacity times the bytes of one unroll, which are
    (unroll_length + 1) * (bytes of an observation + 15) + unroll_length * (4 A + 17) + 4 * core_state_size for one
    Discrete choice of A, and 8 more if there are several tasks. If frames come once, an unroll has the bytes of
    unroll_length + k frames for its stacks of k.
    The buffer is not part of a checkpoint: a resumed run fills it again.
    """

    def __init__(self, capacity: int, num_replayed: int, seed: int) -> None:
        """Creates an empty buffer.

        Args:
            capacity: number of unrolls to keep.
            num_replayed: number of unrolls that `mix` adds to a batch.
            seed: seed of the draws.
        """
        self._capacity = capacity
        self._num_replayed = num_replayed
        self._generator = torch.Generator().manual_seed(seed)
        self._stored: Rollout | None = None
        self._next = 0
        self._num_stored = 0
        self._fresh = torch.zeros(0, dtype=torch.int64)

    def __len__(self) -> int:
        """Number of unrolls that can be replayed."""
        return self._num_stored

    def mix(self, rollout: Rollout) -> Rollout:
        """Stores the unrolls of `rollout`, at most `capacity`, and returns them followed by num_replayed others.

        The others are drawn with replacement from all stored unrolls, including `rollout`, so that the first batch is
        as large as every other. On the CPU; the returned tensors share no memory with the given ones.
        """
        if self._stored is None:
            self._stored = map_tensors(self._allocate, rollout)
        self._fresh = (self._next + torch.arange(rollout.batch_size)) % self._capacity
        self._stored = map_tensors(lambda stored, new: _store(stored, self._fresh, new), self._stored, rollout)
        self._next = (self._next + rollout.batch_size) % self._capacity
        self._num_stored = min(self._capacity, self._num_stored + rollout.batch_size)
        replayed = torch.randint(self._num_stored, (self._num_replayed,), generator=self._generator)
        chosen = torch.cat([self._fresh, replayed])
        return map_tensors(lambda stored: stored.index_select(1, chosen), self._stored, num_replayed=self._num_replayed)

    def forget_fresh(self) -> None:
        """Replaces the unrolls that `mix` stored last by zeros without a valid transition: nothing can be learned from
        an observation that is too large for the weights, however often it is replayed.
        """
        if self._stored is not None:
            self._stored = map_tensors(lambda stored: stored.index_fill_(1, self._fresh, 0), self._stored)

    def _allocate(self, tensor: Tensor) -> Tensor:
        """Allocates room for `capacity` unrolls; unlike a given batch, it is never memory of the native pool."""
        return tensor.new_empty(tensor.shape[0], self._capacity, *tensor.shape[2:])


def _store(stored: Tensor, columns: Tensor, new: Tensor) -> Tensor:
    """Returns `stored` with `new` in these columns, extended by rows if an unroll has more single frames."""
    missing = new.shape[0] - stored.shape[0]
    if missing > 0:
        stored = torch.cat([stored, stored.new_zeros(missing, *stored.shape[1:])])
    stored[: new.shape[0]].index_copy_(1, columns, new)
    return stored


def make_replay(config: ReplayConfig, batch_size: int, seed: int) -> ReplayBuffer | None:
    """Returns the replay for training batches of `batch_size`, with room for at least the fresh unrolls of one; None if
    nothing is replayed.
    """
    num_replayed = config.num_replayed(batch_size)
    if num_replayed == 0:
        return None
    return ReplayBuffer(config.room(batch_size), num_replayed, seed)
