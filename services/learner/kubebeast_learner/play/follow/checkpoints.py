"""Choice of the next checkpoint of a run to play."""

import logging

from kubebeast_runs.checkpoints import SavedCheckpoint, list_checkpoints
from kubebeast_runs.storage.storage import Files

logger = logging.getLogger(__name__)


class CheckpointFeed:
    """The checkpoints of a run in the order of their appearance. Not thread-safe.

    A look lists the run's storage, which the learner changes meanwhile: files appear whole, and old ones vanish.
    """

    def __init__(self, storage: Files, played_step: int | None) -> None:
        """`played_step` is that of the last played checkpoint; only later ones are pending. None: all are pending."""
        self._storage = storage
        self._waiting: list[SavedCheckpoint] = []
        self._num_older = 0
        self._listed: list[SavedCheckpoint] = []
        self._listed = self._list() if played_step is not None else []
        self._seen = {saved for saved in self._listed if played_step is not None and saved.step <= played_step}

    @property
    def newest_step(self) -> int | None:
        """Highest step of the last look; None if there was no checkpoint."""
        return self._listed[-1].step if self._listed else None

    def look(self) -> None:
        """Adds new checkpoints to the pending ones."""
        self._listed = self._list()
        self._waiting += [saved for saved in self._listed if saved not in self._seen]
        self._seen = set(self._listed)

    def is_there(self, saved: SavedCheckpoint) -> bool:
        """Looks again; returns True if the checkpoint was not deleted or replaced."""
        self.look()
        return saved in self._listed

    def take(self) -> SavedCheckpoint | None:
        """Returns the newest pending checkpoint, or None. Older ones stay pending, in case it cannot be played."""
        self.look()
        if not self._waiting:
            return None
        self._num_older = len(self._waiting) - 1
        return self._waiting.pop()

    def skip_older(self) -> int:
        """Drops the checkpoints that were pending when the newest was taken. Returns their number."""
        skipped, self._num_older = self._num_older, 0
        del self._waiting[:skipped]
        return skipped

    def _list(self) -> list[SavedCheckpoint]:
        """Returns the checkpoints of the run, highest step last; the previous list if it cannot be listed."""
        try:
            return list_checkpoints(self._storage)[::-1]
        except OSError as error:
            logger.warning("checkpoints cannot be listed: %s", error)
            return self._listed
