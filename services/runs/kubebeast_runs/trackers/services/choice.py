"""The services that the setting `tracker` may name."""

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from kubebeast_common.settings import ConfigError
from kubebeast_runs.trackers.services.mlflow_run import MlflowOptions, MlflowRun
from kubebeast_runs.trackers.services.options import ServiceOptions, parse_options
from kubebeast_runs.trackers.services.trackio_run import TrackioOptions, TrackioRun
from kubebeast_runs.trackers.services.wandb_run import WandbOptions, WandbRun


class ServiceRun(Protocol):
    """A run of a service, in the process of its tracker. Methods block, and may raise anything."""

    def begin(self, meta: Mapping[str, Any]) -> None:
        """Begins the run, or continues that of an earlier process; `meta` is the content of meta.json."""

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        """Takes the numbers of a row by their tags."""

    def artifact(self, step: int, path: Path) -> None:
        """Uploads the file with the weights of `step`, which is deleted afterwards."""

    def end(self, *, successful: bool) -> None:
        """Ends the process's part of the run."""


@dataclass(frozen=True, slots=True)
class Service:
    """A service: its options, and its run of a folder, options and pid of the learner."""

    options: type[ServiceOptions]
    run: Callable[[Path, Any, int], ServiceRun]


SERVICES: Mapping[str, Service] = {
    "wandb": Service(WandbOptions, WandbRun),
    "mlflow": Service(MlflowOptions, MlflowRun),
    "trackio": Service(TrackioOptions, TrackioRun),
}
"""Services by their NAMES."""


def service_options(name: str, given: Mapping[str, Any]) -> ServiceOptions:
    """Returns the options of the service `name`.

    Raises ConfigError if its package is not installed, for an unknown option, and for a value of another type.
    """
    package = importlib.util.find_spec(name)
    if package is None or package.origin is None:  # a folder of that name, such as W&B's own, is no package
        reason = f"its package is missing: pip install 'kubebeast-runs[{name}]'"
        raise ConfigError(f"tracker = {name!r}: {reason}")
    return parse_options(name, SERVICES[name].options, given)
