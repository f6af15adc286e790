"""The interface of a curriculum."""

from collections.abc import Mapping
from typing import Any, Protocol

Level = Mapping[str, Any]
"""Options of a reset, a JSON object. The same options are the same level."""


class CurriculumError(RuntimeError):
    """A curriculum has raised, or has returned an invalid value; the message names it and its method."""


class Curriculum(Protocol):
    """A choice of levels: `Class(levels, seed, **options)` with the levels of the setting, which may be none.

    Its methods are called one at a time. One of the user's own needs only the first two.
    """

    def next_level(self) -> Level:
        """Returns the level of an episode that will begin soon."""

    def on_episode(self, level: Level, episode_return: float, length: int, info: Mapping[str, float]) -> None:
        """Receives a finished episode of a level that was chosen earlier, perhaps by an earlier process of the run.

        Args:
            level: The level, as its JSON is read.
            episode_return: Sum of the unclipped rewards.
            length: Number of decisions.
            info: Numbers in the info of the last step, by keys of log_info; without keys that had none.
        """

    def numbers(self) -> Mapping[str, float]:
        """Returns numbers for the log, by names without a slash, always the same names."""

    def state_dict(self) -> Mapping[str, Any]:
        """Returns plain values for a checkpoint."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues from a checkpoint of the same class, perhaps with other levels."""
