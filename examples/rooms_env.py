"""Levels of a custom environment: mazes of 1, 2, 3, ... rooms in a row, trained from this folder with

kubebeast mono --env rooms_env:Rooms-v0 --curriculum progress --levels '{"rooms": [1, 2, 3, 4, 5, 6, 7, 8]}'
"""

from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))
"""Changes of row and column of the actions: 0 up, 1 right, 2 down, 3 left."""
SIDE = 3
"""Rows and columns of a room."""
SIGHT = 2
"""Cells that the agent sees in each direction, through walls."""
STEPS, STEPS_PER_ROOM = 60, 10
"""Steps of an episode, and further ones for each room, after which it is truncated."""
MAX_ROOMS = 1000

View = NDArray[np.float32]


class Rooms(gymnasium.Env[View, np.int64]):
    """A row of rooms with a door in each wall between them, and a goal in the last one. The reward of the goal is 1.

    The option `rooms` of a reset is their number, 1 by default. Doors, start and goal are at random. Observations are
    float32 [2 * (2 * SIGHT + 1) ** 2]: the cells around the agent, 1 for walls; then the same cells, 1 for the goal.
    """

    def __init__(self) -> None:
        self.observation_space = gymnasium.spaces.Box(0.0, 1.0, (2 * (2 * SIGHT + 1) ** 2,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(len(MOVES))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[View, dict[str, Any]]:
        super().reset(seed=seed)
        rooms = (options or {}).get("rooms", 1)
        if not isinstance(rooms, int) or not 1 <= rooms <= MAX_ROOMS:
            raise ValueError(f"options: rooms = {rooms!r}: must be a number from 1 to {MAX_ROOMS}")
        columns = rooms * (SIDE + 1)
        # A margin of walls around the rooms keeps each view inside the array.
        self._walls = np.ones((SIDE + 2 * SIGHT, columns + 2 * SIGHT), np.float32)
        self._walls[SIGHT:-SIGHT, SIGHT : SIGHT + columns - 1] = 0.0
        for wall in range(SIGHT + SIDE, SIGHT + columns - 1, SIDE + 1):
            self._walls[SIGHT:-SIGHT, wall] = 1.0
            self._walls[SIGHT + self.np_random.integers(SIDE), wall] = 0.0
        self._goal = np.zeros_like(self._walls)
        self._goal[self._free_cell(SIGHT + columns - 2)] = 1.0
        self._agent = self._free_cell(SIGHT)
        self._steps_left = STEPS + rooms * STEPS_PER_ROOM
        return self._view(), {}

    def step(self, action: np.int64) -> tuple[View, float, bool, bool, dict[str, Any]]:
        row, column = self._agent[0] + MOVES[action][0], self._agent[1] + MOVES[action][1]
        if not self._walls[row, column]:
            self._agent = row, column
        self._steps_left -= 1
        terminated = bool(self._goal[self._agent])
        truncated = self._steps_left == 0 and not terminated
        return self._view(), float(terminated), terminated, truncated, {"success": terminated}

    def _free_cell(self, column: int) -> tuple[int, int]:
        return SIGHT + int(self.np_random.integers(SIDE)), column

    def _view(self) -> View:
        row, column = self._agent
        window = np.s_[row - SIGHT : row + SIGHT + 1, column - SIGHT : column + SIGHT + 1]
        return np.concatenate([self._walls[window].ravel(), self._goal[window].ravel()])


gymnasium.register("Rooms-v0", entry_point=f"{__name__}:Rooms")
