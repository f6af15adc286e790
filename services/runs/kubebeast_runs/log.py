"""Log files of a run in the layout of TorchBeast's FileWriter, and event files for TensorBoard.

<savedir>/latest            name of the run that began last
<savedir>/<xpid>/out.log    log messages
                 logs.csv   one row per tick, after a line "# name,name,..."
                 fields.csv one row of column names per change of the columns
                 meta.json  arguments, dates, hardware, versions, git commit, SLURM job, success
                 config.yaml the settings
                 tensorboard/
                 .lock      held by the process that trains the run

scores.py describes the files of a process that plays the run's checkpoints.
"""

import contextlib
import datetime
import json
import logging
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import yaml

from kubebeast_common.atomic_file import write_atomically
from kubebeast_common.volume import is_full
from kubebeast_runs.files.append_file import AppendFile
from kubebeast_runs.files.table_file import Value
from kubebeast_runs.files.write_failures import OUT_LOG, WriteFailures
from kubebeast_runs.folder import read_meta
from kubebeast_runs.lock import lock_run
from kubebeast_runs.names import CONFIG, LATEST, META
from kubebeast_runs.trackers.calls import Calls, DirectCalls, QueuedCalls
from kubebeast_runs.trackers.csv_table import CsvTracker
from kubebeast_runs.trackers.own import MakeTracker
from kubebeast_runs.trackers.services.service_tracker import OUTPUT
from kubebeast_runs.trackers.tensorboard import TensorBoardTracker
from kubebeast_runs.trackers.tracker import PatientTracker, Tracker
from kubebeast_runs.weights import NAME as WEIGHTS

logger = logging.getLogger(__name__)

# An explicit list, as SLURM_JWT is a credential.
_SLURM_NAMES = ("JOB_ID", "JOB_NAME", "JOB_NODELIST", "ARRAY_JOB_ID", "ARRAY_TASK_ID", "PROCID", "NTASKS", "SUBMIT_DIR")
_FILES = (OUT_LOG, META, CONFIG, LATEST)
"""Files of a run that are no tracker's."""
_OUTPUT = ("actors.log", "env-servers*.log", OUTPUT)
"""Patterns of the output files of the run's other processes."""
_MAX_QUOTE = 4000
"""Bytes at the end of such a file that are logged before it is removed."""
_BEFORE_THE_BEGINNING = (".lock", OUT_LOG, *_OUTPUT)
"""Patterns of the files in the folder of a run that never began."""


class RunLog:
    """The log files of one run; an existing folder is continued at the tick after its last. Not thread-safe.

    The run begins with `record`. Until then `latest` names another run, and a new folder has only the lock and
    messages; a new run that never begins leaves nothing. Afterwards rows that cannot be written are dropped, whole
    files are retried, and both are counted in `failures`.

    A context manager: its exit writes the end of the run, successful if `successful` is set, and closes the files.
    """

    def __init__(self, savedir: Path, xpid: str, own: Sequence[MakeTracker] = ()) -> None:
        """Creates and locks the folder. own: makes trackers beside those of logs.csv and TensorBoard.

        Raises OSError if it cannot be created, BusyError if another process trains the same run, and the errors of
        `own`.
        """
        self.folder = savedir / xpid
        self.successful = False
        self._new_folders = [folder for folder in (self.folder, *self.folder.parents) if not folder.exists()]
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = lock_run(self.folder)
        except OSError:
            self._remove_new_folders()
            raise
        added: list[PatientTracker] = []
        try:
            files: list[Tracker] = [CsvTracker(self.folder), TensorBoardTracker(self.folder)]
            for make in own:
                added.append(make(self.folder))
        except Exception:  # a user's tracker may raise anything
            for tracker in added:
                tracker.abandon()
            self._remove_new_folders()
            self._lock.close()
            raise
        self._meta_before = read_meta(self.folder)
        """meta.json of the process before; empty if the run is new."""
        self.num_crashes = _crashes_before(self._meta_before)
        """Earlier processes of the run that were killed or failed."""
        self.failures = WriteFailures(self.folder, [*(each.name for each in [*files, *added]), *_FILES])
        self._trackers: list[Calls] = [
            *(DirectCalls(tracker, self.failures) for tracker in files),
            *(QueuedCalls(tracker, self.failures) for tracker in added),
        ]
        self._handler = _OutLog(self.folder / OUT_LOG, self.failures)
        self._handler.setFormatter(logging.Formatter("[%(levelname)s:%(process)d %(name)s %(asctime)s] %(message)s"))
        logging.getLogger().addHandler(self._handler)
        self._meta: dict[str, Any] = {}
        self._unwritten: dict[str, Callable[[], None]] = {}
        """Writes of whole files that are retried with every row, by file name."""
        if self._meta_before:  # a process that is killed before it begins is counted, too
            self._write_meta({**self._meta_before, "num_crashes": self.num_crashes, "successful": False})

    def record(self, settings: Mapping[str, Any], facts: Mapping[str, Any] | None = None) -> None:
        """Begins the run with `settings`, plain values, which go to meta.json and config.yaml.

        `facts` are further entries of meta.json: `hardware`, `versions`, and `defaults` and `recipe` of the settings.
        Until this call the files of an existing run keep their earlier content, except for the crashes in meta.json.
        """
        self._meta = {
            **(facts or {}),
            "args": dict(settings),
            "date_end": None,
            "date_start": _now(),
            "git": _git_commit(),
            "num_crashes": self.num_crashes,
            "slurm": _slurm_job(),
            "successful": False,
            "xpid": self.folder.name,
        }
        for tracker in self._trackers:
            tracker.begin(self._meta)
        text = yaml.safe_dump(dict(settings), sort_keys=False)
        config = self.folder / CONFIG
        self._unwritten[CONFIG] = lambda: write_atomically(config, text.encode())
        self._unwritten[LATEST] = lambda: _point_latest(self.folder)
        self._write_meta(self._meta)

    def note_environment(self, env_id: str, env_config: Mapping[str, Any] | None) -> None:
        """Adds the environment to meta.json; `env_config` has plain values, or is None if it is unknown."""
        self._meta["environment"] = {"env": env_id, **(env_config or {})}
        self._write_meta(self._meta)

    def log(self, values: Mapping[str, Value]) -> None:
        """Passes one row, with its env-steps as "step", to every tracker."""
        others = {name: value for name, value in values.items() if name != "step"}
        step = values["step"]
        assert isinstance(step, int)
        for tracker in self._trackers:
            tracker.log(step, others)
        self._write_unwritten()
        self.failures.report()

    def note_checkpoint(self, step: int) -> None:
        """Passes the newest weights to every tracker, after a checkpoint was saved at `step`.

        If the run is in a bucket, the weights are there and not in the folder, and trackers receive none.
        """
        if not (self.folder / WEIGHTS).is_file():
            return
        for tracker in self._trackers:
            tracker.artifact(step, self.folder / WEIGHTS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error_type: type[BaseException] | None, *error: object) -> None:
        if self._meta:
            self._meta |= {"successful": self.successful and error_type is None, "date_end": _now()}
            self._write_meta(self._meta)
        elif self._meta_before:
            self._write_meta(self._meta_before)
        for tracker in self._trackers:
            tracker.end(successful=self.successful and error_type is None)
        for tracker in self._trackers:
            tracker.wait()
        self.failures.conclude()
        logging.getLogger().removeHandler(self._handler)
        self._handler.close()
        if not self._meta:
            if not self.successful:
                self._quote_processes()
            self._remove_new_folders()
        with contextlib.suppress(OSError):
            self._lock.close()

    def _write_meta(self, meta: Mapping[str, Any]) -> None:
        text = json.dumps(meta, indent=4, sort_keys=True) + "\n"
        self._unwritten[META] = lambda: write_atomically(self.folder / META, text.encode())
        self._write_unwritten()

    def _write_unwritten(self) -> None:
        for name, write in list(self._unwritten.items()):
            with self.failures.tolerating(name):
                write()
                del self._unwritten[name]

    def _quote_processes(self) -> None:
        """Logs the last output of the run's other processes before it is removed: it may explain the failure."""
        if self.folder not in self._new_folders:
            return
        for path in [path for pattern in _OUTPUT for path in self.folder.glob(pattern)]:
            with contextlib.suppress(OSError):
                end = path.read_bytes()[-_MAX_QUOTE:].decode(errors="replace").strip()
                if end:
                    logger.warning("the run has not begun, and its folder is removed; %s ended so:\n%s", path.name, end)

    def _remove_new_folders(self) -> None:
        """Removes the files and folders of a run that did not begin, but nothing of a run that existed before."""
        if self.folder not in self._new_folders:
            return
        with contextlib.suppress(OSError):
            for pattern in _BEFORE_THE_BEGINNING:
                for path in self.folder.glob(pattern):
                    path.unlink()
            for folder in self._new_folders:
                folder.rmdir()


