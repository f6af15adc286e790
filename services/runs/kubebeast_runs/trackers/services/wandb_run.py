"""A run of Weights & Biases."""

import importlib
import os
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from kubebeast_runs.trackers.services.facts import FIRST_CHARTS, facts_of
from kubebeast_runs.trackers.services.kept import KeptName
from kubebeast_runs.trackers.services.options import ServiceOptions
from kubebeast_runs.weights import NAME as WEIGHTS

_MAX_NAME = 50
"""Characters of the run's name in its id; W&B takes ids of 128."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WandbOptions(ServiceOptions):
    """Options of Weights & Biases."""

    project: str = ""
    """Project; if empty, WANDB_PROJECT, else kubebeast."""
    entity: str = ""
    """User or team; if empty, WANDB_ENTITY, else the default of the account."""
    group: str = ""
    """Group of runs, e.g. of several seeds."""
    tags: tuple[str, ...] = ()
    """Tags of the run."""
    mode: Literal["", "online", "offline"] = ""
    """offline writes only to the folder of the run, for `wandb sync`; if empty, WANDB_MODE, else online."""
    system_metrics: bool = True
    """Record the use of CPU, GPU and memory by the learner, every 15 seconds."""


class WandbRun:
    """One run of W&B for all processes of a run: its id is kept in the folder."""

    def __init__(self, folder: Path, options: WandbOptions, learner_pid: int) -> None:
        """learner_pid: process of the learner, for its use of CPU, GPU and memory."""
        # Artifacts of an offline run stay there until they are uploaded.
        os.environ.setdefault("WANDB_DATA_DIR", str(folder / "wandb" / "data"))
        os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
        self._wandb: Any = importlib.import_module("wandb")
        self._folder, self._options, self._learner_pid = folder, options, learner_pid
        self._kept = KeptName(folder, "wandb")
        self._run: Any = None

    def begin(self, meta: Mapping[str, Any]) -> None:
        run_id = self._kept.read().get("id", "")
        if not run_id:
            name = re.sub(r"[^\w-]", "-", meta["xpid"], flags=re.ASCII)
            run_id = f"{name[:_MAX_NAME]}-{uuid.uuid4().hex[:8]}"
            self._kept.write(id=run_id)
        self._run = self._wandb.init(
            project=self._options.project or os.environ.get("WANDB_PROJECT") or "kubebeast",
            entity=self._options.entity or None,
            group=self._options.group or None,
            tags=self._options.tags or None,
            mode=self._options.mode or None,
            id=run_id,
            name=meta["xpid"],
            resume="allow",
            dir=self._folder,
            settings=self._settings(),
        )
        self._run.config.update({**meta["args"], "facts": facts_of(meta)}, allow_val_change=True)
        # W&B drops rows with a smaller step of its own than the newest, such as those after a resume.
        self._run.define_metric("step", hidden=True)
        self._run.define_metric("*", step_metric="step")
        self._run.define_metric(FIRST_CHARTS[0], step_metric="step", summary="max")

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        self._run.log({**numbers, "step": step})

    def artifact(self, step: int, path: Path) -> None:
        artifact = self._wandb.Artifact(f"weights-{self._run.id}", type="model", metadata={"step": step})
        artifact.add_file(str(path), name=WEIGHTS)
        self._run.log_artifact(artifact, aliases=[f"step-{step}"])

    def end(self, *, successful: bool) -> None:
        self._run.finish(exit_code=0 if successful else 1)

    def _settings(self) -> Any:
        return self._wandb.Settings(
            silent=True,
            console="off",
            disable_code=True,
            disable_git=True,
            x_disable_meta=True,  # it would describe this process, not the learner
            x_save_requirements=False,
            x_disable_stats=not self._options.system_metrics,
            x_stats_pid=self._learner_pid,
        )
