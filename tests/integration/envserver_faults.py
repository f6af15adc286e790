"""Environments that fail on purpose; importing this module registers them."""

import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

Observation = NDArray[np.float32]


class Well(gymnasium.Env[Observation, np.int64]):
    """A healthy environment: episodes of 3 decisions, reward 1 each."""

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


class Annotated(Well):
    def __init__(self, note: str = "") -> None:
        super().__init__()


class RaisesInStep(Well):
    def reward(self) -> float:
        raise RuntimeError("the emulator is on fire")


class OutlivesItsEnd(RaisesInStep):
    """An environment with a process that cannot end by itself."""

    def __init__(self) -> None:
        super().__init__()
        threading.Thread(target=threading.Event().wait).start()


class RewardIsNotFinite(Well):
    def reward(self) -> float:
        return math.nan


class HangsInReset(Well):
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        while True:
            time.sleep(600)


class HangsAndMissesSigterm(HangsInReset):
    """Misses the first SIGTERM, as Python does if the signal arrives just before a blocking call."""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        handler = signal.getsignal(signal.SIGTERM)
        signal.signal(signal.SIGTERM, lambda *_: signal.signal(signal.SIGTERM, handler))
        print("reset began", file=sys.stderr, flush=True)
        return super().reset(seed=seed, options=options)


class ClosesEverything(HangsInReset):
    """Closes all files and pipes but the standard ones, before it hangs."""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        os.closerange(3, 1024)
        return super().reset(seed=seed, options=options)


class IsToldToEnd(Well):
    """Sends its process SIGTERM in the middle of the second step."""

    def reward(self) -> float:
        if self._decisions == 2:
            os.kill(os.getpid(), signal.SIGTERM)
        return 1.0


class WearsOut(Well):
    """Plays for `lasts` steps, over as many episodes as needed, then raises."""

    def __init__(self, lasts: int) -> None:
        super().__init__()
        self._lasts = lasts

    def reward(self) -> float:
        self._lasts -= 1
        if self._lasts < 0:
            raise RuntimeError("the bearings are worn out")
        return 1.0


class CannotBeMade(Well):
    def __init__(self) -> None:
        raise OSError("no licence file")


BREAKS_AT = 2
"""The decision at which a broken episode goes wrong."""

STEP_FAULTS: dict[str, Callable[[Any, Any, Any, Any, Any], Any]] = {
    "exception": lambda observation, *rest: 1 / 0,
    "sys.exit": lambda *result: sys.exit(3),
    "nan": lambda observation, reward, *rest: (observation, math.nan, *rest),
    "infinity": lambda observation, reward, *rest: (observation, math.inf, *rest),
    "beyond float32": lambda observation, reward, *rest: (observation, 1e39, *rest),
    "no number": lambda observation, reward, *rest: (observation, "1.0", *rest),
    "shape": lambda observation, *rest: (observation[:1], *rest),
    "nan observation": lambda observation, *rest: (observation * math.nan, *rest),
    "infinite observation": lambda observation, *rest: (observation.astype(np.float64) * 1e39, *rest),
    "dtype": lambda observation, *rest: (observation.astype(np.complex64), *rest),
    "no array": lambda observation, *rest: (None, *rest),
    "flag": lambda observation, reward, terminated, *rest: (observation, reward, "no", *rest),
    "too few": lambda *result: result[:4],
}
"""Faulty results of a step, made from the proper one."""


WELL = "well"
"""The word of a script for a call without a fault."""
OBSERVATION_FAULTS = ("exception", "shape", "nan observation", "infinite observation", "dtype", "no array")
"""Faults that a reset can have, too."""


class FollowsScript(Well):
    """Every call of a constructor, reset or step takes a word of the script, in any environment.

    The word is WELL or names one of STEP_FAULTS; a constructor that breaks raises. After the script there are no
    faults.
    """

    def __init__(self, script: Iterator[str]) -> None:
        """script: one object for all environments of a vector."""
        self._script = script
        if self._next_word() != WELL:
            raise OSError("the licence server is away")
        super().__init__()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        word = self._next_word()
        observation, info = super().reset(seed=seed, options=options)
        if word in OBSERVATION_FAULTS:
            return STEP_FAULTS[word](observation, 0.0, False, False, info)[0], info
        if word != WELL:
            raise RuntimeError("there is no such level")
        return observation, info

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        result = super().step(action)
        word = self._next_word()
        return result if word == WELL else STEP_FAULTS[word](*result)

    def _next_word(self) -> str:
        return next(self._script, WELL)


class AllButOneAreKilled(Well):
    """The first to create the file `spared` is healthy; every other one kills its process at a second decision."""

    def __init__(self, spared: str) -> None:
        super().__init__()
        try:
            os.close(os.open(spared, os.O_CREAT | os.O_EXCL))
            self._is_spared = True
        except FileExistsError:
            self._is_spared = False

    def reward(self) -> float:
        if not self._is_spared and self._decisions == BREAKS_AT:
            os.kill(os.getpid(), signal.SIGKILL)
        return 1.0


_FAULTY = (
    Well,
    RaisesInStep,
    OutlivesItsEnd,
    RewardIsNotFinite,
    HangsInReset,
    HangsAndMissesSigterm,
    ClosesEverything,
    IsToldToEnd,
    WearsOut,
    CannotBeMade,
    FollowsScript,
    Annotated,
    AllButOneAreKilled,
)
for _env in _FAULTY:
    gymnasium.register(f"{_env.__name__}-v0", entry_point=f"{__name__}:{_env.__name__}", disable_env_checker=True)
