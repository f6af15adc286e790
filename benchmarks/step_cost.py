"""Cost of a step on server and clients, measured while both run."""

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass
from pathlib import Path

from benchmarks.cell import Cell, Snapshot
from benchmarks.processes import Clients, RunClient, Serve, loading, running


@dataclass(frozen=True, kw_only=True, slots=True)
class StepCost:
    """Costs per step: us is CPU time in microseconds; bytes are payloads without framing of HTTP/2 and TCP."""

    client_us: float
    server_us: float
    steps_per_s: float
    bytes_per_step: float


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of a period under load; the sum of two is that of both periods."""

    steps: int = 0
    time_s: float = 0.0
    client_cpu_s: float = 0.0
    server_cpu_s: float = 0.0
    bytes: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(*(mine + its for mine, its in zip(astuple(self), astuple(other), strict=True)))

    def cost(self) -> StepCost:
        return StepCost(
            client_us=self.client_cpu_s / self.steps * 1e6,
            server_us=self.server_cpu_s / self.steps * 1e6,
            steps_per_s=self.steps / self.time_s,
            bytes_per_step=self.bytes / self.steps,
        )


class Load:
    """A server and the clients of a cell, which have begun to stream."""

    def __init__(self, snapshot: Callable[[], Snapshot], clients: Clients) -> None:
        self._snapshot = snapshot
        self.clients = clients

    def count(self, seconds: float) -> Counts:
        """Blocks for that time, and returns its counts. Raises RuntimeError if the server stands still."""
        before, client_before = self._snapshot(), self.clients.cpu_s()
        time.sleep(seconds)
        after, client_after = self._snapshot(), self.clients.cpu_s()
        return Counts(
            steps=num_steps(before, after),
            time_s=after.time_s - before.time_s,
            client_cpu_s=client_after - client_before,
            server_cpu_s=after.cpu_s - before.cpu_s,
            bytes=after.bytes_received - before.bytes_received,
        )


@contextlib.contextmanager
def under_load(
    serve: Serve, run_client: RunClient, cell: Cell, recording: Path, num_processes: int = 1
) -> Iterator[Load]:
    """Puts the cell's load on a new server; raises RuntimeError if a client ends."""
    shares = [range(first, cell.streams, num_processes) for first in range(num_processes)]
    with (
        running(serve, cell) as (address, snapshot),
        loading(run_client, shares, cell, address, recording) as clients,
    ):
        while snapshot().steps < 4 * cell.streams * cell.num_envs:
            clients.cpu_s()
            time.sleep(0.1)
        yield Load(snapshot, clients)


def step_cost(
    serve: Serve,
    run_client: RunClient,
    cell: Cell,
    seconds: float,
    warmup_seconds: float,
    recording: Path,
    num_processes: int = 1,
) -> StepCost:
    """Puts the cell's load on a new server and measures it after a warm-up; raises RuntimeError if it stands still."""
    with under_load(serve, run_client, cell, recording, num_processes) as load:
        time.sleep(warmup_seconds)
        return load.count(seconds).cost()


def num_steps(before: Snapshot, after: Snapshot) -> int:
    if after.steps == before.steps or after.steps_delivered == before.steps_delivered:
        raise RuntimeError(f"the server stands still: {before}, then {after}")
    return after.steps - before.steps
