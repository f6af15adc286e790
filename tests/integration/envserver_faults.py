"""Environments that fail on purpose; importing this module registers them."""

import ctypes
import math
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

Observation = NDArray[np.float32]


class Well(gymnasium.Env[Observation, np.int64]):
    """Behaves: episodes of 3 decisions, reward 1 each."""

    def __init__(self) -> None:
        self.observation_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(2)
        self._decisions = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        super().reset(seed=seed)
        self._decisions = 0
        return np.zeros(2, np.float32), {}

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        self._decisions += 1
        return np.full(2, 0.5, np.float32), self.reward(), self._decisions == 3, False, {}

    def reward(self) -> float:
        return 1.0


class RaisesInStep(Well):
    def reward(self) -> float:
        raise RuntimeError("the emulator is on fire")


class RewardIsNotFinite(Well):
    def reward(self) -> float:
        return math.nan


class HangsInReset(Well):
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        while True:
            time.sleep(600)


class IsToldToEnd(Well):
    """Its process gets SIGTERM in the middle of the second step."""

    def reward(self) -> float:
        if self._decisions == 2:
            os.kill(os.getpid(), signal.SIGTERM)
        return 1.0


class CannotBeMade(Well):
    def __init__(self) -> None:
        raise OSError("no licence file")


BAD_SEED = 2
BREAKS_AT = 2
"""The decision at which a broken episode goes wrong."""

STEP_FAULTS: dict[str, Callable[[Any, Any, Any, Any, Any], Any]] = {
    "exception": lambda observation, *rest: 1 / 0,
    "nan": lambda observation, reward, *rest: (observation, math.nan, *rest),
    "infinity": lambda observation, reward, *rest: (observation, math.inf, *rest),
    "beyond float32": lambda observation, reward, *rest: (observation, 1e39, *rest),
    "no number": lambda observation, reward, *rest: (observation, "1.0", *rest),
    "shape": lambda observation, *rest: (observation[:1], *rest),
    "dtype": lambda observation, *rest: (observation.astype(np.complex64), *rest),
    "no array": lambda observation, *rest: (None, *rest),
    "flag": lambda observation, reward, terminated, *rest: (observation, reward, "no", *rest),
    "too few": lambda *result: result[:4],
}
"""What becomes of the result of a step."""


class BreaksWithSeed(Well):
    """Well-behaved, but the first episode after a reset with BAD_SEED breaks as `fault` says: in a stream, one of 4."""

    def __init__(self, fault: str, constructor_fails_once: str = "") -> None:
        """constructor_fails_once: a file; after the fault the first constructor to find it there removes it, raises."""
        super().__init__()
        self._fault = fault
        self._broken = False
        self._marker = Path(constructor_fails_once) if constructor_fails_once else None
        if self._marker is not None and self._marker.exists():
            self._marker.unlink()
            raise OSError("the licence server is away")

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        self._broken = seed == BAD_SEED
        if self._broken and self._fault == "reset":
            raise RuntimeError("there is no level 2")
        return super().reset(seed=seed, options=options)

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        result = super().step(action)
        if not self._broken or self._decisions < BREAKS_AT:
            return result
        if self._marker is not None:
            self._marker.touch()
        return STEP_FAULTS[self._fault](*result)  # type: ignore[no-any-return]


FAULTS: dict[str, Callable[[], object]] = {
    "exception": lambda: 1 / 0,
    "hang": lambda: time.sleep(600),
    "sigkill": lambda: os.kill(os.getpid(), signal.SIGKILL),  # what the kernel's out-of-memory killer sends
    "segfault": lambda: ctypes.string_at(0),
    "exit 1": lambda: os._exit(1),
    "exit 3": lambda: os._exit(3),
}


class AllButOneBreak(Well):
    """The first to create the file `spared` is well; every other one breaks, as `fault` says, at a second decision."""

    def __init__(self, fault: str, spared: str) -> None:
        super().__init__()
        self._fault = fault
        try:
            os.close(os.open(spared, os.O_CREAT | os.O_EXCL))
            self._is_spared = True
        except FileExistsError:
            self._is_spared = False

    def reward(self) -> float:
        if not self._is_spared and self._decisions == BREAKS_AT:
            FAULTS[self._fault]()
        return 1.0


class OnlyOneBreaks(AllButOneBreak):
    """The first to create the file `spared` breaks; every other one is well."""

    def __init__(self, fault: str, spared: str) -> None:
        super().__init__(fault, spared)
        self._is_spared = not self._is_spared


_FAULTY = (
    Well,
    RaisesInStep,
    RewardIsNotFinite,
    HangsInReset,
    IsToldToEnd,
    CannotBeMade,
    BreaksWithSeed,
    AllButOneBreak,
    OnlyOneBreaks,
)
for _env in _FAULTY:
    gymnasium.register(f"{_env.__name__}-v0", entry_point=f"{__name__}:{_env.__name__}", disable_env_checker=True)
