"""Everything that a run's folder tells, finished or not."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors

from kubebeast_learner import weights_file
from kubebeast_learner.checkpoint import CheckpointStore
from kubebeast_learner.config import ConfigError
from kubebeast_learner.env_spec import EnvSpec
from kubebeast_learner.plot.curve import Curve, read_curve
from kubebeast_learner.report.log_table import LogTable, read_log
from kubebeast_learner.report.out_log import OutLog, read_out_log


@dataclass(frozen=True, slots=True)
class CheckpointFile:
    name: str
    step: int | None
    num_bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class RunFolder:
    name: str
    meta: Mapping[str, Any]
    """Of meta.json, empty where there is none that can be read."""
    log: LogTable
    curve: Curve | None
    """None before the first row of logs.csv."""
    out_log: OutLog
    env_spec: EnvSpec | None
    """None where no weights were saved."""
    checkpoints: list[CheckpointFile]
    """The newest first, then the weights."""

    def record(self, name: str) -> Mapping[str, Any]:
        """A mapping of meta.json's; empty where it has none of that name."""
        value = self.meta.get(name)
        return value if isinstance(value, dict) else {}

    @property
    def env_id(self) -> str:
        """ "" where nothing tells."""
        of_spec = "" if self.env_spec is None else self.env_spec.env_id
        return str(self.record("args").get("env") or of_spec or self.out_log.env_spec.partition(",")[0])


def find_run(name: str, savedir: Path) -> Path:
    """The folder `name`, or the run of that name under savedir. ConfigError when neither is a run's folder."""
    folders = (Path(name).expanduser(), savedir.expanduser() / name)
    for folder in folders:
        if any((folder / file).is_file() for file in ("meta.json", "logs.csv")):
            return folder.resolve()
    places = " or ".join(map(str, dict.fromkeys(folders)))
    raise ConfigError(f"run = {name!r}: there is neither a meta.json nor a logs.csv in {places}")


def read_run(folder: Path) -> RunFolder:
    """Reads what is there; what is missing or damaged is left out."""
    try:
        curve = read_curve(folder)
    except ConfigError:
        curve = None
    return RunFolder(
        name=folder.name,
        meta=_meta(folder / "meta.json"),
        log=read_log(folder),
        curve=curve,
        out_log=read_out_log(folder),
        env_spec=_env_spec(folder / weights_file.NAME),
        checkpoints=_checkpoints(folder),
    )


def _meta(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _env_spec(path: Path) -> EnvSpec | None:
    try:
        return EnvSpec.from_plain(weights_file.read(path)["env_spec"])
    except (OSError, ValueError, KeyError, TypeError, safetensors.SafetensorError):
        return None


def _checkpoints(folder: Path) -> list[CheckpointFile]:
    paths = [*CheckpointStore(folder, keep=1).paths(), folder / weights_file.NAME]
    return [_checkpoint(path) for path in paths if path.is_file()]


def _checkpoint(path: Path) -> CheckpointFile:
    step = re.search(r"(\d+)\.pt$", path.name)
    return CheckpointFile(path.name, int(step[1]) if step else None, path.stat().st_size)
