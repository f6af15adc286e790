"""The place of a run that this process writes: a folder, or a bucket."""

import threading
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from kubebeast_common.access.places import is_url, local
from kubebeast_runs.files.write_failures import WriteFailures
from kubebeast_runs.folder import folder_of
from kubebeast_runs.parts import TRAINING, Part, evaluation
from kubebeast_runs.scores import evaluators_in
from kubebeast_runs.storage.local import LocalStorage
from kubebeast_runs.storage.storage import Files, Storage


class RunHome(Protocol):
    """The place of a run during the context, for one process."""

    savedir: Path
    """Folder of this machine that holds that of the run, for its logs."""

    @property
    def storage(self) -> Storage:
        """Storage of its checkpoints."""

    def begin(self, failures: WriteFailures) -> None:
        """Begins what a thread does beside the run; `failures` counts what fails."""

    def require(self) -> None:
        """Raises LeaseLostError if another process has taken over the run."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...


class LocalHome:
    """A folder of this machine, or of a volume that it mounts; see RunHome."""

    def __init__(self, savedir: Path, xpid: str) -> None:
        self.savedir = savedir
        self.storage = LocalStorage(savedir / xpid)

    def begin(self, failures: WriteFailures) -> None:
        """Does nothing."""

    def require(self) -> None:
        """Does nothing: the lock in the folder lasts as long as its process."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None: ...


def files_of(savedir: str, xpid: str) -> Files:
    """Returns the files of a training, also of the LATEST one, for reading. Raises ConfigError and OSError."""
    if not is_url(savedir):
        return LocalStorage(folder_of(savedir, xpid))
    from kubebeast_runs.bucket.copies import name_of_run  # their package is optional
    from kubebeast_runs.bucket.objects import Bucket
    from kubebeast_runs.bucket.run_files import RunFiles

    return RunFiles(Bucket(savedir), name_of_run(savedir, xpid) or xpid)


def evaluations_of(savedir: str, xpid: str) -> dict[str, Files]:
    """Returns the files of a run's evaluators by their names, "" for the one without a name.

    Raises ConfigError and OSError.
    """
    if not is_url(savedir):
        return evaluations_in(folder_of(savedir, xpid))
    from kubebeast_runs.bucket.copies import name_of_run  # their package is optional
    from kubebeast_runs.bucket.objects import Bucket
    from kubebeast_runs.bucket.run_files import RunFiles, evaluators_of

    bucket, name = Bucket(savedir), name_of_run(savedir, xpid) or xpid
    return {one: RunFiles(bucket, name, evaluation(one)) for one in evaluators_of(bucket, name)}


def evaluations_in(folder: Path) -> dict[str, Files]:
    """Returns the same of a run in a folder of this machine. Raises OSError."""
    files = LocalStorage(folder)
    return dict.fromkeys(evaluators_in(files), files)


def open_home(savedir: str, xpid: str, stop: threading.Event, part: Part = TRAINING) -> RunHome:
    """Returns the place of a run. If it is a bucket, takes its lease, and blocks as OwnedRun does.

    Raises BusyError, ConfigError, InterruptedError and OSError as OwnedRun.
    """
    if not is_url(savedir):
        return LocalHome(local(savedir), xpid)
    from kubebeast_runs.bucket.owned_run import OwnedRun  # its package is optional

    return OwnedRun(savedir, xpid, stop, part)
