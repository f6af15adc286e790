"""The processes of a transport measurement: a server and the clients that load it, started fresh for every cell."""

import contextlib
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection
from pathlib import Path

import psutil

from benchmarks.cell import Cell, Snapshot

Serve = Callable[[Cell, Connection], None]
"""Runs a server; see benchmarks.native_server.serve."""
RunClient = Callable[[Cell, range, str, Path], None]
"""Drives some streams of a cell; see benchmarks.replay_client.run."""

# A forked child would share the parent's gRPC threads and locks.
_SPAWN = multiprocessing.get_context("spawn")


@contextlib.contextmanager
def running(serve: Serve, cell: Cell) -> Iterator[tuple[str, Callable[[], Snapshot]]]:
    """Runs a server process; yields its address and the call that takes a Snapshot of it."""
    here, there = _SPAWN.Pipe()
    process = _SPAWN.Process(target=serve, args=(cell, there))
    process.start()
    there.close()

    def snapshot() -> Snapshot:
        here.send(True)
        taken = here.recv()
        assert isinstance(taken, Snapshot)
        return taken

    try:
        yield here.recv(), snapshot
    finally:
        here.close()
        process.join()


@contextlib.contextmanager
def loading(
    run_client: RunClient, shares: Sequence[range], cell: Cell, address: str, recording: Path
) -> Iterator[Callable[[], float]]:
    """Runs one client process a share of the cell's streams.

    Yields a call that returns the CPU seconds of all clients, and raises RuntimeError when one has ended.
    """
    clients = [_SPAWN.Process(target=run_client, args=(cell, share, address, recording)) for share in shares]

    def cpu_s() -> float:
        if not all(client.is_alive() for client in clients):
            raise RuntimeError(f"a client of {cell} ended; its error is printed above")
        times = [psutil.Process(client.pid).cpu_times() for client in clients]
        return sum(time.user + time.system for time in times)

    for client in clients:
        client.start()
    try:
        yield cpu_s
    finally:
        for client in clients:
            client.terminate()
        for client in clients:
            client.join()
