"""Trackers that the setting `tracker` names, module:Class."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from kubebeast_learner.config import ConfigError, RunConfig
from kubebeast_learner.config.checks import parse_object
from kubebeast_learner.config.plugins import check_options, describe, load_object
from kubebeast_runs.trackers.own import MakeTracker, OwnTracker


def load_trackers(run: RunConfig) -> list[MakeTracker]:
    """Imports the classes, and returns a function for each that makes its tracker of a run.

    Both raise ConfigError: this one if a class cannot be imported or does not take its options, and those functions if
    it cannot be constructed or has no such methods.
    """
    options = parse_object("tracker_options", run.tracker_options)
    return [_load(name, options.get(name, {}), run.tracker_options) for name in run.tracker]


def _load(name: str, options: Mapping[str, Any], text: str) -> MakeTracker:
    tracker = load_object("tracker", name)
    if not callable(tracker):
        raise ConfigError(f"tracker = {name!r}: must be a class, it is {tracker!r}")
    check_options("tracker_options", text, tracker, 1, options)
    return partial(_make, name, tracker, options)


def _make(name: str, tracker: Any, options: Mapping[str, Any], folder: Path) -> OwnTracker:
    try:
        return OwnTracker(name, tracker(folder, **options))
    except Exception as error:  # the user's code may raise anything
        raise ConfigError(f"tracker = {name!r}: cannot be made: {describe(error)}") from error
