"""Environments that fail in their own ways, by a script that is the same in every run.

Each knows how many of its kind came before it, in all processes: the first fail, those that replace them are well.
Importing this module registers Scripted-v0, whose arguments choose the fault, Medley-v0, each with a fault of its own,
and NeverMade-v0.
"""

import ctypes
import itertools
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NamedTuple

import gymnasium
import numpy as np

from harness.chaos import serial_env
from harness.chaos.serial_env import Row, Serial
from tests.system import peers

SCRIPTED, MEDLEY, NEVER_MADE = (f"{__name__}:{name}-v0" for name in ("Scripted", "Medley", "NeverMade"))
FAULT, FOLDER = "SYSTEM_FAULT", "SYSTEM_FOLDER"
"""Environment variables: how to fail, and where accounts are kept, for those that no argument can reach."""
FAILS_AT = 7
"""Decisions that an environment takes before the one that fails."""
ENOUGH = 30
"""Decisions that show that an environment plays: more than an unroll, and than an episode often takes."""
EACH_ITS_OWN = "each its own"
ENV_MS, LEISURELY_MS = 1.0, 15.0
"""What a step takes, asleep: a fleet that is never done would leave nothing of the machine to the rest."""
UNUSED = -1
"""Place in the account of an environment that was never reset."""

peers.obey()


class Fault(NamedTuple):
    """A way to fail."""

    kind: str
    """What the env-server counts it as."""
    where: Literal["step", "reset", "first reset", "constructor", "nowhere"]
    """In the step after FAILS_AT decisions, the reset after as many, the very first reset; or in such a step and again
    in the constructor of the environment that is to take the place."""
    becomes: Callable[..., Any]
    """From what step or reset was to return to what it does return."""
    says: str
    """In the env-server's log."""


def _allocate_everything() -> None:
    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 20), before[1]))
    try:
        np.ones(1 << 28)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def _observation(change: Callable[[Row], Any]) -> Callable[..., Any]:
    return lambda observation, *rest: (change(observation), *rest)


def _reward(reward: Any) -> Callable[..., Any]:
    return lambda observation, _, *rest: (observation, reward, *rest)


FAULTS = {
    "step raises": Fault("exception", "step", lambda *_: 1 / 0, "ZeroDivisionError"),
    "step calls sys.exit": Fault("exception", "step", lambda *_: sys.exit(3), "SystemExit"),
    "no memory": Fault("exception", "step", lambda *_: _allocate_everything(), "Memory"),
    "NaN observation": Fault("observation", "step", _observation(lambda row: row * np.nan), "finite"),
    "infinite observation": Fault("observation", "step", _observation(lambda row: row - np.inf), "finite"),
    "wrong shape": Fault("observation", "step", _observation(lambda row: row[:3]), "shape [3]"),
    "wrong dtype": Fault("observation", "step", _observation(lambda row: row.astype(np.complex64)), "complex64"),
    "no observation": Fault("observation", "step", _observation(lambda _: None), "observation"),
    "NaN reward": Fault("reward", "step", _reward(np.nan), "reward nan"),
    "infinite reward": Fault("reward", "step", _reward(-np.inf), "reward"),
    "reward beyond float32": Fault("reward", "step", _reward(1e39), "1e+39"),
    "reward is a text": Fault("reward", "step", _reward("1.0"), "'1.0'"),
    "flag is a text": Fault("exception", "step", lambda *result: (*result[:2], "no", *result[3:]), "terminated = 'no'"),
    "step of the old gym": Fault("exception", "step", lambda *result: (*result[:3], {}), "interface before 0.26"),
    "reset raises": Fault("exception", "reset", lambda *_: 1 / 0, "reset raised ZeroDivisionError"),
    "reset of the old gym": Fault("exception", "reset", lambda observation, _: observation, "interface before 0.26"),
    "reset to NaN": Fault("observation", "reset", _observation(lambda row: row * np.nan), "finite"),
    "first reset raises": Fault("exception", "first reset", lambda *_: 1 / 0, "reset raised ZeroDivisionError"),
    "constructor raises": Fault("exception", "constructor", lambda *_: 1 / 0, "no licence"),
}
"""What the process of a stream survives."""

