"""The ranks' turns: before each update all of them tell what they bring, and whether they were asked to stop."""

import logging
import math
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch

from kubebeast_learner.ranks.group import sum_over_ranks


class Share(NamedTuple):
    """What a rank's batch is of the global batch; the defaults are a batch that is all of it."""

    valid: float = 1.0
    """Of the valid transitions."""
    fresh: float = 1.0
    """Of the valid transitions that were not replayed."""


WHOLE = Share()
_log = logging.getLogger(__name__)


class Turn(NamedTuple):
    """What the ranks do together, the same on each but for `share`."""

    num_batches: int
    """Ranks that bring one; with none of them there is no update."""
    share: Share
    """This rank's."""
    task_steps: tuple[int, ...]
    """Valid transitions of each task that were not replayed, of the global batch."""
    is_last: bool
    """A rank was asked to stop."""
    tells_news: bool
    """Every rank tells the others what episodes have ended and how it does."""


class Turns:
    """The turns of one rank, in step with the others. For one thread.

    A rank that has no batch waits for one until the others have waited `patience_s` for it, and joins with an empty
    share. From then on it joins at once, so that nobody waits for it, until it has a batch again; but where no rank
    brought one, all have patience again.
    """

    def __init__(self, num_ranks: int, patience_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        """patience_s: longest that the others wait for this rank; one that is alone waits for a batch for ever."""
        self._is_alone = num_ranks == 1
        self._full_patience_s = self._patience_s = math.inf if self._is_alone else patience_s
        self._clock = clock
        self._since = clock()
        self.num_empty = 0
        """Updates that this rank joined with an empty share."""

    @property
    def is_starving(self) -> bool:
        """Whether the others have stopped to wait for this rank."""
        return self._patience_s == 0

    def must_join(self, *, has_batch: bool, stop: bool) -> bool:
        """Whether to `agree` now instead of waiting on for a batch."""
        return has_batch or stop or self._clock() - self._since >= self._patience_s

    def agree(
        self,
        *,
        has_batch: bool,
        num_valid: int = 0,
        num_fresh: int = 0,
        task_steps: Sequence[int] = (),
        stop: bool = False,
        tells_news: bool = False,
    ) -> Turn:
        """Waits for all ranks, each of which calls this; RankLostError when one does not come."""
        mine = torch.tensor([has_batch, num_valid, num_fresh, stop, tells_news, *task_steps], dtype=torch.float64)
        num_batches, all_valid, all_fresh, stops, tellers, *all_steps = map(int, sum_over_ranks(mine).tolist())
        if not stop:
            self._settle_patience(has_batch, num_batches)
        share = WHOLE if self._is_alone else Share(num_valid / max(all_valid, 1), num_fresh / max(all_fresh, 1))
        return Turn(
            num_batches=num_batches,
            share=share,
            task_steps=tuple(all_steps),
            is_last=stops > 0,
            tells_news=tellers > 0,
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
        """The rank is ready for its next batch: what the others wait counts from here."""
        self._since = self._clock()
