"""Callbacks that the setting `callback` names, module:Class: code of the user's own that a training calls."""

import logging
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from kubebeast_learner.config import ConfigError, RunConfig
from kubebeast_learner.config.plugins import describe, load_classes
from kubebeast_learner.run.task_returns import FinishedEpisode

logger = logging.getLogger(__name__)

METHODS = ("on_update", "on_episode", "on_checkpoint", "on_end")


class CallbackError(RuntimeError):
    """A callback has raised; the message names it, its method and the error."""


class Callbacks:
    """The callbacks of a run, each called in the order of the setting. For the thread that trains, which they block.

    All methods may raise CallbackError.
    """

    def __init__(self, named: Sequence[tuple[str, object]] = ()) -> None:
        """named: pairs of module:Class and object. Raises ConfigError for an object without a method of METHODS, or
        with another one that begins with "on_".
        """
        for name, callback in named:
            found = [each for each in dir(callback) if each.startswith("on_")]
            if unknown := [each for each in found if each not in METHODS]:
                raise ConfigError(f"callback = {name!r}: {unknown[0]} is none of {', '.join(METHODS)}")
            if not found:
                raise ConfigError(f"callback = {name!r}: it has none of {', '.join(METHODS)}")
        self._named = named
        self.end = ""
        """Reason for the end of the run, as a method has returned a true value; "" if none has."""

    def on_update(self, step: int, numbers: Mapping[str, float]) -> None:
        """step: env-steps after the update. numbers: parts of the loss, gradient norm, schedules, by their columns."""
        self._call("on_update", step, numbers)

    def on_episode(self, step: int, episode: FinishedEpisode) -> None:
        """step: env-steps at the time when the end of the episode is known."""
        self._call("on_episode", step, episode)

    def on_checkpoint(self, step: int, place: str) -> None:
        """place: path or URL of a checkpoint that has been saved."""
        self._call("on_checkpoint", step, place)

    def on_end(self, step: int, error: str) -> None:
        """Is the last call, for each callback even if another raises. error: "" if the process ends well; else an error
        of a callback is only logged, as are all but the first.
        """
        named, self._named, failures = self._named, (), []
        for each in named:
            try:
                self._call_one(each, "on_end", step, error)
            except CallbackError as another:
                failures.append(another)
        for failure in failures if error else failures[1:]:
            logger.error("%s", failure)
        if failures and not error:
            raise failures[0]

    def _call(self, method: str, *arguments: object) -> None:
        for each in self._named:
            self._call_one(each, method, *arguments)

    def _call_one(self, named: tuple[str, object], method: str, *arguments: object) -> None:
        name, callback = named
        function = getattr(callback, method, None)
        try:
            wants_end = function is not None and bool(function(*arguments))
        except Exception as error:  # the user's code may raise anything
            raise CallbackError(f"callback = {name!r}: {method}: {describe(error)}") from error
        if wants_end and not self.end:
            self.end = f"{method} of {name} has returned a true value"


def load_callbacks(run: RunConfig) -> "partial[Callbacks]":
    """Imports the classes, and returns a function from the folder of the run to its callbacks.

    Both raise ConfigError: this one if a class cannot be imported or does not take its options, and that function if
    it cannot be constructed or has other methods than Callbacks takes.
    """
    return partial(_make, load_classes("callback", run.callback, run.callback_options))


def _make(classes: Sequence[tuple[str, Any]], folder: Path) -> Callbacks:
    named = []
    for name, make in classes:
        try:
            named.append((name, make(folder)))
        except Exception as error:  # the user's code may raise anything
            raise ConfigError(f"callback = {name!r}: cannot be made: {describe(error)}") from error
    return Callbacks(named)
