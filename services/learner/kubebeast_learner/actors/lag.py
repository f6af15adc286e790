"""Order of unrolls with a fixed lag: each batch has weights of its own, so that a run can be repeated exactly.

Groups of environments have seeds of their own, so that mono and train play the same episodes however they share them.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

from kubebeast_learner.actors.base import seed_of_process

MAX_GROUP = 8
"""Most environments in a group. Groups are what processes share, so fewer and larger ones would leave cores idle."""


class Order(NamedTuple):
    """An unroll that a group of environments is to play."""

    group: int
    version: int
    """Version of the weights: the number of updates that they have had, or of the newest weights at that time if an
    update was skipped."""


class LagSchedule:
    """The unrolls of all groups in the order of training, each with the version of the weights that play it.

    The environments are in groups of `group_size`, which play in turn: unroll n is that of group n mod num_groups and
    belongs to batch n * group_size // batch_size. Batch b is played with the weights after update b - lag, or with
    those of the start. The order depends neither on the number of processes nor on their speed.
    """

    def __init__(self, num_envs: int, batch_size: int, lag: int, multiple: int = 1) -> None:
        """Prepares the schedule. Raises ValueError if a batch is no multiple of `multiple`.

        Args:
            num_envs: Number of environments, a multiple of `multiple`.
            batch_size: Unrolls in a batch; unrolls of the replay do not count.
            lag: Updates between the weights that play a batch and those that it updates.
            multiple: Smallest group, the agents of one environment.
        """
        self.group_size = group_size(num_envs, batch_size, multiple)
        self.num_groups = num_envs // self.group_size
        self.unrolls_per_batch = batch_size // self.group_size
        self._lag = lag
        self._num_ordered = 0
        self._num_released = 0

    @property
    def unrolls_per_group(self) -> int:
        """Most unrolls of one group that are ordered and not yet trained on."""
        return -(-(self._lag + 1) * self.unrolls_per_batch // self.num_groups)

    def release(self, version: int) -> Iterator[Order]:
        """Yields the unrolls that may begin: at the first call those of lag + 1 batches, then of one batch a call.

        version: that of the newest weights. Each call is for one more batch that has been trained on.
        """
        self._num_released += 1 if self._num_released else self._lag + 1
        while self._num_ordered < self._num_released * self.unrolls_per_batch:
            yield Order(self._num_ordered % self.num_groups, version)
            self._num_ordered += 1


def first_seed(run_seed: int, version: int) -> int:
    """Returns the seed of the first environment of all groups; the next ones count up.

    version: number of updates before this start of the run.
    """
    return seed_of_process(run_seed, 0, 0, version)


def sampling_seed(run_seed: int, version: int, group: int) -> int:
    """Returns the seed of a group's action sampling."""
    return seed_of_process(run_seed, 1 + group, 0, version)


def group_size(num_envs: int, batch_size: int, multiple: int) -> int:
    """Returns the largest size, at most MAX_GROUP or `multiple`, of which environments and batches are multiples.

    Raises ValueError if a batch is no multiple of `multiple`.
    """
    both = math.gcd(num_envs, batch_size)
    if both % multiple:
        raise ValueError(f"{batch_size} unrolls are no multiple of {multiple} agents")
    sizes = [size for size in range(multiple, both + 1, multiple) if both % size == 0]
    return max((size for size in sizes if size <= MAX_GROUP), default=multiple)
