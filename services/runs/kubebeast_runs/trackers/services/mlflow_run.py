"""A run of MLflow."""

import importlib
import itertools
import os
import posixpath
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubebeast_runs.trackers.services.facts import FIRST_CHARTS, facts_of, flat
from kubebeast_runs.trackers.services.kept import KeptName
from kubebeast_runs.trackers.services.options import ServiceOptions

MAX_TEXT = 500
"""Characters of a param or tag: every version of MLflow since 1.28 takes as many."""
_BATCH = 100
"""Params or tags in one call, at most."""
_OTHERS = re.compile(r"[^\w\-. :/]", re.ASCII)
"""Characters that MLflow does not take in names."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MlflowOptions(ServiceOptions):
    """Options of MLflow."""

    tracking_uri: str = ""
    """Server or store; if empty, MLFLOW_TRACKING_URI, else mlflow.db beside the folders of the runs."""
    experiment: str = ""
    """Experiment; if empty, MLFLOW_EXPERIMENT_NAME, else kubebeast."""


class MlflowRun:
    """One run of MLflow for all processes of a run: its id is kept in the folder."""

    def __init__(self, folder: Path, options: MlflowOptions, learner_pid: int) -> None:
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
        # By default, a call to a server that is gone returns after minutes.
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", str(max(1, int(options.timeout_s / 4))))
        self._mlflow: Any = importlib.import_module("mlflow")
        self._entities: Any = importlib.import_module("mlflow.entities")
        self._uri = options.tracking_uri or os.environ.get("MLFLOW_TRACKING_URI") or _local_store(folder)
        self._experiment = options.experiment or os.environ.get("MLFLOW_EXPERIMENT_NAME") or "kubebeast"
        self._folder, self._kept = folder, KeptName(folder, "mlflow")
        self._client: Any = None
        self._run_id = ""

    def begin(self, meta: Mapping[str, Any]) -> None:
        self._client = self._mlflow.MlflowClient(self._uri)
        kept = self._kept.read()
        if kept.get("tracking_uri") == self._uri:
            self._run_id = kept["run_id"]
            self._client.update_run(self._run_id, status="RUNNING")
        else:
            self._run_id = self._client.create_run(self._experiment_id(), run_name=meta["xpid"]).info.run_id
            self._kept.write(run_id=self._run_id, tracking_uri=self._uri)
        self._describe(meta)

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        now_ms = int(time.time() * 1000)
        metrics = [self._entities.Metric(_name(tag), value, now_ms, step) for tag, value in numbers.items()]
        self._client.log_batch(self._run_id, metrics=metrics)

    def artifact(self, step: int, path: Path) -> None:
        self._client.log_artifact(self._run_id, str(path), f"checkpoints/step-{step:012d}")

    def end(self, *, successful: bool) -> None:
        self._client.set_terminated(self._run_id, "FINISHED" if successful else "FAILED")

    def _experiment_id(self) -> str:
        found = self._client.get_experiment_by_name(self._experiment)
        if found is not None:
            return str(found.experiment_id)
        # A server has a place for artifacts of its own.
        place = (self._folder.parent / "mlartifacts").as_uri() if self._uri == _local_store(self._folder) else None
        return str(self._client.create_experiment(self._experiment, artifact_location=place))

    def _describe(self, meta: Mapping[str, Any]) -> None:
        """Sends settings as params and facts as tags. A param cannot change: a changed setting is a tag, too."""
        settings = {_name(name): text[:MAX_TEXT] for name, text in flat(meta["args"]).items()}
        before = self._client.get_run(self._run_id).data.params
        changed = {f"changed.{name}": text for name, text in settings.items() if before.get(name, text) != text}
        tags = {_name(name): text[:MAX_TEXT] for name, text in flat(facts_of(meta)).items()} | changed
        tags["mlflow.source.name"] = "kubebeast"
        tags["mlflow.source.git.commit"] = (meta.get("git") or {}).get("commit", "")
        tags["mlflow.note.content"] = "Charts to look at first: " + ", ".join(f"`{tag}`" for tag in FIRST_CHARTS)
        for part in _parts({name: text for name, text in settings.items() if name not in before}):
            self._client.log_batch(self._run_id, params=[self._entities.Param(*item) for item in part])
        for part in _parts({name: text for name, text in tags.items() if text}):
            self._client.log_batch(self._run_id, tags=[self._entities.RunTag(*item) for item in part])


def _local_store(folder: Path) -> str:
    return f"sqlite:///{folder.parent / 'mlflow.db'}"


def _name(text: str) -> str:
    """Returns the nearest name that MLflow takes."""
    return posixpath.normpath(_OTHERS.sub("_", text)).lstrip("./") or "_"


def _parts(texts: Mapping[str, str]) -> Iterator[tuple[tuple[str, str], ...]]:
    items = iter(texts.items())
    while part := tuple(itertools.islice(items, _BATCH)):
        yield part
