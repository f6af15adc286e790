"""An environment that numbers its rows and keeps an account of its steps; importing this module registers Serial-v0."""

import secrets
import time
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from harness.chaos import serials

ENV_ID = f"{__name__}:Serial-v0"

ACCOUNT = np.dtype([(name, np.int64) for name in ("place", "instance", "decisions", "first_ns", "last_ns")])
"""Account of one instance. first_ns, last_ns: times of its first and newest decision on CLOCK_MONOTONIC, which all
processes of a machine share (clock_gettime(2)); 0 before the first decision."""

Row = NDArray[np.float32]


class Serial(gymnasium.Env[Row, np.int64]):
    """An environment with serial numbers as observations.

    Episodes have 1 to max_length decisions, are terminated or truncated, and have reward 1 in each step.
    """

    def __init__(self, folder: str, place: int = 0, env_ms: float = 0.0, max_length: int = 50) -> None:
        """Creates an environment and its account.

        Args:
            folder: Folder of the accounts.
            place: Number of the env-server.
            env_ms: Sleep in each step, in milliseconds.
            max_length: Maximum length of an episode.
        """
        self.observation_space = gymnasium.spaces.Box(0.0, serials.WORD, (serials.ROW_SIZE,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(2)
        self._instance = secrets.randbelow(serials.MAX_INSTANCE)
        self._t = self._end = 0
        self._env_s = env_ms / 1000
        self._max_length = max_length
        # Mapped, so that the account outlives a SIGKILL.
        self._account = np.memmap(Path(folder, f"{self._instance:x}.account"), ACCOUNT, "w+", shape=(1,))
        self._account["place"], self._account["instance"] = place, self._instance

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Row, dict[str, Any]]:
        super().reset(seed=seed)
        self._t += 2
        self._end = self._t + int(self.np_random.integers(1, self._max_length, endpoint=True))
        return serials.encode(self._instance, self._t), {}

    def step(self, action: np.int64) -> tuple[Row, float, bool, bool, dict[str, Any]]:
        if self._env_s:
            time.sleep(self._env_s)
        self._t += 1
        account = self._account[0]
        account["last_ns"] = now = time.monotonic_ns()
        if not account["decisions"]:
            account["first_ns"] = now
        account["decisions"] += 1
        ended, odd = self._t == self._end, bool(self._end % 2)
        return serials.encode(self._instance, self._t), 1.0, ended and odd, ended and not odd, {}

    def _next_row(self) -> Row:
        """Returns the observation of the next step, which is not counted, for environments that fail in it."""
        return serials.encode(self._instance, self._t + 1)


def accounts(folder: Path) -> NDArray[np.void]:
    """Returns the accounts of all instances, past and present, ACCOUNT [N]."""
    files = [np.fromfile(path, ACCOUNT) for path in folder.glob("*.account")]
    return np.concatenate([np.empty(0, ACCOUNT), *files])


gymnasium.register("Serial-v0", entry_point=f"{__name__}:Serial", disable_env_checker=True)
