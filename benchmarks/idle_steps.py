"""Latency of a step after a pause, compared with the steps of a busy stream.

    python -m benchmarks.idle_steps --rounds 20

One stream of one environment on a native pool with a null model isolates the transport. Pauses of all lengths and busy
steps alternate on the same stream, so that they are compared under the same conditions.
"""

import dataclasses
import itertools
import queue
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import grpc
import tyro

from benchmarks import frames, messages, native_server, replay_client, report
from benchmarks.cell import Cell
from benchmarks.processes import running

CELL = Cell(streams=1, num_envs=1)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    rounds: int = 20
    """Steps after each pause."""
    pauses: tuple[float, ...] = (0.5, 1.04, 1.5)
    """Pauses of the environment before a step, in seconds."""
    busy_steps: int = 50
    """Steps without a pause before each pause, so that every thread of a server has handled some."""
    game: str = "pong"
    """Atari game of the frames."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """Times from passing a step to gRPC to its answer, in milliseconds."""

    pause_s: float
    steps: int
    median_ms: float
    p90_ms: float
    longest_ms: float


def row(pause_s: float, times_ms: list[float]) -> Row:
    return Row(
        pause_s=pause_s,
        steps=len(times_ms),
        median_ms=statistics.median(times_ms),
        p90_ms=statistics.quantiles(times_ms, n=10)[-1],
        longest_ms=max(times_ms),
    )


def measure(settings: Settings, step: Callable[[], float]) -> list[Row]:
    """Measures all pauses; `step` takes one step and returns the time until its answer, in milliseconds."""
    times_ms: dict[float, list[float]] = {pause: [] for pause in (0.0, *settings.pauses)}
    for _, pause in itertools.product(range(settings.rounds), settings.pauses):
        times_ms[0.0] += [step() for _ in range(settings.busy_steps)]
        time.sleep(pause)
        times_ms[pause].append(step())
    return [row(pause, times) for pause, times in times_ms.items()]


def stepping(address: str, recording: Path) -> Callable[[], float]:
    """Opens a stream, takes its first step and returns the function that `measure` calls."""
    bodies = messages.observation_bodies(CELL, recording)
    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    act = grpc.insecure_channel(address).stream_stream(replay_client.METHOD, bytes, bytes)
    replies = iter(act(iter(requests.get, None)))
    numbers = iter(range(1 << 62))

    def step() -> float:
        number = next(numbers)
        request = messages.with_step(bodies[1 + number % (len(bodies) - 1)] if number else bodies[0], number)
        begin = time.perf_counter()
        requests.put(request)
        next(replies)
        return (time.perf_counter() - begin) * 1e3

    requests.put(messages.hello(CELL, 0))
    next(replies)
    step()
    return step


def main() -> None:
    settings = tyro.cli(Settings, description=__doc__)
    with tempfile.TemporaryDirectory() as folder, running(native_server.serve, CELL) as (address, _):
        recording = Path(folder, "frames.npy")
        frames.record(recording, settings.game)
        rows = measure(settings, stepping(address, recording))
    report.print_table("steps after a pause", rows)
    print("Results:", report.write_json("idle_steps", settings, {"rows": rows}))


if __name__ == "__main__":
    main()
