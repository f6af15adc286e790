"""A curriculum of your own: mazes that grow as they are solved. Run it from this folder:

kubebeast mono --env rooms_env:Rooms-v0 --curriculum my_curriculum:Stairs --curriculum-options '{"most": 8}'
"""

from collections.abc import Mapping, Sequence
from typing import Any


class Stairs:
    """The next larger maze once the newest one is solved four times out of five."""

    def __init__(self, levels: Sequence[Mapping[str, Any]], seed: int, most: int = 32) -> None:
        self._rooms, self._most, self._success = 1, most, 0.0

    def next_level(self) -> dict[str, Any]:
        return {"rooms": self._rooms}

    def on_episode(
        self, level: Mapping[str, Any], episode_return: float, length: int, info: Mapping[str, float]
    ) -> None:
        if level["rooms"] == self._rooms:
            self._success += 0.1 * (float(episode_return > 0) - self._success)
        if self._success > 0.8 and self._rooms < self._most:
            self._rooms, self._success = self._rooms + 1, 0.0
