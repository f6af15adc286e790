"""Cost of an env-step in transport: CPU time, bytes on the wire and throughput, without computation.

    python -m benchmarks.transport --seconds 10
    python -m benchmarks.transport --tls --grid 16 32

Server and clients are separate processes on this machine and share its cores, so costs are CPU time of a process (user
and system, all threads) per env-step that it moved; steps per second is the throughput of this machine with clients
beside the server. The server's share includes the whole path of a step through the learner except the model: it is
received, answered in an inference batch and delivered in a training batch.

Two loads: `replay` resends serialized messages, which isolates the server's work; `env-server` is the real session with
environments that replay a recording, for the cost of an env-server besides stepping. The reference is a grpcio server
under the replay load in the same run, uncompressed and without training batches.

--tls measures instead the cost of TLS with a certificate of the server under the replay load: plain and encrypted
measurements alternate, and the ratios are of adjacent ones.
"""

import dataclasses
import itertools
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import tyro

from benchmarks import frames, grpcio_server, native_server, recorded_env, replay_client, report
from benchmarks.cell import Cell, Tls
from benchmarks.step_cost import step_cost
from harness.certificates import issue, make_ca

SERVERS = {"native": native_server.serve, "grpcio": grpcio_server.serve}
CLIENTS = {"replay": replay_client.run, "env-server": recorded_env.run}
NUM_REPLAY_PROCESSES = 2
"""Number of replay processes; with more than one, the interpreter lock limits the load less."""

ServerName = Literal["native", "grpcio"]
ClientName = Literal["replay", "env-server"]
Grid = tuple[tuple[int, int], ...]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    seconds: float = 10.0
    """Length of each measurement, in seconds."""
    warmup_seconds: float = 2.0
    """Warm-up of every cell, in seconds."""
    game: str = "pong"
    """Atari game of the frames."""
    grid: Grid = ((16, 32), (16, 8), (16, 1), (1, 32), (4, 32))
    """Streams and environments per stream, measured with replayed messages."""
    env_server_grid: Grid = ((1, 32), (1, 8), (1, 1))
    """Streams and environments per stream, measured with env-server processes."""
    tls: bool = False
    """Measure the cost of TLS on the grid instead, with LZ4 and frames without stacks."""
    tls_rounds: int = 6
    """Plain measurements of a cell, and the same number of encrypted ones."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One measured cell; us is CPU time in microseconds, bytes are message payloads without HTTP/2 and TCP framing."""

    server: ServerName
    clients: ClientName
    streams: int
    num_envs: int
    codec: str
    frame_stack: int
    single_frames: bool
    """True if the pool outputs single frames of a stack, for a GPU that builds the stacks."""
    server_us_per_step: float
    client_us_per_step: float
    steps_per_s: float
    bytes_per_step: float
    tls: bool = False
    reference_ratio: float | None = None
    """server_us_per_step of the grpcio reference, for the same streams and environments, over this one."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class TlsCost:
    """Cost of TLS for a cell: ratios of encrypted to plain, from adjacent measurements; medians of all rounds."""

    streams: int
    num_envs: int
    throughput_ratio: float
    throughput_ratio_lowest: float
    throughput_ratio_highest: float
    server_us_ratio: float
    client_us_ratio: float


def measure(server: ServerName, clients: ClientName, cell: Cell, settings: Settings, recording: Path) -> Row:
    """Puts the cell's load on a new server and measures it after a warm-up; raises RuntimeError if it stands still."""
    num_processes = cell.streams if clients == "env-server" else min(cell.streams, NUM_REPLAY_PROCESSES)
    times = (settings.seconds, settings.warmup_seconds)
    cost = step_cost(SERVERS[server], CLIENTS[clients], cell, *times, recording, num_processes)
    return Row(
        server=server,
        clients=clients,
        streams=cell.streams,
        num_envs=cell.num_envs,
        codec=cell.codec,
        frame_stack=cell.frame_stack,
        single_frames=cell.single_frames,
        tls=cell.tls is not None,
        client_us_per_step=cost.client_us,
        server_us_per_step=cost.server_us,
        steps_per_s=cost.steps_per_s,
        bytes_per_step=cost.bytes_per_step,
    )


