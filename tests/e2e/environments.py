"""Environments that pods get from a ConfigMap; importing this module registers Paced-v0 and Leaking-v0."""

import time
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from kubebeast_envserver.catch import Board, Catch

LEAK = Path("/tmp/leak")


class Paced(Catch):
    """Catch with a fixed time per step, so that a fleet's speed shows its size, on a busy machine too."""

    def __init__(self, step_ms: float = 20.0) -> None:
        super().__init__()
        self._step_s = step_ms / 1000

    def step(self, action: np.int64) -> tuple[Board, float, bool, bool, dict[str, Any]]:
        time.sleep(self._step_s)
        return super().step(action)


class Leaking(Paced):
    """An environment that allocates memory without end once the file LEAK exists, which it removes."""

    def step(self, action: np.int64) -> tuple[Board, float, bool, bool, dict[str, Any]]:
        if LEAK.exists():
            LEAK.unlink()
            hoard = []
            while True:
                hoard.append(bytearray(b"x") * (1 << 24))
        return super().step(action)


gymnasium.register("Paced-v0", entry_point=f"{__name__}:Paced", disable_env_checker=True)
gymnasium.register("Leaking-v0", entry_point=f"{__name__}:Leaking", disable_env_checker=True)
