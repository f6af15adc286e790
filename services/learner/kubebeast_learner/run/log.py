"""What a run leaves on disk beside its checkpoints, in the layout of TorchBeast's FileWriter, and TensorBoard's files.

<savedir>/latest            symlink to the run that started last
<savedir>/<xpid>/out.log    log messages
                 logs.csv   one row a tick, a line "# name,name,..." before the first
                 fields.csv one row of names for every growth of the schema
                 meta.json  arguments, dates, hardware, versions, git commit, SLURM job, success
                 config.yaml the settings
                 tensorboard/
                 .lock      held by the process that trains the run

scores.py has what a process that plays the run's checkpoints adds.
"""

import datetime
import json
import logging
import math
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import yaml

from kubebeast_common.atomic_file import write_atomically
from kubebeast_learner.machine.versions import describe_hardware, describe_versions
from kubebeast_learner.run.events import EventFile
from kubebeast_learner.run.lock import lock_run
from kubebeast_learner.run.table_file import TableFile, Value

logger = logging.getLogger(__name__)

# Named one by one: SLURM_JWT is a credential.
_SLURM_NAMES = ("JOB_ID", "JOB_NAME", "JOB_NODELIST", "ARRAY_JOB_ID", "ARRAY_TASK_ID", "PROCID", "NTASKS", "SUBMIT_DIR")


class RunLog:
    """The log files of one run; an existing folder is continued at the tick after its last. For one thread.

    A context manager: leaving it writes the end of the run, `successful` if it was set, and closes the files.
    """

    def __init__(self, savedir: Path, xpid: str) -> None:
        """Takes the folder. OSError when it cannot be written, ConfigError when another process trains the same run."""
        self.folder = savedir / xpid
        self.successful = False
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = lock_run(self.folder)
        self._handler = _OutLog(self.folder / "out.log", encoding="utf-8")
        self._handler.setFormatter(logging.Formatter("[%(levelname)s:%(process)d %(name)s %(asctime)s] %(message)s"))
        logging.getLogger().addHandler(self._handler)
        self._meta: dict[str, Any] = {}
        self._table = TableFile(self.folder / "logs.csv", self.folder / "fields.csv")
        self._events = EventFile(self.folder / "tensorboard")

    def record(self, settings: Mapping[str, Any]) -> None:
        """The run starts with `settings`, plain values: meta.json and config.yaml hold them from now on.

        Before this a run that there was already keeps what its folder says of it.
        """
        self._meta = {
            "args": dict(settings),
            "date_end": None,
            "date_start": _now(),
            "git": _git_commit(),
            "hardware": describe_hardware(),
            "slurm": _slurm_job(),
            "successful": False,
            "versions": describe_versions(),
            "xpid": self.folder.name,
        }
        self._write_meta()
        text = yaml.safe_dump(dict(settings), sort_keys=False)
        (self.folder / "config.yaml").write_text(text, encoding="utf-8")
        _point_latest(self.folder)

    def note_environment(self, env_id: str, env_config: Mapping[str, Any] | None) -> None:
        """Writes into meta.json what is trained on; env_config: plain values, None where it is not known."""
        self._meta["environment"] = {"env": env_id, **(env_config or {})}
        self._write_meta()

    def log(self, values: Mapping[str, Value]) -> None:
        """Appends one row to logs.csv and its numbers to TensorBoard at the number "step".

        OSError when the disk is full.
        """
        self._table.append(values)
        numbers = {name: x for name, x in values.items() if isinstance(x, (int, float)) and math.isfinite(x)}
        self._events.add(numbers, int(numbers.pop("step")))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error_type: type[BaseException] | None, *error: object) -> None:
        logging.getLogger().removeHandler(self._handler)
        if self._meta:
            self._meta |= {"successful": self.successful and error_type is None, "date_end": _now()}
        for finish in (self._write_meta, self._table.close, self._events.close, self._handler.close, self._lock.close):
            try:
                finish()
            except OSError as error_of_file:  # a full disk: the others still want to be closed
                logger.error("the logs in %s are not whole: %s", self.folder, error_of_file)

    def _write_meta(self) -> None:
        """Nothing before `record`."""
        if self._meta:
            text = json.dumps(self._meta, indent=4, sort_keys=True) + "\n"
            write_atomically(self.folder / "meta.json", text.encode())


class _OutLog(logging.FileHandler):
    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        """A full disk costs the file a line, which the terminal has too."""


def default_xpid() -> str:
    """A run name from the date, e.g. kubebeast-20260131-142501."""
    return f"kubebeast-{datetime.datetime.now():%Y%m%d-%H%M%S}"


def _now() -> str:
    return datetime.datetime.now().isoformat(sep=" ")


def _slurm_job() -> dict[str, str]:
    return {name.lower(): os.environ[f"SLURM_{name}"] for name in _SLURM_NAMES if f"SLURM_{name}" in os.environ}


def _point_latest(folder: Path) -> None:
    """A failure is only logged: some file systems have no symlinks."""
    savedir = folder.parent
    unfinished = savedir / f".latest-{os.getpid()}"
    try:
        unfinished.unlink(missing_ok=True)
        unfinished.symlink_to(folder.name, target_is_directory=True)
        os.replace(unfinished, savedir / "latest")
    except OSError as error:
        logger.warning("cannot point %s at the run: %s", savedir / "latest", error)


def _git_commit() -> dict[str, Any] | None:
    """The commit of the working folder, None outside of a repository or without git."""

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
