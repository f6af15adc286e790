"""One point of the transport's measuring grid, and what processes report about it."""

import dataclasses
import resource
import time
from pathlib import Path
from typing import Literal


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Tls:
    """PEM files: what the server shows, and the authority by which clients verify it."""

    cert: Path
    key: Path
    ca: Path


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    streams: int
    num_envs: int
    """Environments a stream (B)."""
    codec: Literal["raw", "lz4"] = "lz4"
    frame_stack: int = 1
    single_frames: bool = False
    """Frames leave the native pool once each, for a GPU to make the stacks."""
    unroll_length: int = 20
    batch_size: int = 8
    tls: Tls | None = None
    """None: in the clear."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Snapshot:
    """Totals of one server process at one moment."""

    time_s: float
    cpu_s: float
    steps: int
    """Env-steps received."""
    bytes_received: int
    """Payload of the received messages: no HTTP/2 or TCP framing."""
    steps_delivered: int
    """Env-steps that left in training batches."""

    @classmethod
    def take(cls, *, steps: int, bytes_received: int, steps_delivered: int) -> "Snapshot":
        """CPU time is user and system time of this process, all threads."""
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return cls(
            time_s=time.monotonic(),
            cpu_s=usage.ru_utime + usage.ru_stime,
            steps=steps,
            bytes_received=bytes_received,
            steps_delivered=steps_delivered,
        )
