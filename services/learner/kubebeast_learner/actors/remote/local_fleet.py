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
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Self

from kubebeast_common.backoff import Retries
from kubebeast_common.process.family import Family
from kubebeast_learner.actors.base import ACTOR_FAULTS, ActorsError, seed_of_process, spread
from kubebeast_learner.actors.lag import first_seed
from kubebeast_learner.config import LocalFleetConfig

logger = logging.getLogger(__name__)

FINAL_STATUSES = frozenset({2, 3})
"""Exit statuses of the env-server that make a restart useless: unusable settings, and refused by the learner."""
STOP_GRACE_S = 10.0
_LOG_TAIL_BYTES = 1 << 16
_NUM_ERRORS, _NUM_LINES = 2, 8
"""Number of errors, or else of lines, that a failure quotes from an env-server's output."""
HTTP_HOST = "127.0.0.1"
"""Host at which env-servers serve their metrics: a local fleet is watched from its own machine."""


class FleetError(ActorsError):
    """An env-server that cannot be kept running; the message carries its last errors, or the end of its output."""


@dataclass(slots=True)
class _Server:
    index: int
    env: str
    num_streams: int
    envs_per_stream: int
    first_env: int
    """Number of the environments of the servers before it."""
    retries: Retries
    http_address: str
    """Address of its metrics; empty serves none."""
    process: subprocess.Popen[bytes] | None = None
    family: Family = field(default_factory=Family)

    @property
    def env_server_id(self) -> str:
        return f"local-{self.index}"