DEATHS = {
    "killed for memory": Fault("process", "step", lambda *_: os.kill(os.getpid(), signal.SIGKILL), "status -9"),
    "segmentation fault": Fault("process", "step", lambda *_: ctypes.string_at(0), "status -11"),
    "abort": Fault("process", "step", lambda *_: os.abort(), "status -6"),
    "exit 1": Fault("process", "step", lambda *_: os._exit(1), "status 1"),
    "exit 3": Fault("process", "step", lambda *_: os._exit(3), "status 3"),
    "step hangs": Fault("hang", "step", lambda *_: time.sleep(600), "computed for more than"),
    "reset hangs": Fault("hang", "reset", lambda *_: time.sleep(600), "computed for more than"),
}
"""What it does not survive. The kernel's out-of-memory killer sends SIGKILL."""

ALL = {**FAULTS, **DEATHS}
WELL = Fault("", "nowhere", lambda *result: result, "")


class Scripted(Serial):
    """Serial rows. Its place in the account is its number: how many of its kind were reset before it."""

    def __init__(
        self, fault: str = "", folder: str = "", crowd: int = 1, again: int = 0, env_ms: float = ENV_MS
    ) -> None:
        """Of the `crowd` that is there at the beginning number 0 fails, or each in its own way, which is the one of
        FAULTS with its number. Of those that come later the first `again` fail as number 0 did.

        fault, folder: by default what the environment variables say.
        """
        self._folder = Path(folder or os.environ[FOLDER])
        self._name, self._crowd, self._again = fault or os.environ.get(FAULT, ""), crowd, again
        self._fault = WELL
        super().__init__(str(self._folder), place=UNUSED, env_ms=env_ms)
        replaces = (self._folder / f"{crowd - 1}.claim").exists()
        if replaces and self._name in ("constructor raises", EACH_ITS_OWN) and _claim(self._folder / "constructor"):
            raise OSError("no licence")

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        if self._account["place"] == UNUSED:  # kubebeast mono makes one only to see its spaces
            self._begin()
        result = super().reset(seed=seed, options=options)
        now = "reset" if self._account["decisions"] >= FAILS_AT else "first reset"
        return self._fault.becomes(*result) if self._fault.where == now else result

    def step(self, action: np.int64) -> Any:
        if self._account["decisions"] >= FAILS_AT and self._fault.where in ("step", "constructor"):
            return self._fault.becomes(self._next_row(), 1.0, False, False, {})
        return super().step(action)

    def _begin(self) -> None:
        number = next(n for n in itertools.count() if _claim(self._folder / f"{n}.claim"))
        self._account["place"] = number
        if self._name == EACH_ITS_OWN and number < len(FAULTS):
            self._fault = list(FAULTS.values())[number]
        elif self._name != EACH_ITS_OWN and (number == 0 or self._crowd <= number < self._crowd + self._again):
            self._fault = ALL.get(self._name, WELL)


class NeverMade(gymnasium.Env[Row, np.int64]):
    """Has no licence."""

    def __init__(self) -> None:
        raise OSError("no licence")


def all_are_back(folder: Path, num_envs: int) -> bool:
    """Whether each of the `num_envs` that were there at the beginning was replaced by one that plays."""
    accounts = serial_env.accounts(folder)
    later = accounts["decisions"][accounts["place"] >= num_envs]
    return int((later > ENOUGH).sum()) >= num_envs


def _claim(path: Path) -> bool:
    """Whether nobody has claimed it before, in any process."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


gymnasium.register("Scripted-v0", entry_point=f"{__name__}:Scripted", disable_env_checker=True)
gymnasium.register(
    "Medley-v0",
    entry_point=f"{__name__}:Scripted",
    disable_env_checker=True,
    kwargs={"fault": EACH_ITS_OWN, "crowd": len(FAULTS)},
)
gymnasium.register("NeverMade-v0", entry_point=f"{__name__}:NeverMade")
