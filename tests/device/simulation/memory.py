"""Memory of the devices: accesses by streams, by rows if an index names them, and their order."""

import weakref
from collections.abc import Iterable
from typing import NamedTuple

from torch import Tensor

from tests.device.simulation.findings import fault, found, lock, source_line
from tests.device.simulation.streams import Stream

Rows = frozenset[int] | None
"""Rows of the first axis; None for all memory."""


class Access(NamedTuple):
    tensor: Tensor
    """Data on the CPU."""
    rows: Rows = None


class _Touches:
    """The newest accesses of one stream to one allocation."""

    def __init__(self) -> None:
        self.whole = 0
        self.rows: dict[int, int] = {}
        self.text = ""

    def add(self, rows: Rows, number: int, text: str) -> None:
        self.text = text
        if rows is None:
            self.whole = number
            self.rows.clear()  # their numbers are smaller
        else:
            self.rows.update(dict.fromkeys(rows, number))

    def newest(self, rows: Rows) -> int:
        """Returns the number of the newest operation on any of the rows."""
        own = self.rows if rows is None else self.rows.keys() & rows
        return max((self.rows[row] for row in own), default=self.whole)


class Allocation:
    """One block of a device's memory, alive as long as a simulated tensor has it."""

    def __init__(self, stream: Stream, label: str) -> None:
        self.stream, self.label = stream, label
        self.users = {stream.name}
        """Streams that delay the next use of the memory until their present work is done."""
        self._reads: dict[Stream, _Touches] = {}
        self._writes: dict[Stream, _Touches] = {}

    def read(self, stream: Stream, number: int, rows: Rows, text: str) -> None:
        self._check(self._writes, stream, rows, f"read by {text}")
        self._reads.setdefault(stream, _Touches()).add(rows, number, text)

    def write(self, stream: Stream, number: int, rows: Rows, text: str) -> None:
        self._check(self._writes, stream, rows, f"written by {text}")
        self._check(self._reads, stream, rows, f"written by {text}")
        self._writes.setdefault(stream, _Touches()).add(rows, number, text)

    def _check(self, before: dict[Stream, _Touches], stream: Stream, rows: Rows, how: str) -> None:
        for other, touches in before.items():
            if not stream.is_after(other, touches.newest(rows)):
                fault(f"race: {self.label} is {how} on {stream.name}, in no order with {touches.text} on {other.name}")

    def __del__(self) -> None:
        with lock:
            for touched in (self._reads, self._writes):
                for other, touches in touched.items():
                    if other.name not in self.users and not self.stream.is_after(other, touches.newest(None)):
                        found.faults.append(f"freed in use: {self.label}, by {touches.text} on {other.name}")


_allocations: "weakref.WeakValueDictionary[int, Allocation]" = weakref.WeakValueDictionary()
"""By the storage of their data."""


def _key(data: Tensor) -> int:
    return int(data.untyped_storage()._cdata)


def allocation_of(data: Tensor) -> Allocation | None:
    return _allocations.get(_key(data))


def allocate(data: Tensor, stream: Stream, operation: str) -> Allocation:
    """Returns the allocation of new data or of a view."""
    with lock:
        known = allocation_of(data)
        if known is None:
            known = _allocations[_key(data)] = Allocation(stream, f"{operation} {tuple(data.shape)} of {source_line()}")
        return known


def note(stream: Stream, operation: str, reads: Iterable[Access], writes: Iterable[Access]) -> int:
    """Enters one operation of a stream and returns its number."""
    with lock:
        number, text = stream.next_number(), f"{operation} ({source_line()})"
        for access in reads:
            allocation = allocation_of(access.tensor)
            if allocation is not None:
                allocation.read(stream, number, access.rows, text)
        for access in writes:
            allocation = allocation_of(access.tensor)
            if allocation is not None:
                allocation.write(stream, number, access.rows, text)
        return number