class LocalFleet:
    """num_actors environments in num_servers processes that dial `address`; several tasks alternate over the processes.

    Not thread-safe, except `stop` and `targets`. A context manager: entering starts the processes, leaving stops
    them. A process also ends with its parent: it watches the pipe on its standard input (child_process).
    """

    def __init__(
        self,
        config: LocalFleetConfig,
        *,
        address: str,
        seed: int,
        version: int,
        log_path: Path,
        run: str = "",
        tasks: Sequence[str] = (),
        serves_metrics: bool = False,
        group_size: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """version: updates of the run so far. run: the run to serve, empty for any. tasks: environments in place of
        config.env. serves_metrics: if set, env-servers serve HTTP; see `targets`. group_size: environments of a stream,
        a divisor of num_actors, for runs that can be repeated; by default, each process has one stream.
        """
        self._config = config
        self._address = dialable(address)
        self._seed, self._version = seed, version
        self._log_path = log_path
        self._run = run
        self._log: IO[bytes] | None = None
        self._is_repeatable = group_size is not None
        shares = _shares(config, group_size)
        envs = tasks or (config.env,)
        self._ports = [_held_port() for _ in shares] if serves_metrics else []
        http_addresses = [_address_of(port) for port in self._ports] or [""] * len(shares)
        self._servers = [
            _Server(
                index=index,
                env=envs[index % len(envs)],
                num_streams=num_streams,
                envs_per_stream=envs_per_stream,
                first_env=sum(streams * num_envs for streams, num_envs in shares[:index]),
                retries=Retries(ACTOR_FAULTS, clock),
                http_address=http_address,
            )
            for index, ((num_streams, envs_per_stream), http_address) in enumerate(
                zip(shares, http_addresses, strict=True)
            )
        ]
        self._stopped = False
        self.num_restarts = 0

    def __enter__(self) -> Self:
        """Starts every process; the output goes to `log_path`, or is discarded if the volume takes no file."""
        try:
            self._log = open(self._log_path, "ab")
        except OSError as error:
            logger.warning("%s is not written: %s", self._log_path, error.strerror)
            self._log = open(os.devnull, "ab")
        atexit.register(self.stop)
        for server in self._servers:
            self._start(server)
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def check(self) -> None:
        """Restarts processes that died, with exponential back-off. Never blocks.

        Raises FleetError if one cannot be kept running, at once if its exit status is final.
        """
        for server in self._servers:
            if server.process is None:
                if server.retries.is_due and not self._stopped:
                    self.num_restarts += 1
                    self._start(server)
            elif (status := server.process.poll()) is not None:
                self._note_death(server, status)

    def stop(self) -> None:
        """Asks every process to end, then kills the remaining ones after the grace period. Idempotent."""
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
            if server.process is not None:
                server.process = None
                server.family.kill()
        for port in self._ports:
            port.close()
        self._stopped = True
        if self._log is not None:
            self._log.close()

    def arguments(self, index: int, num_starts: int = 0) -> list[str]:
        """Returns the env-server's arguments; every start has its own seed, so that no two play the same episodes."""
        server = self._servers[index]
        seed = seed_of_process(self._seed, index, num_starts, self._version)
        if self._is_repeatable and num_starts == 0:
            seed = first_seed(self._seed, self._version) + server.first_env
        return [
            f"--env={server.env}",
            f"--address={self._address}",
            f"--run={self._run}",  # even if empty: another run's may be in the environment
            f"--num-streams={server.num_streams}",
            f"--envs-per-stream={server.envs_per_stream}",
            f"--preset={self._config.preset}",
            f"--env-kwargs={self._config.env_kwargs}",
            f"--wrappers={self._config.wrappers}",
            f"--time-limit={self._config.time_limit}",
            f"--seed={seed}",
            f"--env-timeout-s={self._config.env_timeout_s}",
            f"--env-server-id={server.env_server_id}",
            f"--http-address={server.http_address}",  # even if empty, too
        ]

    def first_group(self, env_server_id: str) -> int:
        """Returns the number of the streams of the servers before this one."""
        (server,) = [server for server in self._servers if server.env_server_id == env_server_id]
        return server.first_env // server.envs_per_stream

    @property
    def pids(self) -> list[int]:
        """Ids of the processes that were started and not found dead."""
        return [server.process.pid for server in self._servers if server.process is not None]

    def targets(self) -> list[dict[str, Any]]:
        """Returns the addresses of the metrics of every env-server, running or not. Thread-safe.

        In the format of https://prometheus.io/docs/prometheus/latest/http_sd/, labeled as by the chart's PodMonitor.
        """
        return [
            {"targets": [server.http_address], "labels": {"pod": server.env_server_id, "kubebeast_group": "local"}}
            for server in self._servers
            if server.http_address
        ]

    def _start(self, server: _Server) -> None:
        # -P: a file in the working directory may have the name of a Python module.
        command = [sys.executable, "-P", "-m", "kubebeast_learner.actors.remote.child_process", "kubebeast_envserver"]
        server.process = subprocess.Popen(
            [*command, *self.arguments(server.index, server.retries.num_failures)],
            stdin=subprocess.PIPE,
            stdout=self._log,
            stderr=self._log,
            env={**os.environ, "OMP_NUM_THREADS": "1", **server.family.variables},
            process_group=0,  # Ctrl-C on the terminal is for the learner, which then stops them
        )

    def _note_death(self, server: _Server, status: int) -> None:
        assert server.process is not None and server.process.stdin is not None
        server.process.stdin.close()
        server.process = None
        server.family.kill()
        wait_s = server.retries.note_failure()
        what = f"env-server {server.env_server_id} ended with status {status}"
        if status in FINAL_STATUSES or wait_s is None:
            lines = "\n".join(self._last_words(server.env_server_id))
            raise FleetError(f"{what} (output in {self._log_path}):\n{lines}")
        logger.warning("%s; restarting it in %.1f s (output in %s)", what, wait_s, self._log_path)

    def _last_words(self, env_server_id: str) -> list[str]:
        """Returns the env-server's newest errors; if it has logged none, the newest lines of all."""
        lines: list[str] = []
        with contextlib.suppress(OSError), open(self._log_path, "rb") as file:
            file.seek(max(0, self._log_path.stat().st_size - _LOG_TAIL_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
        errors = [
            entry["message"]
            for entry in map(_parsed, lines)
            if entry.get("level") == "error" and entry.get("env_server_id") == env_server_id
        ]
        return errors[-_NUM_ERRORS:] or lines[-_NUM_LINES:]


def _shares(config: LocalFleetConfig, group_size: int | None) -> list[tuple[int, int]]:
    """Returns the number of streams, and of the environments of each, for every process."""
    if group_size is None:
        return [(1, share) for share in spread(config.num_actors, config.num_servers)]
    num_groups = config.num_actors // group_size
    return [(share, group_size) for share in spread(num_groups, min(num_groups, config.num_servers))]


def _parsed(line: str) -> dict[str, Any]:
    """Returns the fields of a JSON line of the log, {} for any other line."""
    with contextlib.suppress(ValueError):
        entry = json.loads(line)
        if isinstance(entry, dict):
            return entry
    return {}


def _held_port() -> socket.socket:
    """Returns a port of the kernel's choice that stays reserved for an env-server, over all its starts, while open.

    Bound with SO_REUSEADDR and never listening, it lets a server with the same option bind the port; until then
    connections are refused, and the kernel assigns the port to no other socket. If another process requests this very
    port before the env-server does, the run ends with an error.
    """
    port = socket.socket()
    port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    port.bind((HTTP_HOST, 0))
    return port


def _address_of(port: socket.socket) -> str:
    return f"{HTTP_HOST}:{port.getsockname()[1]}"


def dialable(address: str) -> str:
    """Returns the address to dial for a listener on this machine: a wildcard host becomes the loopback host."""
    host, _, port = address.rpartition(":")
    loopback = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}.get(host)
    return f"{loopback}:{port}" if loopback else address
