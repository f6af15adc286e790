"""Choice of the next checkpoint of a run to play."""

import logging
from dataclasses import dataclass
from pathlib import Path

from kubebeast_learner.run.checkpoint import CheckpointStore
from kubebeast_runs.checkpoints import step_of

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SavedCheckpoint:
    """A file as it was saved: a later file of the same name is not equal to it."""

    path: Path
    step: int
    saved_at_ns: int
    """Time of the save in nanoseconds since 1970."""
    inode: int


class CheckpointFeed:
    """The checkpoints of a run in the order of their appearance. Not thread-safe.

    A look lists the run's folder, which the learner changes meanwhile: files appear whole, and old ones vanish.
    """

    def __init__(self, folder: Path, played_step: int | None) -> None:
        """`played_step` is that of the last played checkpoint; only later ones are pending. None: all are pending."""
        self._store = CheckpointStore(folder, keep=1)
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
        """Returns the checkpoints in the folder, highest step last; the previous list if it cannot be listed."""
        try:
            paths = self._store.paths()
        except OSError as error:
            logger.warning("checkpoints cannot be listed: %s", error)
            return self._listed
        found = (_saved(path) for path in reversed(paths))
        return [saved for saved in found if saved is not None]


def _saved(path: Path) -> SavedCheckpoint | None:
    """Describes a file of the folder; None if it has vanished since the folder was listed."""
    step = step_of(path)
    try:
        status = path.stat()
    except OSError:
        return None
    return None if step is None else SavedCheckpoint(path, step, status.st_mtime_ns, status.st_ino)
