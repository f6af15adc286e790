"""Turns of the ranks: before each update, all of them exchange their batch sizes and requests to stop."""

import logging
import math
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch

from kubebeast_learner.ranks.group import sum_over_ranks


class Share(NamedTuple):
    """Share of a rank's batch in the global batch; the defaults are a batch that is all of it."""

    valid: float = 1.0
    """Share of the valid transitions."""
    fresh: float = 1.0
    """Share of the valid transitions that were not replayed."""


WHOLE = Share()
_log = logging.getLogger(__name__)


class Turn(NamedTuple):
    """Common next action of the ranks, the same on each except `share`."""

    num_batches: int
    """Number of ranks with a batch; if there are none, there is no update."""
    share: Share
    """Share of this rank."""
    task_steps: tuple[int, ...]
    """Valid transitions of each task that were not replayed, in the global batch."""
    is_last: bool
    """True if a rank was asked to stop."""
    tells_news: bool
    """True if all ranks exchange ended episodes and their statistics."""
    num_notices: int
    """Notices for the nodes of all ranks since the turn before."""


class Turns:
    """Turns of one rank, in step with the others. For one thread.

    A rank without a batch waits for one until the others have waited `patience_s` for it, and joins with an empty
    share. From then on it joins at once, so that no rank waits for it, until it has a batch again. If no rank had a
    batch, all have their full patience again.
    """

    def __init__(self, num_ranks: int, patience_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        """`patience_s` is the longest wait of the others for this rank; a single rank waits for a batch forever."""
        self._is_alone = num_ranks == 1
        self._full_patience_s = self._patience_s = math.inf if self._is_alone else patience_s
        self._clock = clock
        self._since = clock()
        self.num_empty = 0
        """Number of updates that this rank joined with an empty share."""

    @property
    def is_starving(self) -> bool:
        """True if the others no longer wait for this rank."""
        return self._patience_s == 0

    def must_join(self, *, has_batch: bool, stop: bool, notice: bool = False) -> bool:
        """Returns True if this rank has to `agree` now instead of waiting for a batch."""
        return has_batch or stop or notice or self._clock() - self._since >= self._patience_s

    def agree(
        self,
        *,
        has_batch: bool,
        num_valid: int = 0,
        num_fresh: int = 0,
        task_steps: Sequence[int] = (),
        stop: bool = False,
        tells_news: bool = False,
        num_notices: int = 0,
    ) -> Turn:
        """Waits for all ranks, each of which must call this. Raises RankLostError if one does not come."""
        numbers = [has_batch, num_valid, num_fresh, stop, tells_news, num_notices, *task_steps]
        summed = sum_over_ranks(torch.tensor(numbers, dtype=torch.float64)).tolist()
        num_batches, all_valid, all_fresh, stops, tellers, all_notices, *all_steps = map(int, summed)
        if not stop and num_notices == 0:
            self._settle_patience(has_batch, num_batches)
        share = WHOLE if self._is_alone else Share(num_valid / max(all_valid, 1), num_fresh / max(all_fresh, 1))
        return Turn(
            num_batches=num_batches,
            share=share,
            task_steps=tuple(all_steps),
            is_last=stops > 0,
            tells_news=tellers > 0,
            num_notices=all_notices,
        )

    def _settle_patience(self, has_batch: bool, num_batches: int) -> None:
        if num_batches > 0 and not has_batch:
            self.num_empty += 1
            if not self.is_starving:
                _log.warning("no batch for %g s: the others train without this learner's share", self._patience_s)
            self._patience_s = 0.0
            return
        if self.is_starving and has_batch:
            _log.info("this learner has its share of the updates again")
        self._patience_s = self._full_patience_s

    def begin_wait(self) -> None:
        """Starts the measurement of the others' wait: the rank is ready for its next batch."""
        self._since = self._clock()
