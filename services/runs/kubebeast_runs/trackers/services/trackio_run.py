"""A run of Trackio."""

import importlib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubebeast_runs.trackers.services.facts import facts_of
from kubebeast_runs.trackers.services.kept import KeptName
from kubebeast_runs.trackers.services.options import ServiceOptions
from kubebeast_runs.weights import NAME as WEIGHTS


@dataclass(frozen=True, kw_only=True, slots=True)
class TrackioOptions(ServiceOptions):
    """Options of Trackio."""

    project: str = "kubebeast"
    """Project."""
    space_id: str = ""
    """Hugging Face Space that receives the numbers; if empty, TRACKIO_SPACE_ID, else none."""
    server_url: str = ""
    """Server that receives the numbers; if empty, TRACKIO_SERVER_URL, else none: they stay in TRACKIO_DIR."""
    private: bool = True
    """Make a new Space private."""


class TrackioRun:
    """One run of Trackio for all processes of a run: its project and name are kept in the folder."""

    def __init__(self, folder: Path, options: TrackioOptions, learner_pid: int) -> None:
        self._trackio: Any = importlib.import_module("trackio")
        self._options, self._kept = options, KeptName(folder, "trackio")
        warned = warnings.catch_warnings(record=True).__enter__()
        assert warned is not None
        self._warned = warned
        warnings.simplefilter("always")
        self._run: Any = None

    def begin(self, meta: Mapping[str, Any]) -> None:
        name = {"project": self._options.project, "name": meta["xpid"]}
        is_new = self._kept.read() != name
        self._run = self._trackio.init(
            **name,
            space_id=self._options.space_id or None,
            server_url=self._options.server_url or None,
            private=self._options.private,
            config={**meta["args"], "facts": facts_of(meta)},
            resume="never" if is_new else "allow",
            embed=False,
            auto_log_cpu=False,
            auto_log_gpu=False,
        )
        self._kept.write(**name)

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        self._run.log(dict(numbers), step=step)
        self._raise_warnings()

    def artifact(self, step: int, path: Path) -> None:
        artifact = self._trackio.Artifact(f"weights-{self._run.name}", type="model", metadata={"step": step})
        artifact.add_file(str(path), name=WEIGHTS)
        self._run.log_artifact(artifact, aliases=[f"step-{step}"])

    def end(self, *, successful: bool) -> None:
        self._run.finish()
        self._raise_warnings()

    def _raise_warnings(self) -> None:
        """Raises OSError with the newest warning, if there is one: Trackio reports failed writes in no other way."""
        texts = [str(warned.message) for warned in self._warned if "trackio" in warned.filename]
        self._warned.clear()
        if texts:
            raise OSError(texts[-1])
