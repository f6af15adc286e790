"""An observation of two leaves that are both needed: Catch with the ball in an image and the paddle in a vector.

kubebeast mono --env split_catch:SplitCatch-v0 --num-actors 8 --unroll-length 10 --batch-size 8 \
    --learning-rate 0.003 --entropy-cost 0.01 --total-steps 200000
"""

from typing import Any

import gymnasium
import numpy as np

ROWS, COLUMNS = 10, 5

Observation = dict[str, Any]


class SplitCatch(gymnasium.Env[Observation, np.int64]):
    """Catch with the actions 0 left, 1 stay, 2 right. An episode takes 9 decisions; the last reward is 1 or -1.

    Observations: "ball" uint8 [10, 5, 1], 255 at the ball; "paddle" float32 [5], 1 at its column. The paddle begins in
    a random column and wraps around the edges, so that its position cannot be inferred from past actions.
    """

    def __init__(self) -> None:
        self.observation_space = gymnasium.spaces.Dict(
            ball=gymnasium.spaces.Box(0, 255, (ROWS, COLUMNS, 1), np.uint8),
            paddle=gymnasium.spaces.Box(0.0, 1.0, (COLUMNS,), np.float32),
        )
        self.action_space = gymnasium.spaces.Discrete(3)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        super().reset(seed=seed)
        self._row = 0
        self._column, self._paddle = (int(place) for place in self.np_random.integers(COLUMNS, size=2))
        return self._observation(), {}

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        self._paddle = (self._paddle + int(action) - 1) % COLUMNS
        self._row += 1
        landed = self._row == ROWS - 1
        reward = (1.0 if self._column == self._paddle else -1.0) if landed else 0.0
        return self._observation(), reward, landed, False, {}

    def _observation(self) -> Observation:
        ball = np.zeros((ROWS, COLUMNS, 1), np.uint8)
        ball[self._row, self._column] = 255
        return {"ball": ball, "paddle": np.eye(COLUMNS, dtype=np.float32)[self._paddle]}


gymnasium.register("SplitCatch-v0", entry_point=f"{__name__}:SplitCatch")
