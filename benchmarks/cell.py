"""One point of the grid of transport measurements, and the reports of its processes."""

import dataclasses
import resource
import time
from pathlib import Path
from typing import Literal


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Tls:
    """PEM files: certificate and key of the server, and the authority by which clients verify it."""

    cert: Path
    key: Path
    ca: Path


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    streams: int
    num_envs: int
    """Environments per stream (B)."""
    codec: Literal["raw", "lz4"] = "lz4"
    frame_stack: int = 1
    single_frames: bool = False
    """If set, the native pool outputs each frame once, and a GPU would build the stacks."""
    unroll_length: int = 20
    batch_size: int = 8
    episode_steps: int = 0
    """Length of episodes of env-servers; 0 for endless ones."""
    with_options: bool = False
    """If set, the learner chooses the options of each episode."""
    tls: Tls | None = None
    """Files for TLS; None for plain text."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Snapshot:
    """Totals of one server process at one moment."""

    time_s: float
    cpu_s: float
    steps: int
    """Env-steps received."""
    bytes_received: int
    """Payload of the received messages, without framing of HTTP/2 or TCP."""
    steps_delivered: int
    """Env-steps that left in training batches."""

    @classmethod
    def take(cls, *, steps: int, bytes_received: int, steps_delivered: int) -> "Snapshot":
        """Returns a snapshot with the time and the CPU time of this process: user and system, all threads."""
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return cls(
            time_s=time.monotonic(),
            cpu_s=usage.ru_utime + usage.ru_stime,
            steps=steps,
            bytes_received=bytes_received,
            steps_delivered=steps_delivered,
        )
