"""Distributions in shared memory: histograms with fixed buckets, as in Prometheus, and the newest values."""

import ctypes
from bisect import bisect_left
from typing import ClassVar

SECONDS_BOUNDS = (
    *(25e-6, 50e-6, 100e-6, 250e-6, 500e-6),
    *(1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3),
    *(0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0),
)
"""Bounds from a step of a toy environment to the loading of a level, in seconds."""
LENGTH_BOUNDS = tuple(float(2**exponent) for exponent in range(18))
"""Bounds of the number of steps of an episode: 1 to 131,072."""
NUM_NEWEST = 100


class Histogram(ctypes.Structure):
    """A histogram: counts by bucket and the sum of all values. One writer; a reader may see the sum one value late."""

    bounds: ClassVar[tuple[float, ...]]
    """Upper bounds of all buckets except the last, which has none; a bound belongs to the bucket below it."""
    counts: "ctypes.Array[ctypes.c_uint64]"
    """Number of values in each bucket, not cumulative."""
    sum: float

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value


class SecondsHistogram(Histogram):
    bounds = SECONDS_BOUNDS
    _fields_ = (("counts", ctypes.c_uint64 * (len(SECONDS_BOUNDS) + 1)), ("sum", ctypes.c_double))


class LengthHistogram(Histogram):
    bounds = LENGTH_BOUNDS
    _fields_ = (("counts", ctypes.c_uint64 * (len(LENGTH_BOUNDS) + 1)), ("sum", ctypes.c_double))


class Newest(ctypes.Structure):
    """The newest NUM_NEWEST values. One writer."""

    _fields_ = (("slots", ctypes.c_double * NUM_NEWEST), ("num_added", ctypes.c_uint64))

    slots: "ctypes.Array[ctypes.c_double]"
    num_added: int

    def add(self, value: float) -> None:
        self.slots[self.num_added % NUM_NEWEST] = value
        self.num_added += 1

    def values(self) -> list[float]:
        """Returns the values in no particular order."""
        return list(self.slots[: min(self.num_added, NUM_NEWEST)])
