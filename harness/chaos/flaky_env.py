"""Serial environments that fail at random, as their seed draws it; importing this module registers Flaky-v0."""

import time
from collections import Counter
from pathlib import Path
from typing import Any, Literal, get_args

import gymnasium
import numpy as np

from harness.chaos.serial_env import Row, Serial

ENV_ID = f"{__name__}:Flaky-v0"

Cause = Literal["raise", "nan", "hang"]
CAUSES: tuple[Cause, ...] = get_args(Cause)
_SIGNAL = "unleashed"
_RECORD = np.dtype(np.int64)


class Flaky(Serial):
    """Raises, returns NaN or hangs instead of a step, each in one of so many steps on average, once `unleash` says so.

    Such a step is none in its account.
    """

    def __init__(self, folder: str, place: int = 0, env_ms: float = 0.0, *, every: dict[Cause, int]) -> None:
        """every: steps from one failure of a cause to the next; 0: it never happens. The others are those of Serial."""
        super().__init__(folder, place, env_ms)
        self._signal = Path(folder, _SIGNAL)
        self._record = Path(folder, f"{self._instance:x}.failure")
        self._place = place
        self._random = np.random.default_rng()
        self._rates = [1 / every[cause] if every[cause] else 0.0 for cause in CAUSES]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Row, dict[str, Any]]:
        if seed is not None:
            self._random = np.random.default_rng([seed, self._place])
        return super().reset(seed=seed, options=options)

    def step(self, action: np.int64) -> tuple[Row, float, bool, bool, dict[str, Any]]:
        drawn = int(np.searchsorted(np.cumsum(self._rates), self._random.random(), side="right"))
        if drawn == len(CAUSES) or not self._signal.exists():
            return super().step(action)
        np.array([drawn], _RECORD).tofile(self._record)
        if CAUSES[drawn] == "raise":
            raise RuntimeError("the emulator is on fire")
        while CAUSES[drawn] == "hang":
            time.sleep(600)
        return self._next_row() * np.nan, 1.0, False, False, {}


def unleash(folder: Path) -> None:
    """Lets the environments with accounts in `folder` fail from now on."""
    (folder / _SIGNAL).touch()


def failures(folder: Path) -> dict[Cause, int]:
    """How often each cause struck, over all environments."""
    drawn = Counter(int(np.fromfile(path, _RECORD)[0]) for path in folder.glob("*.failure"))
    return {cause: drawn[index] for index, cause in enumerate(CAUSES)}


gymnasium.register("Flaky-v0", entry_point=f"{__name__}:Flaky", disable_env_checker=True)
