"""Load of a broker: python -m benchmarks.broker

Thousands of streams and some learners connect to a real broker. They play with nobody: a stream reports the learner
that it is assigned as the one that it plays with, at once. The clients are processes beside the broker, so the times
are those of the whole machine.
"""

import asyncio
import contextlib
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import grpc
import psutil
import tyro

from benchmarks.report import print_table, write_json
from harness.processes.broker_process import BrokerProcess, Fleet
from kubebeast_protos.v1 import broker_pb2 as pb

_SPAWN = multiprocessing.get_context("spawn")
_CHANNEL = [("grpc.use_local_subchannel_pool", 1)]
WAIT_S = 60.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    streams: int = 4000
    learners: int = 32
    client_processes: int = 2
    idle_seconds: float = 20.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Phase:
    """An event, and the time until every stream plays again where it should."""

    event: str
    seconds: float
    broker_cpu_s: float
    broker_mib: float


def main(settings: Settings) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    phases: list[Phase] = []
    with (
        tempfile.TemporaryDirectory() as folder,
        BrokerProcess(Path(folder)) as broker,
        contextlib.ExitStack() as stack,
    ):
        process = psutil.Process(broker.pid)
        size = settings.streams // settings.client_processes

        @contextlib.contextmanager
        def phase(event: str, condition: Callable[[Fleet], bool]) -> Iterator[None]:
            began, cpu_s = time.monotonic(), sum(process.cpu_times()[:2])
            yield
            broker.wait_until(condition, WAIT_S)
            used, mib = sum(process.cpu_times()[:2]) - cpu_s, process.memory_info().rss / (1 << 20)
            phases.append(Phase(event=event, seconds=time.monotonic() - began, broker_cpu_s=used, broker_mib=mib))

        def playing(num_runs: int) -> Callable[[Fleet], bool]:
            """Returns a condition: all streams play for so many runs, each of which has its share."""
            least = settings.streams // num_runs - 1
            return lambda fleet: (
                len(fleet["runs"]) == num_runs
                and sum(run["playing"] for run in fleet["runs"]) == settings.streams
                and all(run["playing"] >= least for run in fleet["runs"])
            )

        victim = stack.enter_context(clients(broker.address, "learners", 1, 0))
        stack.enter_context(clients(broker.address, "learners", settings.learners - 1, 1))
        with phase(f"{settings.streams} streams connect", playing(settings.learners)):
            for index in range(settings.client_processes):
                stack.enter_context(clients(broker.address, "streams", size, index))
        with phase(f"nothing for {settings.idle_seconds:g} s", playing(settings.learners)):
            time.sleep(settings.idle_seconds)
        with phase("a learner is killed", playing(settings.learners - 1)):
            victim.kill()
    print_table(f"{settings.streams} streams and {settings.learners} learners", phases)
    print("Results:", write_json("broker", settings, {"phases": [asdict(each) for each in phases]}))


@contextlib.contextmanager
def clients(address: str, kind: str, count: int, index: int) -> Iterator["multiprocessing.process.BaseProcess"]:
    """Runs clients in a process until the end of the context; returns once they have connections."""
    here, there = _SPAWN.Pipe()
    process = _SPAWN.Process(target=_run, args=(address, kind, count, index, there), daemon=True)
    process.start()
    here.recv()
    try:
        yield process
    finally:
        process.kill()
        process.join()


def _run(address: str, kind: str, count: int, index: int, ready: Connection) -> None:
    client = _learner if kind == "learners" else _stream

    async def keep_up(name: str) -> None:
        while True:
            try:
                await client(address, name)
            except grpc.aio.AioRpcError as error:
                print(f"{name}: {error.code().name}: {error.details()}", file=sys.stderr)
            await asyncio.sleep(1.0)

    async def run() -> None:
        calls = [asyncio.create_task(keep_up(f"{index}-{number}")) for number in range(count)]
        ready.send(True)
        await asyncio.gather(*calls)

    asyncio.run(run())


async def _learner(address: str, name: str) -> None:
    state = pb.LearnerState(
        protocol_version=1, instance_id=name, run_id=f"run-{name}", address=f"host-{name}:1", weight=1.0
    )

    async def states() -> AsyncIterator[bytes]:
        yield state.SerializeToString()
        await asyncio.Event().wait()

    async with grpc.aio.insecure_channel(address, _CHANNEL) as channel:
        async for _ in channel.stream_stream("/kubebeast.v1.Broker/Register", None, None)(states()):
            pass


async def _stream(address: str, name: str) -> None:
    playing: asyncio.Queue[str] = asyncio.Queue()

    async def states() -> AsyncIterator[bytes]:
        state = pb.StreamState(protocol_version=1, instance_id=f"stream-{name}", env_id="Mock")
        while True:
            yield state.SerializeToString()
            state.playing = await playing.get()

    async with grpc.aio.insecure_channel(address, _CHANNEL) as channel:
        async for message in channel.stream_stream("/kubebeast.v1.Broker/Assign", None, None)(states()):
            playing.put_nowait(pb.Assignment.FromString(message).learner_id)


if __name__ == "__main__":
    main(tyro.cli(Settings, description=__doc__))
