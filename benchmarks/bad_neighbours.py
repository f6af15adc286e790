"""What clients that misbehave cost the honest ones: throughput beside them over throughput alone.

    python -m benchmarks.bad_neighbours --seconds 5 --rounds 5

A native pool and honest streams that replay recorded messages share the cores but one; each kind of bad neighbours has
the last core for itself, so that its own work is not what is measured. Measurements alone and beside them alternate:
one beside is compared with the mean of the two around it, and the median of these ratios counts.

idle: half connect and say nothing, half say Hello and nothing more. slow: a valid Hello, a byte a second. flooding:
valid messages without waiting for replies. lying: a valid Hello, then rewards for fewer environments than it promised.
All of them connect again as soon as the learner has ended their stream.
"""

import contextlib
import dataclasses
import itertools
import multiprocessing
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
from benchmarks.processes import loading, running
from benchmarks.transport import NUM_REPLAY_PROCESSES

_SPAWN = multiprocessing.get_context("spawn")


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    seconds: float = 5.0
    """Length of each measurement, in seconds."""
    rounds: int = 5
    """Measurements beside the bad neighbours, for every kind."""
    settle_seconds: float = 2.0
    """Time before each measurement, in seconds."""
    streams: int = 8
    """Honest streams."""
    num_envs: int = 16
    """Environments of each."""
    connections: int = 32
    """Of the bad neighbours, at a time."""
    kinds: tuple[Kind, ...] = neighbours.KINDS
    quick: bool = False
    """Two short rounds, to see that it works; the result has a name of its own."""

    def scaled(self) -> "Settings":
        return dataclasses.replace(self, seconds=1.0, settle_seconds=0.5, rounds=2) if self.quick else self


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Window:
    """One measurement."""

    steps_per_s: float
    server_cpu: float
    """CPU seconds of the server a second."""
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
    """Connections that the learner ended, or that were reset."""
    server_us_per_attack: float | None
    """CPU time of the server beyond what the honest steps cost alone, a connection."""


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
            loading(replay_client.run, shares, cell, address, recording) as client_cpu_s,
        ):
            while snapshot().steps < 4 * cell.streams * cell.num_envs:
                client_cpu_s()
                time.sleep(0.1)
            alone, beside = [_window(settings, snapshot, lambda: 0)], []
            for _ in range(settings.rounds):
                with _beside(kind, address, settings, cell, recording, cores[-1]) as attacks:
                    beside.append(_window(settings, snapshot, attacks))
                alone.append(_window(settings, snapshot, lambda: 0))
            client_cpu_s()
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
        # Delivered ones: a bad neighbour's first row is received, but is no transition yet.
        steps_per_s=(after.steps_delivered - before.steps_delivered) / seconds,
        server_cpu=(after.cpu_s - before.cpu_s) / seconds,
        attacks_per_s=(attacks_after - attacks_before) / seconds,
    )


@contextlib.contextmanager
def _beside(
    kind: Kind, address: str, settings: Settings, cell: Cell, recording: Path, core: int
) -> Iterator[Callable[[], int]]:
    """Runs bad neighbours; yields, once they have begun, the call that tells how many connections have ended."""
    here, there = _SPAWN.Pipe()
    arguments = (kind, address, settings.connections, cell, recording, core, there)
    process = _SPAWN.Process(target=neighbours.run, args=arguments)
    process.start()
    there.close()

    def count() -> int:
        here.send(True)
        return int(here.recv())

    try:
        here.recv()
        yield count
    finally:
        here.close()
        process.join()


def summarize(kind: Kind, alone: Sequence[Window], beside: Sequence[Window]) -> Row:
    """alone: one window before and one after each window beside."""
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
    # Where the honest ones are slowed down, the server spends less on them.
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
