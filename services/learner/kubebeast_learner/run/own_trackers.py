"""Trackers that the setting `tracker` names, module:Class."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from kubebeast_learner.config import ConfigError, RunConfig
from kubebeast_learner.config.plugins import describe, load_classes
from kubebeast_runs.trackers.own import MakeTracker, OwnTracker


def load_trackers(run: RunConfig) -> list[MakeTracker]:
    """Imports the classes, and returns a function for each that makes its tracker of a run.

    Both raise ConfigError: this one if a class cannot be imported or does not take its options, and those functions if
    it cannot be constructed or has no such methods.
    """
    return [partial(_make, name, make) for name, make in load_classes("tracker", run.tracker, run.tracker_options)]


def _make(name: str, make: Callable[[Path], Any], folder: Path) -> OwnTracker:
    try:
        return OwnTracker(name, make(folder))
    except Exception as error:  # the user's code may raise anything
        raise ConfigError(f"tracker = {name!r}: cannot be made: {describe(error)}") from error
