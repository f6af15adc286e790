"""Serial environments that fail at random, by their seed; importing this module registers Flaky-v0."""

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
HUGE = 3e38
"""Finite value in float32 with an infinite square."""
_SIGNAL = "unleashed"
_RECORD = np.dtype(np.int64)


class Flaky(Serial):
    """An environment that raises, returns NaN or hangs in a random fraction of its steps after `unleash`.

    Failed steps are not counted in its account.
    """

    def __init__(
        self, folder: str, place: int = 0, env_ms: float = 0.0, *, every: dict[Cause, int], huge_every: int = 0
    ) -> None:
        """Creates an environment; see Serial for the other arguments.

        Args:
            every: Mean number of steps between two failures of a cause; 0 disables the cause.
            huge_every: Mean number of steps between two observations of HUGE; 0 disables them. Such a step is counted,
                but its row is unreadable.
        """
        super().__init__(folder, place, env_ms)
        self._signal = Path(folder, _SIGNAL)
        self._record = Path(folder, f"{self._instance:x}.failure")
        self._place = place
        self._random = np.random.default_rng()
        self._huge_rate = 1 / huge_every if huge_every else 0.0
        self._huge = Path(folder, f"{self._instance:x}.huge")
        self._rates = [1 / every[cause] if every[cause] else 0.0 for cause in CAUSES]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Row, dict[str, Any]]:
        if seed is not None:
            self._random = np.random.default_rng([seed, self._place])
        return super().reset(seed=seed, options=options)

    def step(self, action: np.int64) -> tuple[Row, float, bool, bool, dict[str, Any]]:
        drawn = int(np.searchsorted(np.cumsum(self._rates), self._random.random(), side="right"))
        if drawn == len(CAUSES) or not self._signal.exists():
            return self._maybe_huge(*super().step(action))
        np.array([drawn], _RECORD).tofile(self._record)
        if CAUSES[drawn] == "raise":
            raise RuntimeError("the emulator is on fire")
        while CAUSES[drawn] == "hang":
            time.sleep(600)
        return self._next_row() * np.nan, 1.0, False, False, {}

    def _maybe_huge(self, row: Row, *rest: Any) -> tuple[Row, float, bool, bool, dict[str, Any]]:
        if not self._huge_rate or self._random.random() >= self._huge_rate or not self._signal.exists():
            return row, *rest
        with self._huge.open("ab") as file:
            file.write(b"!")
        return np.full_like(row, HUGE), *rest


def unleash(folder: Path) -> None:
    """Enables the failures of the environments with accounts in `folder`."""
    (folder / _SIGNAL).touch()


def failures(folder: Path) -> dict[Cause, int]:
    """Returns the number of failures by cause; each instance counts once, with its newest failure."""
    drawn = Counter(int(np.fromfile(path, _RECORD)[0]) for path in folder.glob("*.failure"))
    return {cause: drawn[index] for index, cause in enumerate(CAUSES)}


def num_huge(folder: Path) -> int:
    """Returns the number of observations of HUGE in all environments."""
    return sum(path.stat().st_size for path in folder.glob("*.huge"))


gymnasium.register("Flaky-v0", entry_point=f"{__name__}:Flaky", disable_env_checker=True)
