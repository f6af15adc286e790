"""Cost of a step on the environment's side: the C++ client library, and the Python env-server on it and on grpcio.

    python -m benchmarks.client_library --seconds 10

All replay the same 84 x 84 frames of a real game to a native pool with a null model, a new one for each measurement, in
turns. Costs are CPU time of the process (user and system, all threads) per step that the pool received. For comparison,
it measures two processes that only send each other as many bytes over TCP.
"""

import dataclasses
import functools
import itertools
import os
import statistics
import tempfile
from pathlib import Path
from typing import Literal

import tyro

from benchmarks import bare_tcp, frames, native_server, recorded_env, report
from benchmarks.cell import Cell
from benchmarks.processes import RunClient
from benchmarks.step_cost import StepCost, step_cost
from harness.client_library import ROOT, built_against, installed_client

CPP, TCP = "C++ client library", "TCP alone"
OF_ONE = {CPP, TCP}
"""Clients with one environment per stream."""
CODECS: tuple[Literal["raw", "lz4"], ...] = ("raw", "lz4")


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    seconds: float = 10.0
    """Length of each measurement, in seconds."""
    warmup_seconds: float = 2.0
    """Warm-up before each measurement, in seconds."""
    rounds: int = 3
    """Measurements of each row; their median is printed."""
    num_envs: tuple[int, ...] = (1, 32)
    """Environments per stream."""
    game: str = "pong"
    """Atari game of the frames."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """Medians of a client; us is CPU time in microseconds, steps are those of single environments."""

    client: str
    num_envs: int
    codec: str
    client_us_per_step: float
    client_us_lowest: float
    client_us_highest: float
    steps_per_s: float
    bytes_per_step: float


def replay(program: Path, frames_file: Path, cell: Cell, streams: range, address: str, recording: Path) -> None:
    """Replaces this process by the C++ program."""
    arguments = [address, str(frames_file), str(int(cell.codec == "lz4")), str(cell.frame_stack)]
    os.execv(program, [str(program), *arguments])


def row(client: str, cell: Cell, costs: list[StepCost]) -> Row:
    client_us = [cost.client_us for cost in costs]
    return Row(
        client=client,
        num_envs=cell.num_envs,
        codec=cell.codec,
        client_us_per_step=statistics.median(client_us),
        client_us_lowest=min(client_us),
        client_us_highest=max(client_us),
        steps_per_s=statistics.median(cost.steps_per_s for cost in costs),
        bytes_per_step=statistics.median(cost.bytes_per_step for cost in costs),
    )


def measure(settings: Settings, clients: dict[str, RunClient], recording: Path) -> list[Row]:
    rows = []
    for num_envs, codec in itertools.product(settings.num_envs, CODECS):
        cell = Cell(streams=1, num_envs=num_envs, codec=codec, frame_stack=4)
        able = {client: run for client, run in clients.items() if client not in OF_ONE or num_envs == 1}
        costs: dict[str, list[StepCost]] = {client: [] for client in able}
        for _ in range(settings.rounds):
            for client, run in able.items():
                serve = bare_tcp.serve if client == TCP else native_server.serve
                times = (settings.seconds, settings.warmup_seconds)
                costs[client].append(step_cost(serve, run, cell, *times, recording))
        rows += [row(client, cell, costs[client]) for client in able]
    return rows


def main() -> None:
    settings = tyro.cli(Settings, description=__doc__)
    source = ROOT / "benchmarks" / "replay_program"
    with tempfile.TemporaryDirectory() as folder:
        program = built_against(installed_client("shared"), source, Path(folder, "build")) / "replay"
        recording, of_one = Path(folder, "frames.npy"), Path(folder, "frames.bin")
        frames.record(recording, settings.game)
        frames.load(recording)[:, 0].tofile(of_one)
        clients: dict[str, RunClient] = {
            TCP: bare_tcp.run,
            CPP: functools.partial(replay, program, of_one),
            "Python, native": functools.partial(recorded_env.run, transport="native"),
            "Python, grpcio": functools.partial(recorded_env.run, transport="grpcio"),
        }
        rows = measure(settings, clients, recording)
    title = f"a step, {settings.game} frames in stacks of four, {settings.seconds:g} s a measurement"
    report.print_table(title, rows)
    print("Results:", report.write_json("client_library", settings, {"rows": rows}))


if __name__ == "__main__":
    main()
