"""Cost of a step on server and clients, measured while both run."""

import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.cell import Cell, Snapshot
from benchmarks.processes import RunClient, Serve, loading, running


@dataclass(frozen=True, kw_only=True, slots=True)
class StepCost:
    """Costs per step: us is CPU time in microseconds; bytes are payloads without framing of HTTP/2 and TCP."""

    client_us: float
    server_us: float
    steps_per_s: float
    bytes_per_step: float


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
    shares = [range(first, cell.streams, num_processes) for first in range(num_processes)]
    with (
        running(serve, cell) as (address, snapshot),
        loading(run_client, shares, cell, address, recording) as client_cpu_s,
    ):
        while snapshot().steps < 4 * cell.streams * cell.num_envs:
            client_cpu_s()
            time.sleep(0.1)
        time.sleep(warmup_seconds)
        before, client_before = snapshot(), client_cpu_s()
        time.sleep(seconds)
        after, client_after = snapshot(), client_cpu_s()
    steps = num_steps(before, after)
    return StepCost(
        client_us=(client_after - client_before) / steps * 1e6,
        server_us=(after.cpu_s - before.cpu_s) / steps * 1e6,
        steps_per_s=steps / (after.time_s - before.time_s),
        bytes_per_step=(after.bytes_received - before.bytes_received) / steps,
    )


def num_steps(before: Snapshot, after: Snapshot) -> int:
    if after.steps == before.steps or after.steps_delivered == before.steps_delivered:
        raise RuntimeError(f"the server stands still: {before}, then {after}")
    return after.steps - before.steps
