"""An environment of one's own: a maze, another in every episode, trained from this folder with

kubebeast mono --env maze_env:Maze-v0 --num-actors 8 --unroll-length 20 --learning-rate 0.002 --entropy-cost 0.01
"""

from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))
"""Rows and columns that an action moves by: 0 up, 1 right, 2 down, 3 left."""
GOAL_REWARD, STEP_REWARD = 1.0, -0.01
WALL_COLOUR, AGENT_COLOUR, GOAL_COLOUR = (90, 94, 104), (86, 180, 233), (230, 159, 0)
CELL_PIXELS = 16

Planes = NDArray[np.float32]
Cell = tuple[int, int]
"""Row and column."""


class Maze(gymnasium.Env[Planes, np.int64]):
    """The way from the upper left to the lower right. A move into a wall leaves the agent where it is.

    observation: float32 [3, size, size], planes of the walls, the agent and the goal, 1 where there is one, else 0.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 8}  # noqa: RUF012 - as gymnasium declares it

    def __init__(self, size: int = 7, render_mode: str | None = None) -> None:
        """size: rows and columns of the grid, the walls around it included: odd, at least 5."""
        if size < 5 or size % 2 == 0:
            raise ValueError(f"size = {size}: must be odd and at least 5")
        self.render_mode = render_mode
        self.observation_space = gymnasium.spaces.Box(0.0, 1.0, (3, size, size), np.float32)
        self.action_space = gymnasium.spaces.Discrete(len(MOVES))
        self._size = size
        self._start: Cell = (1, 1)
        self._goal: Cell = (size - 2, size - 2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Planes, dict[str, Any]]:
        super().reset(seed=seed)  # np_random, the only source of chance, starts from the seed
        self._walls = self._carve()
        self._agent = self._start
        return self._planes(), {}

    def step(self, action: np.int64) -> tuple[Planes, float, bool, bool, dict[str, Any]]:
        ahead = _moved(self._agent, MOVES[action])
        if not self._walls[ahead]:
            self._agent = ahead
        terminated = self._agent == self._goal
        return self._planes(), GOAL_REWARD if terminated else STEP_REWARD, terminated, False, {}

    def render(self) -> NDArray[np.uint8]:
        """uint8 [H, W, 3]: the grid in colour, CELL_PIXELS a cell."""
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
        """bool [size, size]: walls between rooms on odd rows and columns, with one way between any two of them.

        A walk breaks into rooms that it has not seen yet, and turns back where there is none (depth-first search).
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
