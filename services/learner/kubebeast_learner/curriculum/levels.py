"""Levels of a training: a curriculum of any kind, in texts for environments."""

import logging
import math
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from kubebeast_common.spec.episode_options import from_text, to_text
from kubebeast_common.user_code import describe
from kubebeast_learner.curriculum.base import Curriculum, CurriculumError
from kubebeast_learner.curriculum.listed import ListedLevels
from kubebeast_learner.curriculum.plain_state import plain

logger = logging.getLogger(__name__)


class Levels:
    """The curriculum of a run, called by one thread at a time. Thread-safe.

    Every method raises CurriculumError if the curriculum does, or returns an invalid value.
    """

    def __init__(self, name: str, curriculum: Curriculum, log_info: Sequence[str]) -> None:
        """`name` is the value of the setting curriculum, `log_info` the keys of the numbers in the info of episodes."""
        self.name = name
        self._curriculum = curriculum
        self._listed = curriculum if isinstance(curriculum, ListedLevels) and _has_its_methods(curriculum) else None
        self._log_info = log_info
        self._lock = threading.Lock()
        self._newest_state: Any = None
        """Newest result of state_dict."""

    def draw(self, count: int) -> list[str]:
        """Returns the levels of the next `count` episodes, as texts of their options."""
        if self._listed is not None:
            with self._lock:
                return self._listed.next_texts(count)
        return [self._draw() for _ in range(count)]

    def add(self, level: str, episode_return: float, length: int, info: Sequence[float]) -> None:
        """Records a finished episode; `level` is the text of its options, "" for an episode without a level."""
        if level and self._listed is not None:
            with self._lock:
                self._listed.note_return(level, episode_return)
        elif level:
            numbers = {key: number for key, number in zip(self._log_info, info, strict=False) if not math.isnan(number)}
            self._call("on_episode", from_text(level), episode_return, length, numbers)

    def numbers(self) -> dict[str, float]:
        """Returns numbers for the log, by name."""
        found = self._call("numbers")
        try:
            return {str(name): float(number) for name, number in (found or {}).items()}
        except Exception as error:  # the user's code may return anything
            raise self._error("numbers", f"returned {found!r:.200}, not names and numbers") from error

    def state_dict(self) -> dict[str, Any]:
        """Returns plain values for a checkpoint."""
        state = self._call("state_dict")
        is_plain = getattr(type(self._curriculum), "state_dict", None) is ListedLevels.state_dict  # and may be large
        try:
            self._newest_state = state if is_plain else plain(state)
        except ValueError as error:
            raise self._error("state_dict", f"returned a value without JSON: {error}") from error
        return {"curriculum": self.name, "state": self._newest_state}

    def rescued_state(self) -> dict[str, Any]:
        """Returns the present state if it can, else that of the last call of state_dict that could, and logs the error.

        For a checkpoint after an error, which may have been one of the curriculum. Never raises.
        """
        try:
            return self.state_dict()
        except CurriculumError as error:
            logger.warning("the checkpoint has an earlier state of the curriculum: %s", error)
            return {"curriculum": self.name, "state": self._newest_state}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Continues from a checkpoint, unless that is of another curriculum."""
        if saved.get("curriculum") == self.name and saved.get("state") is not None:
            self._call("load_state_dict", saved["state"])

    def _draw(self) -> str:
        level = self._call("next_level")
        try:
            return to_text(level)
        except ValueError as error:
            raise self._error("next_level", f"returned no options of an episode: {error}") from error

    def _call(self, method: str, *arguments: object) -> Any:
        """Returns the result of a method; None if the curriculum does not have it."""
        function = getattr(self._curriculum, method, None)
        if function is None:
            return None
        try:
            with self._lock:
                return function(*arguments)
        except Exception as error:  # the user's code may raise anything
            raise self._error(method, describe(error)) from error

    def _error(self, method: str, reason: str) -> CurriculumError:
        return CurriculumError(f"curriculum = {self.name!r}: {method}: {reason}")


def _has_its_methods(curriculum: ListedLevels) -> bool:
    """Returns True unless a subclass of the user replaces a method that the texts of levels pass by."""
    names = ("next_level", "on_episode")
    return all(getattr(type(curriculum), name) is getattr(ListedLevels, name) for name in names)
