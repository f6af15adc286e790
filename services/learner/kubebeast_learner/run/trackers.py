"""Trackers that the setting `tracker` names: services, and classes of the user's own, module:Class."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from kubebeast_learner.config import ConfigError, RunConfig
from kubebeast_learner.config.checks import parse_object
from kubebeast_learner.config.plugins import describe, load_classes
from kubebeast_runs.trackers.own import MakeTracker, OwnTracker
from kubebeast_runs.trackers.services import NAMES
from kubebeast_runs.trackers.services.choice import service_options
from kubebeast_runs.trackers.services.service_tracker import ServiceTracker


def load_trackers(run: RunConfig) -> list[MakeTracker]:
    """Imports the classes, and returns a function for each tracker that makes it for a run.

    Both raise ConfigError: this one if a class cannot be imported, a service's package is missing, or one does not take
    its options; and those functions if a class cannot be constructed or has no such methods.
    """
    options = parse_object("tracker_options", run.tracker_options)
    services: list[MakeTracker] = [
        partial(ServiceTracker, name, service_options(name, options.get(name, {})))
        for name in run.tracker
        if name in NAMES
    ]
    own = [name for name in run.tracker if name not in NAMES]
    classes = load_classes("tracker", own, run.tracker_options)
    return services + [partial(_make, name, make) for name, make in classes]


def _make(name: str, make: Callable[[Path], Any], folder: Path) -> OwnTracker:
    try:
        return OwnTracker(name, make(folder))
    except Exception as error:  # the user's code may raise anything
        raise ConfigError(f"tracker = {name!r}: cannot be made: {describe(error)}") from error
