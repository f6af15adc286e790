"""Curricula of a user."""

from collections.abc import Mapping, Sequence
from typing import Any


class Stairs:
    """One level higher after each episode of the newest level, and no level above the top."""

    def __init__(self, levels: Sequence[Mapping[str, Any]], seed: int, top: int = 1000) -> None:
        self._height, self._top = 0, top

    def next_level(self) -> dict[str, Any]:
        if self._height > self._top:
            raise RuntimeError("there is no level above the top")
        return {"level": self._height}

    def on_episode(
        self, level: Mapping[str, Any], episode_return: float, length: int, info: Mapping[str, float]
    ) -> None:
        if episode_return == self._height == info["level"]:
            self._height += 1

    def numbers(self) -> dict[str, float]:
        return {"height": self._height}

    def state_dict(self) -> dict[str, Any]:
        return {"height": self._height}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._height = state["height"]


class Mazes:
    """Levels of almost the largest size."""

    def __init__(self, levels: Sequence[Mapping[str, Any]], seed: int) -> None:
        self._num_levels = self._num_episodes = 0

    def next_level(self) -> dict[str, Any]:
        self._num_levels += 1
        return {"level": self._num_levels % 100, "walls": f"{self._num_levels:04000x}"}

    def on_episode(self, *episode: object) -> None:
        self._num_episodes += 1

    def numbers(self) -> dict[str, float]:
        return {"episodes": self._num_episodes}
