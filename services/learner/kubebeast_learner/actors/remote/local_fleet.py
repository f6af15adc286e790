"""The env-server processes of `kubebeast train`: started, watched, restarted and always stopped."""

import atexit
import contextlib
import json
import logging
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self

from kubebeast_common.backoff import Retries
from kubebeast_learner.actors.base import ACTOR_FAULTS, ActorsError, seed_of_process, spread
from kubebeast_learner.config import LocalFleetConfig

logger = logging.getLogger(__name__)

FINAL_STATUSES = frozenset({2, 3})
"""Of the env-server: unusable settings, and refused by the learner. Starting it again changes nothing."""
STOP_GRACE_S = 10.0
_LOG_TAIL_BYTES = 1 << 16
_NUM_ERRORS, _NUM_LINES = 2, 8
"""How much of an env-server's output a failure quotes."""
HTTP_HOST = "127.0.0.1"
"""Where env-servers serve their metrics: whoever watches a local fleet is on its machine."""


class FleetError(ActorsError):
    """An env-server that cannot be kept running; the message carries its last errors, or the end of its output."""


@dataclass(slots=True)
class _Server:
    index: int
    env: str
    num_envs: int
    retries: Retries
    http_address: str
    """Of its metrics; empty serves none."""
    process: subprocess.Popen[bytes] | None = None

    @property
    def env_server_id(self) -> str:
        return f"local-{self.index}"


class LocalFleet:
    """num_actors environments in num_servers processes that dial `address`, of several tasks one after the other. For
    one thread, except `stop`.

    A context manager: entering starts the processes, leaving stops them. A process also ends with its parent: it
    watches the pipe on its standard input (child_process).
    """

    def __init__(
        self,
        config: LocalFleetConfig,
        *,
        address: str,
        seed: int,
        version: int,
        log_path: Path,
        tasks: Sequence[str] = (),
        serves_metrics: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """version: updates that the run has seen. tasks: environments in place of config.env. serves_metrics: whether
        env-servers serve HTTP; see `targets`.
        """
        self._config = config
        self._address = dialable(address)
        self._seed, self._version = seed, version
        self._log_path = log_path
        self._log: IO[bytes] | None = None
        shares = spread(config.num_actors, config.num_servers)
        envs = tasks or (config.env,)
        self._ports = [_held_port() for _ in shares] if serves_metrics else []
        http_addresses = [_address_of(port) for port in self._ports] or [""] * len(shares)
        self._servers = [
            _Server(index, envs[index % len(envs)], share, Retries(ACTOR_FAULTS, clock), http_address)
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
                if server.retries.is_due and not self._stopped:
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
        for port in self._ports:
            port.close()
        self._stopped = True
        if self._log is not None:
            self._log.close()

    def arguments(self, index: int, num_starts: int = 0) -> list[str]:
        """The env-server's arguments; every start gets a seed of its own, so that no two play the same episodes."""
        seed = seed_of_process(self._seed, index, num_starts, self._version)
        server = self._servers[index]
        return [
            f"--env={server.env}",
            f"--address={self._address}",
            "--num-streams=1",
            f"--envs-per-stream={server.num_envs}",
            f"--preset={self._config.preset}",
            f"--env-kwargs={self._config.env_kwargs}",
            f"--wrappers={self._config.wrappers}",
            f"--time-limit={self._config.time_limit}",
            f"--seed={seed}",
            f"--env-timeout-s={self._config.env_timeout_s}",
            f"--env-server-id={server.env_server_id}",
            f"--http-address={server.http_address}",  # even if empty: the learner's own may be in the environment
        ]

    @property
    def pids(self) -> list[int]:
        """Of the processes that were started and not found dead."""
        return [server.process.pid for server in self._servers if server.process is not None]

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
        command = [sys.executable, "-m", "kubebeast_learner.actors.remote.child_process", "kubebeast_envserver"]
        server.process = subprocess.Popen(
            [*command, *self.arguments(server.index, server.retries.num_failures)],
            stdin=subprocess.PIPE,
            stdout=self._log,
            stderr=self._log,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            process_group=0,  # Ctrl-C on the terminal is for the learner, which then stops them
        )

    def _note_death(self, server: _Server, status: int) -> None:
        assert server.process is not None and server.process.stdin is not None
        server.process.stdin.close()
        server.process = None
        wait_s = server.retries.note_failure()
        what = f"env-server {server.env_server_id} ended with status {status}"
        if status in FINAL_STATUSES or wait_s is None:
            lines = "\n".join(self._last_words(server.env_server_id))
            raise FleetError(f"{what} (output in {self._log_path}):\n{lines}")
        logger.warning("%s; restarting it in %.1f s (output in %s)", what, wait_s, self._log_path)

    def _last_words(self, env_server_id: str) -> list[str]:
        """Its newest errors; where it has logged none, the newest lines of all."""
        with open(self._log_path, "rb") as file:
            file.seek(max(0, self._log_path.stat().st_size - _LOG_TAIL_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
        errors = [
            entry["message"]
            for entry in map(_parsed, lines)
            if entry.get("level") == "error" and entry.get("env_server_id") == env_server_id
        ]
        return errors[-_NUM_ERRORS:] or lines[-_NUM_LINES:]


def _parsed(line: str) -> dict[str, Any]:
    """The fields of a JSON line of the log; none where it is something else."""
    with contextlib.suppress(ValueError):
        entry = json.loads(line)
        if isinstance(entry, dict):
            return entry
    return {}


def _held_port() -> socket.socket:
    """A port of the kernel's choice that stays an env-server's, over all its starts, for as long as this is open.

    Bound with SO_REUSEADDR and never listening, it lets a server that has the option too bind the same port; until then
    whoever dials is refused, and the kernel gives the port to nobody. Should somebody ask for this very port and be
    faster than an env-server, that ends the run and says so.
    """
    port = socket.socket()
    port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    port.bind((HTTP_HOST, 0))
    return port


def _address_of(port: socket.socket) -> str:
    return f"{HTTP_HOST}:{port.getsockname()[1]}"


def dialable(address: str) -> str:
    """Where to dial a listener on this machine: a wildcard host becomes the loopback host."""
    host, _, port = address.rpartition(":")
    loopback = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}.get(host)
    return f"{loopback}:{port}" if loopback else address