class _OutLog(logging.Handler):
    """A handler that writes out.log. Messages that cannot be written still go to the terminal."""

    def __init__(self, path: Path, failures: WriteFailures) -> None:
        super().__init__()
        self._file = AppendFile(path)
        self._failures = failures

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = f"{self.format(record)}\n".encode(errors="backslashreplace")
        except Exception:  # arguments that do not match the format, reported as by every logging handler
            self.handleError(record)
            return
        with self._failures.tolerating(OUT_LOG):
            self._file.append(line)

    def close(self) -> None:
        with self._failures.tolerating(OUT_LOG):
            self._file.close()
        super().close()


def default_xpid() -> str:
    """Returns a run name with the current date, e.g. kubebeast-20260131-142501."""
    return f"kubebeast-{datetime.datetime.now():%Y%m%d-%H%M%S}"


def _now() -> str:
    return datetime.datetime.now().isoformat(sep=" ")


def _crashes_before(meta: Mapping[str, Any]) -> int:
    """Returns the number of processes of the run that were killed or failed, by its meta.json; 0 for a new run."""
    try:
        return int(meta.get("num_crashes", 0)) + (meta["successful"] is not True)
    except (ValueError, KeyError, TypeError):
        return 0


def _slurm_job() -> dict[str, str]:
    return {name.lower(): os.environ[f"SLURM_{name}"] for name in _SLURM_NAMES if f"SLURM_{name}" in os.environ}


def _point_latest(folder: Path) -> None:
    """Writes a file, not a link: TensorBoard would show the run twice. Raises OSError if the volume is full."""
    path = folder.parent / LATEST
    try:
        write_atomically(path, f"{folder.name}\n".encode(errors="surrogateescape"))
    except OSError as error:
        if is_full(error):
            raise
        logger.warning("cannot point %s at the run: %s", path, error)


def _git_commit() -> dict[str, Any] | None:
    """Returns the commit of the working directory; None outside a repository or without git."""

    def git(*words: str) -> str:
        return subprocess.run(
            ["git", *words], capture_output=True, text=True, timeout=5, check=True, stdin=subprocess.DEVNULL
        ).stdout.strip()

    try:
        return {
            "commit": git("rev-parse", "HEAD"),
            "branch": git("rev-parse", "--abbrev-ref", "HEAD"),
            "is_dirty": bool(git("status", "--porcelain", "--untracked-files=no")),
            "path": git("rev-parse", "--show-toplevel"),
        }
    except (OSError, subprocess.SubprocessError):
        return None
