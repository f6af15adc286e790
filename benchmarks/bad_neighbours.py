"""Effect of misbehaving clients on honest ones: throughput beside them over throughput alone.

    python -m benchmarks.bad_neighbours --seconds 5 --rounds 5

A native pool and honest streams that replay recorded messages share all cores but one; each kind of bad neighbors has
the last core, so that its own work does not affect the result. Measurements alone and beside them alternate: each one
beside them is compared with the mean of the two around it, and the result is the median of these ratios.

idle: half connect and send nothing, half send only a Hello. slow: a valid Hello, one byte per second. flooding: valid
messages without waiting for replies. lying: a valid Hello, then rewards for fewer environments than it announced.
All of them reconnect as soon as the learner has ended their stream.
"""

import contextlib
import dataclasses
import itertools
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import tyro

from benchmarks import frames, native_server, neighbours, replay_client, report
from benchmarks.cell import Cell, Snapshot
from benchmarks.neighbours import Kind
from benchmarks.processes import answering, loading, running
from benchmarks.transport import NUM_REPLAY_PROCESSES


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    seconds: float = 5.0
    """Length of each measurement, in seconds."""
    rounds: int = 5
    """Measurements beside the bad neighbors, for every kind."""
    settle_seconds: float = 2.0
    """Time before each measurement, in seconds."""
    streams: int = 8
    """Number of honest streams."""
    num_envs: int = 16
    """Environments of each stream."""
    connections: int = 32
    """Concurrent connections of the bad neighbors."""
    kinds: tuple[Kind, ...] = neighbours.KINDS
    quick: bool = False
    """Two short rounds as a smoke test; the result has a separate name."""

    def scaled(self) -> "Settings":
        return dataclasses.replace(self, seconds=1.0, settle_seconds=0.5, rounds=2) if self.quick else self


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Window:
    """One measurement."""

    steps_per_s: float
    server_cpu: float
    """CPU seconds of the server per second."""
    attacks_per_s: float


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    neighbours: Kind
    alone_steps_per_s: float
    beside_steps_per_s: float
    ratio: float
    """Median over the rounds."""
    worst_ratio: float
    attacks_per_s: float
    """Connections that the learner ended, or that were reset, per second."""
    server_us_per_attack: float | None
    """CPU time of the server per connection, beyond the cost of the honest steps."""


def measure(kind: Kind, settings: Settings, recording: Path) -> Row:
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        raise RuntimeError("bad neighbours need a core of their own: this process may use only one")
    cell = Cell(streams=settings.streams, num_envs=settings.num_envs)
    shares = [range(first, cell.streams, NUM_REPLAY_PROCESSES) for first in range(NUM_REPLAY_PROCESSES)]
    os.sched_setaffinity(0, cores[:-1])  # inherited by the processes below
    try:
        with (
            running(native_server.serve, cell) as (address, snapshot),
            loading(replay_client.run, shares, cell, address, recording) as clients,
        ):
            while snapshot().steps < 4 * cell.streams * cell.num_envs:
                clients.cpu_s()
                time.sleep(0.1)
            alone, beside = [_window(settings, snapshot, lambda: 0)], []
            for _ in range(settings.rounds):
                with _beside(kind, address, settings, cell, recording, cores[-1]) as attacks:
                    beside.append(_window(settings, snapshot, attacks))
                alone.append(_window(settings, snapshot, lambda: 0))
            clients.cpu_s()
    finally:
        os.sched_setaffinity(0, cores)
    return summarize(kind, alone, beside)


def _window(settings: Settings, snapshot: Callable[[], Snapshot], attacks: Callable[[], int]) -> Window:
    time.sleep(settings.settle_seconds)
    before, attacks_before = snapshot(), attacks()
    time.sleep(settings.seconds)
    after, attacks_after = snapshot(), attacks()
    seconds = after.time_s - before.time_s
    return Window(
        # Delivered steps: a bad neighbor's first row is received, but is not a transition yet.
        steps_per_s=(after.steps_delivered - before.steps_delivered) / seconds,
        server_cpu=(after.cpu_s - before.cpu_s) / seconds,
        attacks_per_s=(attacks_after - attacks_before) / seconds,
    )


@contextlib.contextmanager
def _beside(
    kind: Kind, address: str, settings: Settings, cell: Cell, recording: Path, core: int
) -> Iterator[Callable[[], int]]:
    """Runs bad neighbors; once they have begun, yields a function that returns the number of ended connections."""
    with answering(neighbours.run, kind, address, settings.connections, cell, recording, core) as (_, count):
        yield count


def summarize(kind: Kind, alone: Sequence[Window], beside: Sequence[Window]) -> Row:
    """Summarizes the windows of a kind; `alone` has one window before and one after each window in `beside`."""
    references = [
        Window(
            steps_per_s=(before.steps_per_s + after.steps_per_s) / 2,
            server_cpu=(before.server_cpu + after.server_cpu) / 2,
            attacks_per_s=0.0,
        )
        for before, after in itertools.pairwise(alone)
    ]
    pairs = list(zip(references, beside, strict=True))
    ratios = [each.steps_per_s / reference.steps_per_s for reference, each in pairs]
    # If the honest streams are slowed down, the server spends less on them.
    extra = [
        each.server_cpu - reference.server_cpu * ratio for (reference, each), ratio in zip(pairs, ratios, strict=True)
    ]
    attacks_per_s = statistics.median(each.attacks_per_s for each in beside)
    return Row(
        neighbours=kind,
        alone_steps_per_s=statistics.median(each.steps_per_s for each in alone),
        beside_steps_per_s=statistics.median(each.steps_per_s for each in beside),
        ratio=statistics.median(ratios),
        worst_ratio=min(ratios),
        attacks_per_s=attacks_per_s,
        server_us_per_attack=statistics.median(extra) / attacks_per_s * 1e6 if attacks_per_s > 1 else None,
    )


def main() -> None:
    settings = tyro.cli(Settings, description=__doc__).scaled()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        recording = Path(folder, "frames.npy")
        frames.record(recording)
        for number, kind in enumerate(settings.kinds, start=1):
            rows.append(measure(kind, settings, recording))
            print(f"{number} of {len(settings.kinds)}: {rows[-1]}", flush=True)
    report.print_table(f"{settings.connections} bad connections, {settings.rounds} rounds", rows)
    name = "bad_neighbours-quick" if settings.quick else "bad_neighbours"
    print("Results:", report.write_json(name, settings, {"rows": rows}))


if __name__ == "__main__":
    main()
