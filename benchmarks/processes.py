"""The processes of a transport measurement: a server and its clients, started anew for every cell."""

import contextlib
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import psutil

from benchmarks.cell import Cell, Snapshot

Serve = Callable[[Cell, Connection], None]
"""Function that runs a server; see benchmarks.native_server.serve."""
RunClient = Callable[[Cell, range, str, Path], None]
"""Function that drives some streams of a cell; see benchmarks.replay_client.run."""

# A forked child would share the parent's gRPC threads and locks.
_SPAWN = multiprocessing.get_context("spawn")


@contextlib.contextmanager
def answering(function: Callable[..., None], *arguments: object) -> Iterator[tuple[Any, Callable[[], Any]]]:
    """Runs `function(*arguments, channel)` in a process until the context ends, which closes the channel.

    Yields the first message from the channel, and a function that requests the next one and returns it.
    """
    here, there = _SPAWN.Pipe()
    process = _SPAWN.Process(target=function, args=(*arguments, there))
    process.start()
    there.close()

    def ask() -> Any:
        here.send(True)
        return here.recv()

    try:
        yield here.recv(), ask
    finally:
        here.close()
        process.join()


@contextlib.contextmanager
def running(serve: Serve, cell: Cell) -> Iterator[tuple[str, Callable[[], Snapshot]]]:
    """Runs a server process; yields its address and a function that takes a Snapshot of it."""
    with answering(serve, cell) as (address, snapshot):
        yield address, snapshot


@contextlib.contextmanager
def loading(
    run_client: RunClient, shares: Sequence[range], cell: Cell, address: str, recording: Path
) -> Iterator[Callable[[], float]]:
    """Runs one client process per share of the cell's streams.

    Yields a function that returns the CPU seconds of all clients, and raises RuntimeError if one has ended.
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
