"""Environments that fail in their own ways, by a script that is the same in every run.

Each is numbered in the order of first resets, over all processes: the first ones fail, their replacements are healthy.
Importing this module registers Scripted-v0, which takes the fault as an argument, Medley-v0, each with a fault of its
own, and NeverMade-v0.
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
"""Environment variables: the fault, and the folder of the accounts, for environments that get no arguments."""
FAILS_AT = 7
"""Decisions that an environment takes before the one that fails."""
ENOUGH = 30
"""Decisions that show that an environment plays: more than an unroll, and more than most episodes take."""
EACH_ITS_OWN = "each its own"
ENV_MS, LEISURELY_MS = 1.0, 15.0
"""Milliseconds that a step sleeps: a fleet without pauses would leave nothing of the machine to the rest."""
UNUSED = -1
"""Place in the account of an environment that was never reset."""

peers.obey()


class Fault(NamedTuple):
    """A way to fail."""

    kind: str
    """Kind of the failure in the env-server's counters."""
    where: Literal["step", "reset", "first reset", "constructor", "nowhere"]
    """Place of the fault: the step after FAILS_AT decisions, the reset after as many, the very first reset; or such a
    step and the constructor of the replacement.
    """
    becomes: Callable[..., Any]
    """Turns the proper result of step or reset into the faulty one."""
    says: str
    """Text in the env-server's log."""


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
"""Faults that the process of a stream survives."""

DEATHS = {
    "killed for memory": Fault("process", "step", lambda *_: os.kill(os.getpid(), signal.SIGKILL), "status -9"),
    "segmentation fault": Fault("process", "step", lambda *_: ctypes.string_at(0), "status -11"),
    "abort": Fault("process", "step", lambda *_: os.abort(), "status -6"),
    "exit 1": Fault("process", "step", lambda *_: os._exit(1), "status 1"),
    "exit 3": Fault("process", "step", lambda *_: os._exit(3), "status 3"),
    "step hangs": Fault("hang", "step", lambda *_: time.sleep(600), "computed for more than"),
    "reset hangs": Fault("hang", "reset", lambda *_: time.sleep(600), "computed for more than"),
}
"""Faults that it does not survive. The kernel's out-of-memory killer sends SIGKILL."""

ALL = {**FAULTS, **DEATHS}
WELL = Fault("", "nowhere", lambda *result: result, "")


class Scripted(Serial):
    """Serial rows. The place in the account is the environment's number: the count of others that were reset before
    it.
    """

    def __init__(
        self, fault: str = "", folder: str = "", crowd: int = 1, again: int = 0, env_ms: float = ENV_MS
    ) -> None:
        """Creates one of `crowd` environments, of which number 0 fails, or each with the fault of its number in FAULTS.

        The first `again` later ones fail as number 0 did. fault, folder: by default the values of the environment
        variables.
        """
        self._folder = Path(folder or os.environ[FOLDER])
        self._name, self._crowd, self._again = fault or os.environ.get(FAULT, ""), crowd, again
        self._fault = WELL
        super().__init__(str(self._folder), place=UNUSED, env_ms=env_ms)
        replaces = (self._folder / f"{crowd - 1}.claim").exists()
        if replaces and self._name in ("constructor raises", EACH_ITS_OWN) and _claim(self._folder / "constructor"):
            raise OSError("no licence")

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        if self._account["place"] == UNUSED:  # kubebeast mono makes one only to read its spaces
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
    """An environment without a license: its constructor fails."""

    def __init__(self) -> None:
        raise OSError("no licence")


def all_are_back(folder: Path, num_envs: int) -> bool:
    """Returns True if each of the first `num_envs` environments was replaced by one that plays."""
    accounts = serial_env.accounts(folder)
    later = accounts["decisions"][accounts["place"] >= num_envs]
    return int((later > ENOUGH).sum()) >= num_envs


def _claim(path: Path) -> bool:
    """Claims a path for this process; returns False if a process has claimed it before."""
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
