"""Catch: a ball falls through a 10 × 5 board, and a paddle must be below it.

The game is that of bsuite (Osband et al. 2020, https://arxiv.org/abs/1908.03568). Importing this module registers
Catch-v0.
"""

from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

ROWS, COLUMNS = 10, 5
CELL_SIZE = 16
"""Side of a rendered cell in pixels."""
BACKGROUND, BALL, PADDLE = (24, 26, 32), (230, 159, 0), (86, 180, 233)

Board = NDArray[np.float32]


class Catch(gymnasium.Env[Board, np.int64]):
    """The game of Catch. Actions: 0 left, 1 stay, 2 right.

    An episode takes 9 decisions; the last reward is 1 for a catch, else -1, and its info has caught, a bool.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 8}  # noqa: RUF012 - as gymnasium declares it

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode = render_mode
        self.observation_space = gymnasium.spaces.Box(0.0, 1.0, (ROWS, COLUMNS), np.float32)
        self.action_space = gymnasium.spaces.Discrete(3)
        self._ball_row = self._ball_column = 0
        self._paddle = COLUMNS // 2

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Board, dict[str, Any]]:
        super().reset(seed=seed)
        self._ball_row = 0
        self._ball_column = int(self.np_random.integers(COLUMNS))
        self._paddle = COLUMNS // 2
        return self._board(), {}

    def step(self, action: np.int64) -> tuple[Board, float, bool, bool, dict[str, Any]]:
        self._paddle = min(max(self._paddle + int(action) - 1, 0), COLUMNS - 1)
        self._ball_row += 1
        landed = self._ball_row == ROWS - 1
        caught = self._ball_column == self._paddle
        reward = (1.0 if caught else -1.0) if landed else 0.0
        return self._board(), reward, landed, False, {"caught": landed and caught}

    def render(self) -> NDArray[np.uint8]:
        """Returns the board in color, CELL_SIZE pixels per cell; a caught ball covers the paddle."""
        cells = np.full((ROWS, COLUMNS, 3), BACKGROUND, np.uint8)
        cells[ROWS - 1, self._paddle] = PADDLE
        cells[self._ball_row, self._ball_column] = BALL
        return cells.repeat(CELL_SIZE, axis=0).repeat(CELL_SIZE, axis=1)

    def _board(self) -> Board:
        board = np.zeros((ROWS, COLUMNS), np.float32)
        board[self._ball_row, self._ball_column] = 1.0
        board[ROWS - 1, self._paddle] = 1.0
        return board


gymnasium.register("Catch-v0", entry_point=f"{__name__}:Catch")
