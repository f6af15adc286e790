"""A custom environment: a maze, a different one in every episode, trained from this folder with

kubebeast mono --env maze_env:Maze-v0 --num-actors 8 --unroll-length 20 --learning-rate 0.002 --entropy-cost 0.01
"""

from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))
"""Changes of row and column of the actions: 0 up, 1 right, 2 down, 3 left."""
GOAL_REWARD, STEP_REWARD = 1.0, -0.01
WALL_COLOUR, AGENT_COLOUR, GOAL_COLOUR = (90, 94, 104), (86, 180, 233), (230, 159, 0)
CELL_PIXELS = 16

Planes = NDArray[np.float32]
Cell = tuple[int, int]
"""Row and column."""


class Maze(gymnasium.Env[Planes, np.int64]):
    """A maze with its start at the upper left and its goal at the lower right. A move into a wall has no effect.

    Observations are float32 [3, size, size]: planes of the walls, the agent and the goal, 1 at their cells, else 0.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 8}  # noqa: RUF012 - as gymnasium declares it

    def __init__(self, size: int = 7, render_mode: str | None = None) -> None:
        """Creates a maze.

        Args:
            size: Rows and columns of the grid, including the walls around it; odd, at least 5.
            render_mode: "rgb_array" or None.

        Raises:
            ValueError: If the size is even or below 5.
        """
        if size < 5 or size % 2 == 0:
            raise ValueError(f"size = {size}: must be odd and at least 5")
        self.render_mode = render_mode
        self.observation_space = gymnasium.spaces.Box(0.0, 1.0, (3, size, size), np.float32)
        self.action_space = gymnasium.spaces.Discrete(len(MOVES))
        self._size = size
        self._start: Cell = (1, 1)
        self._goal: Cell = (size - 2, size - 2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Planes, dict[str, Any]]:
        super().reset(seed=seed)  # seeds np_random, the only source of randomness
        self._walls = self._carve()
        self._agent = self._start
        return self._planes(), {}

    def step(self, action: np.int64) -> tuple[Planes, float, bool, bool, dict[str, Any]]:
        ahead = _moved(self._agent, MOVES[action])
        if not self._walls[ahead]:
            self._agent = ahead
        terminated = self._agent == self._goal
        reward = GOAL_REWARD if terminated else STEP_REWARD
        return self._planes(), reward, terminated, False, {"success": terminated}

    def render(self) -> NDArray[np.uint8]:
        """Returns an image of the grid, uint8 [H, W, 3], with CELL_PIXELS rows and columns per cell."""
        cells = np.zeros((self._size, self._size, 3), np.uint8)
        cells[self._walls] = WALL_COLOUR
        cells[self._goal] = GOAL_COLOUR
        cells[self._agent] = AGENT_COLOUR
        return cells.repeat(CELL_PIXELS, axis=0).repeat(CELL_PIXELS, axis=1)

    def _planes(self) -> Planes:
        planes = np.zeros((3, self._size, self._size), np.float32)
        planes[0] = self._walls
        planes[1][self._agent] = 1.0
        planes[2][self._goal] = 1.0
        return planes

    def _carve(self) -> NDArray[np.bool_]:
        """Returns walls, bool [size, size], between rooms on odd rows and columns, with one path between any two rooms.

        A depth-first search opens neighboring rooms that are still closed, and goes back if there are none.
        """
        walls = np.ones((self._size, self._size), np.bool_)
        walls[self._start] = False
        way = [self._start]
        while way:
            closed = [move for move in MOVES if self._is_closed_room(walls, _moved(way[-1], move, 2))]
            if not closed:
                way.pop()
                continue
            move = closed[self.np_random.integers(len(closed))]
            walls[_moved(way[-1], move)] = False
            way.append(_moved(way[-1], move, 2))
            walls[way[-1]] = False
        return walls

    def _is_closed_room(self, walls: NDArray[np.bool_], cell: Cell) -> bool:
        return all(0 < place < self._size for place in cell) and bool(walls[cell])


def _moved(cell: Cell, move: Cell, steps: int = 1) -> Cell:
    return cell[0] + steps * move[0], cell[1] + steps * move[1]


gymnasium.register("Maze-v0", entry_point=f"{__name__}:Maze", max_episode_steps=100)
