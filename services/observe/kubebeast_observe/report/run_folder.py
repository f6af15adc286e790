"""Contents of a run's folder, for finished and unfinished runs."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubebeast_common.spec.env_spec import EnvSpec
from kubebeast_observe.report.out_log import OutLog, read_out_log
from kubebeast_runs.checkpoints import list_checkpoints
from kubebeast_runs.folder import read_meta
from kubebeast_runs.log_table import NO_LOG, LogTable, read_log
from kubebeast_runs.scores import evaluators_in, read_scores
from kubebeast_runs.storage.local import LocalStorage
from kubebeast_runs.weights import NAME as WEIGHTS
from kubebeast_runs.weights import read_env_spec


@dataclass(frozen=True, slots=True)
class CheckpointFile:
    name: str
    step: int | None
    num_bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class RunFolder:
    name: str
    meta: Mapping[str, Any]
    """Contents of meta.json; empty if it is missing or unreadable."""
    log: LogTable
    scores: Mapping[str, LogTable]
    """Scores of the checkpoints that `kubebeast eval --follow` has played, by the evaluator; "" is the one without a
    name."""
    out_log: OutLog
    env_spec: EnvSpec | None
    """None if there is no readable weights file."""
    checkpoints: list[CheckpointFile]
    """The newest first, then the weights."""

    def record(self, name: str) -> Mapping[str, Any]:
        """Returns a mapping of meta.json; empty if it has none of that name."""
        value = self.meta.get(name)
        return value if isinstance(value, dict) else {}

    @property
    def env_id(self) -> str:
        """Returns the environment's id; "" if it is unknown."""
        of_spec = "" if self.env_spec is None else self.env_spec.env_id
        return str(self.record("args").get("env") or of_spec or self.out_log.env_spec.partition(",")[0])


def read_run(folder: Path) -> RunFolder:
    """Reads the folder; missing or damaged files are left out."""
    return RunFolder(
        name=folder.name,
        meta=read_meta(folder),
        log=_log(folder),
        scores=_scores(folder),
        out_log=read_out_log(folder),
        env_spec=read_env_spec(folder / WEIGHTS),
        checkpoints=_checkpoints(folder),
    )


def _log(folder: Path) -> LogTable:
    try:
        return read_log(folder)
    except OSError:
        return NO_LOG


def _scores(folder: Path) -> dict[str, LogTable]:
    files = LocalStorage(folder)
    try:
        return {evaluator: read_scores(files, evaluator) for evaluator in evaluators_in(files)}
    except OSError:
        return {}


def _checkpoints(folder: Path) -> list[CheckpointFile]:
    storage = LocalStorage(folder)
    found = [CheckpointFile(saved.file.name, saved.step, saved.file.num_bytes) for saved in list_checkpoints(storage)]
    return found + [CheckpointFile(WEIGHTS, None, file.num_bytes) for file in storage.files() if file.name == WEIGHTS]
