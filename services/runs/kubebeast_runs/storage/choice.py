"""Choice of the storage of a run."""

from pathlib import Path

from kubebeast_runs.storage.local import LocalStorage
from kubebeast_runs.storage.storage import Storage


def storage_of(folder: Path) -> Storage:
    """Returns the storage that keeps the checkpoints of the run in `folder`; its writers and all readers call this."""
    return LocalStorage(folder)
