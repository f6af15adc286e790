"""The env-server processes of `kubebeast train`: started, watched, restarted and always stopped."""

import atexit
import contextlib
import logging
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self

import numpy as np

from kubebeast_learner.actors import ActorsError, spread
from kubebeast_learner.config import LocalFleetConfig
from kubebeast_learner.restarts import RestartPolicy

logger = logging.getLogger(__name__)

FINAL_STATUSES = frozenset({2, 3})
"""Of the env-server: unusable settings, and refused by the learner. Starting it again changes nothing."""
STOP_GRACE_S = 10.0
HTTP_HOST = "127.0.0.1"
"""Where env-servers serve their metrics: whoever watches a local fleet is on its machine."""


class FleetError(ActorsError):
    """An env-server that cannot be kept running; the message carries the end of its output."""


@dataclass(slots=True)
class _Server:
    index: int
    num_envs: int
    restarts: RestartPolicy
    http_address: str
    """Of its metrics; empty serves none."""
    process: subprocess.Popen[bytes] | None = None

    @property
    def env_server_id(self) -> str:
        return f"local-{self.index}"


class LocalFleet:
    """num_actors environments in num_servers processes that dial `address`. For one thread, except `stop`.

    A context manager: entering starts the processes, leaving stops them. A process also ends with its parent: it
    watches the pipe on its standard input (child_process).
    """

    def __init__(
        self,
        config: LocalFleetConfig,
        *,
        address: str,
        seed: int,
        log_path: Path,
        serves_metrics: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """serves_metrics: whether env-servers serve HTTP, on ports that `targets` tells."""
        self._config = config
        self._address = dialable(address)
        self._seed = seed
        self._log_path = log_path
        self._log: IO[bytes] | None = None
        shares = spread(config.num_actors, config.num_servers)
        http_addresses = _free_addresses(len(shares)) if serves_metrics else [""] * len(shares)
        self._servers = [
            _Server(index, share, RestartPolicy(clock), http_address)
            for index, (share, http_address) in enumerate(zip(shares, http_addresses, strict=True))
        ]
        self._stopped = False
        self.num_restarts = 0

    def __enter__(self) -> Self:
        """Starts every process; their output goes to `log_path`. OSError when that cannot be written."""
        self._log = open(self._log_path, "ab")
        atexit.register(self.stop)
        for server in self._servers:
            self._start(server)
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def check(self) -> None:
        """Restarts processes that died, with exponential back-off. Never blocks.

        FleetError when one cannot be kept running, at once where its status says so.
        """
        for server in self._servers:
            if server.process is None:
                if server.restarts.is_due and not self._stopped:
                    self.num_restarts += 1
                    self._start(server)
            elif (status := server.process.poll()) is not None:
                self._note_death(server, status)

    def stop(self) -> None:
        """Asks every process to end, then kills what is left after the grace period. Idempotent."""
        atexit.unregister(self.stop)
        processes = [server.process for server in self._servers if server.process is not None]
        for process in processes:
            process.terminate()
        deadline = time.monotonic() + STOP_GRACE_S
        for process in processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, deadline - time.monotonic()))
            process.kill()
            process.wait()
            if process.stdin is not None:
                process.stdin.close()
        for server in self._servers:
            server.process = None
        self._stopped = True
        if self._log is not None:
            self._log.close()

    def arguments(self, index: int, num_starts: int = 0) -> list[str]:
        """The env-server's arguments; every start gets a seed of its own, so that no two play the same episodes."""
        seed = int(np.random.SeedSequence([self._seed, index, num_starts]).generate_state(1)[0] >> 1)
        server = self._servers[index]
        return [
            f"--env={self._config.env}",
            f"--address={self._address}",
            "--num-streams=1",
            f"--envs-per-stream={server.num_envs}",
            f"--preset={self._config.preset}",
            f"--seed={seed}",
            f"--env-server-id={server.env_server_id}",
            f"--http-address={server.http_address}",  # even if empty: the learner's own may be in the environment
        ]

    def targets(self) -> list[dict[str, Any]]:
        """Where the metrics of every env-server are, whether it runs or not; from any thread.

        As https://prometheus.io/docs/prometheus/latest/http_sd/ wants it, with the labels of the chart's PodMonitor.
        """
        return [
            {"targets": [server.http_address], "labels": {"pod": server.env_server_id, "kubebeast_group": "local"}}
            for server in self._servers
            if server.http_address
        ]

    def _start(self, server: _Server) -> None:
        command = [sys.executable, "-m", "kubebeast_learner.child_process", "kubebeast_envserver"]
        server.process = subprocess.Popen(
            [*command, *self.arguments(server.index, server.restarts.num_starts)],
            stdin=subprocess.PIPE,
            stdout=self._log,
            stderr=self._log,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            process_group=0,  # Ctrl-C on the terminal is for the learner, which then stops them
        )
        server.restarts.note_start()

    def _note_death(self, server: _Server, status: int) -> None:
        assert server.process is not None and server.process.stdin is not None
        server.process.stdin.close()
        server.process = None
        wait_s = server.restarts.note_death()
        what = f"env-server {server.env_server_id} ended with status {status}"
        if status in FINAL_STATUSES or wait_s is None:
            raise FleetError(f"{what}; the end of {self._log_path}:\n{self._log_tail()}")
        logger.warning("%s; restarting it in %.0f s (output in %s)", what, wait_s, self._log_path)

    def _log_tail(self, num_lines: int = 8) -> str:
        with open(self._log_path, "rb") as file:
            file.seek(max(0, self._log_path.stat().st_size - 8192))
            return "\n".join(file.read().decode(errors="replace").splitlines()[-num_lines:])


def _free_addresses(count: int) -> list[str]:
    """Where nobody listens. Should somebody be faster than an env-server, that ends the run and says so."""
    with contextlib.ExitStack() as held:
        listeners = [held.enter_context(socket.create_server((HTTP_HOST, 0))) for _ in range(count)]
        return [f"{HTTP_HOST}:{listener.getsockname()[1]}" for listener in listeners]


def dialable(address: str) -> str:
    """Where to dial a listener on this machine: a wildcard host becomes the loopback host."""
    host, _, port = address.rpartition(":")
    loopback = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}.get(host)
    return f"{loopback}:{port}" if loopback else address
