"""Copies of runs in a bucket, for commands that read a folder."""

import atexit
import fnmatch
import tempfile
from pathlib import Path

from kubebeast_runs.bucket.objects import Bucket
from kubebeast_runs.bucket.run_files import RunFiles, evaluators_of
from kubebeast_runs.checkpoints import step_of
from kubebeast_runs.names import LATEST
from kubebeast_runs.parts import TRAINING, evaluation
from kubebeast_runs.weights import NAME as WEIGHTS


def copy_run(url: str, xpid: str, *, with_checkpoints: bool) -> Path:
    """Downloads a run into a temporary folder of its name, which does not exist if there is no such run.

    Files for TensorBoard are left out, and checkpoints unless they are wanted. The folder vanishes with the process.
    Raises ConfigError for a wrong URL, and OSError.
    """
    bucket, folder = Bucket(url), _temporary_folder() / xpid

    def is_wanted(name: str) -> bool:
        is_checkpoint = step_of(name) is not None or name == WEIGHTS
        return not name.startswith("tensorboard/") and (with_checkpoints or not is_checkpoint)

    for part in (TRAINING, *map(evaluation, evaluators_of(bucket, xpid))):
        RunFiles(bucket, xpid, part).fetch(folder, is_wanted)
    return folder


def name_of_run(url: str, xpid: str) -> str | None:
    """Returns xpid or, for LATEST, the name of the run that began last; None if there is none.

    Raises ConfigError and OSError.
    """
    if xpid != LATEST:
        return xpid
    try:
        return Bucket(url).read(LATEST).content.decode(errors="replace").strip()
    except FileNotFoundError:
        return None


def matching_runs(url: str, pattern: str) -> list[str]:
    """Returns the names of the runs that match a pattern with *, ? or [. Raises ConfigError and OSError."""
    return [name for name in Bucket(url).folders() if fnmatch.fnmatchcase(name, pattern)]


def _temporary_folder() -> Path:
    folder = tempfile.TemporaryDirectory(prefix="kubebeast-", ignore_cleanup_errors=True)
    atexit.register(folder.cleanup)
    return Path(folder.name)
