"""Which checkpoint of a run is played next."""

from dataclasses import dataclass
from pathlib import Path

from kubebeast_learner.run.checkpoint import CheckpointStore, step_of


@dataclass(frozen=True, slots=True)
class SavedCheckpoint:
    """One file as it was saved: another one of the same name is not equal to it."""

    path: Path
    step: int
    saved_at_ns: int
    """When, since 1970."""
    inode: int


class CheckpointFeed:
    """The checkpoints of a run in the order in which they appear. For one thread.

    A look lists the run's folder, which the learner changes meanwhile: files appear whole, and old ones vanish.
    """

    def __init__(self, folder: Path, played_step: int | None) -> None:
        """played_step: of the checkpoint that was played last; it and those before it do not wait. None: all do."""
        self._store = CheckpointStore(folder, keep=1)
        self._waiting: list[SavedCheckpoint] = []
        self._num_older = 0
        self._listed = self._list() if played_step is not None else []
        self._seen = {saved for saved in self._listed if played_step is not None and saved.step <= played_step}

    @property
    def newest_step(self) -> int | None:
        """Of the checkpoints that the last look found."""
        return self._listed[-1].step if self._listed else None

    def look(self) -> None:
        """Takes notice of what is new."""
        self._listed = self._list()
        self._waiting += [saved for saved in self._listed if saved not in self._seen]
        self._seen = set(self._listed)

    def take(self) -> SavedCheckpoint | None:
        """The newest that waits, None where none does. Those before it wait on, in case that it cannot be played."""
        self.look()
        if not self._waiting:
            return None
        self._num_older = len(self._waiting) - 1
        return self._waiting.pop()

    def skip_older(self) -> int:
        """Forgets those that were waiting when the newest was taken. How many there were."""
        skipped, self._num_older = self._num_older, 0
        del self._waiting[:skipped]
        return skipped

    def _list(self) -> list[SavedCheckpoint]:
        """What the folder holds, the highest step last."""
        found = (_saved(path) for path in reversed(self._store.paths()))
        return [saved for saved in found if saved is not None]


def _saved(path: Path) -> SavedCheckpoint | None:
    """None where it has vanished since its folder was listed."""
    step = step_of(path)
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return None if step is None else SavedCheckpoint(path, step, status.st_mtime_ns, status.st_ino)
