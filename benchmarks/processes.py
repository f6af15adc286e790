"""The processes of a transport measurement: a server and its clients, started anew for every cell."""

import contextlib
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
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


class Clients:
    """Processes that drive the streams of a cell."""

    def __init__(self, processes: Sequence[BaseProcess], cell: Cell) -> None:
        self._processes, self._cell = processes, cell

    def cpu_s(self) -> float:
        """Returns the CPU seconds of all processes. Raises RuntimeError if one has ended."""
        if not all(each.is_alive() for each in self._processes):
            raise RuntimeError(f"a client of {self._cell} ended; its error is printed above")
        times = [psutil.Process(each.pid).cpu_times() for each in self._processes]
        return sum(time.user + time.system for time in times)

    def suspend(self) -> None:
        """Halts all processes that have not ended, until `resume`."""
        for each in self._living():
            each.suspend()

    def resume(self) -> None:
        for each in self._living():
            each.resume()

    def _living(self) -> list[psutil.Process]:
        return [psutil.Process(each.pid) for each in self._processes if each.is_alive()]


@contextlib.contextmanager
def loading(
    run_client: RunClient, shares: Sequence[range], cell: Cell, address: str, recording: Path
) -> Iterator[Clients]:
    """Runs one client process per share of the cell's streams."""
    processes = [_SPAWN.Process(target=run_client, args=(cell, share, address, recording)) for share in shares]
    for each in processes:
        each.start()
    clients = Clients(processes, cell)
    try:
        yield clients
    finally:
        for each in processes:
            each.terminate()
        clients.resume()
        for each in processes:
            each.join()
