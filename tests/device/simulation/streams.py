"""Streams and events with vector clocks: the operations of each stream that are known to come before.

Fidge (1988), "Timestamps in message-passing systems that preserve the partial ordering". The host is one more clock: it
starts operations, which come after everything that it has waited for. All threads of the host share it, so an order
between them is taken for granted, for instance by a lock.
"""

import contextlib
import itertools
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch

from tests.device.simulation.findings import found, lock, source_line

Clock = dict[str, int]
"""Names of streams and the numbers of their newest operations."""

_numbers = itertools.count(1)
_streams: list["Stream"] = []
_defaults: dict[int, "Stream"] = {}
_host: Clock = {}
_here = threading.local()


class _InFlight(NamedTuple):
    stream: str
    number: int
    finish: Callable[[], None]


_in_flight: list[_InFlight] = []
"""Copies between host and devices that the host has not waited for."""


def _merge(into: Clock, other: Clock) -> None:
    for name, number in other.items():
        into[name] = max(number, into.get(name, 0))


class Stream:
    """Implements torch.cuda.Stream."""

    def __init__(self, device: Any = None, priority: int = 0) -> None:
        self.device = torch.device("cuda", index_of(device))
        self.priority = priority
        self.name = f"stream {next(_numbers)} of {self.device}"
        self.clock: Clock = {}
        self.capture: Any = None
        """The graph that records this stream's operations, if there is one."""
        _streams.append(self)

    def next_number(self) -> int:
        """Returns the number of a new operation, which comes after all that the host knows to be done."""
        _merge(self.clock, _host)
        self.clock[self.name] = self.clock.get(self.name, 0) + 1
        return self.clock[self.name]

    def is_after(self, stream: "Stream", number: int) -> bool:
        """Returns True if new operations come after the operation `number` of a stream."""
        return stream is self or number <= max(self.clock.get(stream.name, 0), _host.get(stream.name, 0))

    def wait_event(self, event: "Event") -> None:
        with lock:
            _merge(self.clock, event.clock)

    def wait_stream(self, stream: "Stream") -> None:
        with lock:
            _merge(self.clock, stream.clock)

    def record_event(self, event: "Event | None" = None) -> "Event":
        event = event or Event()
        event.record(self)
        return event

    def synchronize(self) -> None:
        wait_on_host(self.clock, "a stream")

    def query(self) -> bool:
        return False


class Event:
    """Implements torch.cuda.Event."""

    def __init__(self, *, blocking: bool = False, **options: Any) -> None:
        self.clock: Clock = {}
        self._reason = "an event" if blocking else "an event, with a core that spins"

    def record(self, stream: Stream | None = None) -> None:
        with lock:
            self.clock = dict((stream or current_stream()).clock)

    def wait(self, stream: Stream | None = None) -> None:
        (stream or current_stream()).wait_event(self)

    def synchronize(self) -> None:
        wait_on_host(self.clock, self._reason)

    def query(self) -> bool:
        return False


def wait_on_host(clock: Clock, reason: str) -> None:
    """Makes the host wait for operations. Raises RuntimeError if the current stream is captured."""
    refuse_in_capture(f"wait for {reason}")
    with lock:
        found.waits[f"{reason} at {source_line()}"] += 1
        _merge(_host, clock)
        done = [each for each in _in_flight if each.number <= _host.get(each.stream, 0)]
        for each in done:
            _in_flight.remove(each)
            each.finish()


def finish_later(stream: Stream, number: int, finish: Callable[[], None]) -> None:
    """Calls `finish` when the host has waited for an operation."""
    _in_flight.append(_InFlight(stream.name, number, finish))


def refuse_in_capture(operation: str) -> None:
    if current_stream().capture is not None:
        raise RuntimeError(f"CUDA error: operation not permitted when stream is capturing: {operation}")


def index_of(device: Any) -> int:
    """Returns the index of a device; without an index, that of this thread's current one."""
    if isinstance(device, int):
        return device
    index = None if device is None else torch.device(device).index
    return current_device() if index is None else index


def current_device() -> int:
    return int(getattr(_here, "device", 0))


def set_device(device: Any) -> None:
    _here.device = index_of(device)


class UsedDevice:
    """Implements torch.cuda.device."""

    def __init__(self, device: Any) -> None:
        self.idx = index_of(device)
        self._before = self.idx

    def __enter__(self) -> None:
        self._before = current_device()
        set_device(self.idx)

    def __exit__(self, *error: object) -> None:
        set_device(self._before)


def default_stream(device: Any = None) -> Stream:
    with lock:
        index = index_of(device)
        if index not in _defaults:
            _defaults[index] = Stream(index)
        return _defaults[index]


def current_stream(device: Any = None) -> Stream:
    used: dict[int, Stream] = getattr(_here, "streams", {})
    index = index_of(device)
    return used[index] if index in used else default_stream(index)


@contextlib.contextmanager
def use_stream(stream: Stream | None) -> Iterator[None]:
    if stream is None:
        yield
        return
    before = getattr(_here, "streams", {})
    _here.streams = {**before, index_of(stream.device): stream}
    try:
        with UsedDevice(stream.device):
            yield
    finally:
        _here.streams = before


def synchronize(device: Any = None) -> None:
    refuse_in_capture("wait for a device")
    clock: Clock = {}
    for each in list(_streams):
        if each.device.index == index_of(device):
            _merge(clock, each.clock)
    wait_on_host(clock, "a device")
