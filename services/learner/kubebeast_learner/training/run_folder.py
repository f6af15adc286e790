"""Check for the deletion of a run's folder during training."""

from pathlib import Path


class RunFolderError(RuntimeError):
    """The folder of the run was deleted or moved."""


class RunFolder:
    """The folder of a run, recognized by device and inode: some files of a run are recreated along with their folder.

    A lost volume is a different case: it may come back, and training goes on.
    """

    def __init__(self, folder: Path) -> None:
        """`folder` must exist."""
        self._folder = folder
        self._device, self._inode = folder.stat().st_dev, folder.stat().st_ino

    def require(self) -> None:
        """Raises RunFolderError if the folder was deleted or moved, and recreates it for the last checkpoint."""
        try:
            if self._is_the_same():
                return
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError:  # the volume fails
            return
        raise RunFolderError(f"{self._folder} was deleted under way; it is made again for the last checkpoint")

    def _is_the_same(self) -> bool:
        """Returns True if the folder is the original one, or if its volume is another one."""
        nearest = self._folder  # the folder of all runs may be deleted, too
        while not nearest.exists():
            nearest = nearest.parent
        found = nearest.stat()
        return found.st_dev != self._device or (nearest == self._folder and found.st_ino == self._inode)
