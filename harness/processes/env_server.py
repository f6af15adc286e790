"""A place in a fleet and the env-server process that fills it, like a pod of a StatefulSet."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from harness.chaos import flaky_env, serial_env

ROOT = Path(__file__).resolve().parents[2]
WAIT_S = 300.0
REFUSED = 3
"""Exit status of an env-server that a learner has rejected."""

_SERIAL = (serial_env.ENV_ID, flaky_env.ENV_ID)


class EnvServer:
    """Place number `place` of a fleet that dials `address`. Not thread-safe.

    A context manager: entering starts a process, leaving kills the current one.
    """

    def __init__(
        self,
        place: int,
        address: str,
        folder: Path,
        *flags: str,
        num_envs: int = 2,
        env: str = serial_env.ENV_ID,
        env_kwargs: Mapping[str, Any] | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        """Prepares the command; `start` runs it.

        Args:
            address: Address of the learner; "" for an env-server that listens, by its flags.
            folder: Folder of the place's log and of the accounts of serial environments.
            env_kwargs: Arguments of the environment, in addition to those that serial environments require.
            variables: Environment variables, in addition to those of this process.
        """
        self.place = place
        self.log_path = folder / f"env-server-{place}.log"
        self.started_at = 0.0
        """Start of the newest process, by time.monotonic."""
        self.num_starts = 0
        self._log_began_at = 0
        self._process: subprocess.Popen[bytes] | None = None
        settings = {"folder": str(folder), "place": place} if env in _SERIAL else {}
        self._command = [
            *(sys.executable, "-m", "kubebeast_envserver"),
            f"--env={env}",
            f"--env-kwargs={json.dumps({**settings, **(env_kwargs or {})})}",
            *([f"--address={address}"] if address else []),
            f"--envs-per-stream={num_envs}",
            f"--env-server-id=place-{place}",
            *flags,
        ]
        self._environ = {**os.environ, "OMP_NUM_THREADS": "1", **(variables or {})}

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.kill()

    @property
    def pid(self) -> int | None:
        """Process id; None if no process runs."""
        return None if self._process is None or self._process.poll() is not None else self._process.pid

    @property
    def has_logged(self) -> bool:
        """True if the newest process has logged a line."""
        return self.log_path.stat().st_size > self._log_began_at

    def start(self) -> None:
        assert self.pid is None, f"place {self.place} is taken"
        self.started_at = time.monotonic()
        self.num_starts += 1
        with self.log_path.open("ab") as log:
            self._log_began_at = log.tell()
            self._process = subprocess.Popen(self._command, cwd=ROOT, stderr=log, env=self._environ, process_group=0)

    def kill(self) -> None:
        """Sends SIGKILL to the process and its children, like a forced deletion of a pod; does nothing if none runs."""
        if self._process is not None and self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(WAIT_S)

    def freeze(self) -> None:
        """Sends SIGSTOP to the process and its children."""
        os.killpg(self._running().pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Sends SIGCONT to the process and its children."""
        os.killpg(self._running().pid, signal.SIGCONT)

    def terminate(self) -> int:
        """Sends SIGTERM, blocks until the process has ended, at most WAIT_S, and returns its exit status."""
        process = self._running()
        process.terminate()
        return process.wait(WAIT_S)

    def wait(self) -> int:
        """Blocks until the newest process has ended by itself, at most WAIT_S, and returns its exit status."""
        assert self._process is not None
        return self._process.wait(WAIT_S)

    def exit_status(self) -> int | None:
        """Returns the exit status of the newest process; None while it runs."""
        return None if self._process is None else self._process.poll()

    def _running(self) -> subprocess.Popen[bytes]:
        assert self._process is not None and self._process.poll() is None, f"nobody is in place {self.place}"
        return self._process