def measure_servers(settings: Settings, recording: Path) -> list[Row]:
    """Measures every pair of the grid: first the reference, then the native server with each frame stack and codec."""
    rows = []
    for streams, num_envs in settings.grid:
        plain = Cell(streams=streams, num_envs=num_envs, codec="raw")
        reference = measure("grpcio", "replay", plain, settings, recording)
        rows.append(reference)
        for cell in variants(plain):
            row = measure("native", "replay", cell, settings, recording)
            ratio = reference.server_us_per_step / row.server_us_per_step
            rows.append(dataclasses.replace(row, reference_ratio=ratio))
    return rows


def measure_env_servers(settings: Settings, recording: Path) -> list[Row]:
    cells = [Cell(streams=streams, num_envs=num_envs) for streams, num_envs in settings.env_server_grid]
    return [
        measure("native", "env-server", variant, settings, recording)
        for cell in cells
        for variant in variants(cell)
        if not variant.single_frames  # which makes no difference to env-servers
    ]


def measure_tls(settings: Settings, recording: Path, tls: Tls) -> tuple[list[Row], list[TlsCost]]:
    """Measures every pair of the grid, alternating plain and encrypted."""
    rows: list[Row] = []
    costs: list[TlsCost] = []
    for streams, num_envs in settings.grid:
        cell = Cell(streams=streams, num_envs=num_envs)
        encrypted = dataclasses.replace(cell, tls=tls)
        pairs = []
        for turn in range(settings.tls_rounds):
            # The order alternates, so that drifts of the machine affect both.
            order = (cell, encrypted) if turn % 2 == 0 else (encrypted, cell)
            pair = {each.tls is not None: measure("native", "replay", each, settings, recording) for each in order}
            pairs.append((pair[False], pair[True]))
        rows += itertools.chain.from_iterable(pairs)
        costs.append(tls_cost(pairs))
    return rows, costs


def tls_cost(pairs: Sequence[tuple[Row, Row]]) -> TlsCost:
    """Returns the cost of TLS for one cell, from pairs of plain and encrypted rows."""

    def ratios(field: str) -> list[float]:
        return [getattr(encrypted, field) / getattr(plain, field) for plain, encrypted in pairs]

    throughput = ratios("steps_per_s")
    return TlsCost(
        streams=pairs[0][0].streams,
        num_envs=pairs[0][0].num_envs,
        throughput_ratio=statistics.median(throughput),
        throughput_ratio_lowest=min(throughput),
        throughput_ratio_highest=max(throughput),
        server_us_ratio=statistics.median(ratios("server_us_per_step")),
        client_us_ratio=statistics.median(ratios("client_us_per_step")),
    )


def variants(cell: Cell) -> list[Cell]:
    """Returns the cell without stacks, with stacks of four, and with these as single frames, raw and compressed."""
    return [
        dataclasses.replace(cell, frame_stack=frame_stack, single_frames=single_frames, codec=codec)
        for frame_stack, single_frames in ((1, False), (4, False), (4, True))
        for codec in ("raw", "lz4")
    ]


def make_tls(folder: Path) -> Tls:
    """Issues a certificate for this machine in the folder."""
    authority = make_ca(folder)
    pair = issue(authority, folder, "server")
    return Tls(cert=pair.cert, key=pair.key, ca=authority.pem)


def main() -> None:
    settings = tyro.cli(Settings, description=__doc__)
    with tempfile.TemporaryDirectory() as folder:
        recording = Path(folder, "frames.npy")
        frames.record(recording, settings.game)
        if settings.tls:
            rows, costs = measure_tls(settings, recording, make_tls(Path(folder)))
        else:
            rows, costs = measure_servers(settings, recording) + measure_env_servers(settings, recording), []
    report.print_table(f"transport of {settings.game} frames, {settings.seconds:g} s a row", rows)
    report.print_table("TLS over plain text", costs)
    results = {"rows": rows, "tls_costs": costs}
    print("Results:", report.write_json("transport_tls" if settings.tls else "transport", settings, results))


if __name__ == "__main__":
    main()
