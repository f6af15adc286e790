"""Episodes that are missing from the mean return."""

import logging

from kubebeast_learner.run.snapshot import Snapshot

logger = logging.getLogger(__name__)

MANY = 0.1
"""Share of failed episodes from which a warning is logged."""


class FailedEpisodes:
    """A warning, logged once: without failed episodes the mean return is misleading if these are the long ones."""

    def __init__(self) -> None:
        self._has_warned = False

    def note(self, snapshot: Snapshot) -> None:
        if self._has_warned or snapshot.failed_share < MANY:
            return
        self._has_warned = True
        failures = snapshot.env_failures or 0
        text = "%d of %d episodes were cut short as their environments failed: the mean return is of the others alone"
        logger.warning(text, failures, failures + snapshot.process_episodes)


def remark(snapshot: Snapshot) -> str:
    """Returns the text after the mean return in a summary; empty if no episode failed."""
    if not snapshot.env_failures:
        return ""
    return f"; {snapshot.env_failures:,} more, which are in no mean, were cut short as their environments failed"
