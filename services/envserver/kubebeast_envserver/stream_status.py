"""What a stream's process tells its supervisor: plain numbers in shared memory."""

import ctypes
from typing import Literal, get_args

FailureKind = Literal["exception", "reward", "observation", "hang", "process"]
"""Raised or broke gymnasium's interface otherwise; not finite; wrong form; took too long; the whole process died."""
ConnectOutcome = Literal["welcomed", "lost", "refused", "unreachable"]
"""A learner accepted the stream; ended an accepted one; refused it; could not be reached, or did not answer."""

FAILURE_KINDS: tuple[FailureKind, ...] = get_args(FailureKind)
CONNECT_OUTCOMES: tuple[ConnectOutcome, ...] = get_args(ConnectOutcome)


class StreamStatus(ctypes.Structure):
    """Of one stream, over the lives of all its processes. Each field has one writer at a time.

    Shared by `multiprocessing.RawValue(StreamStatus)`: numbers of a machine word, which no reader sees half written.
    """

    _fields_ = (
        ("busy_since", ctypes.c_double),
        ("connected", ctypes.c_uint64),
        ("listening", ctypes.c_uint64),
        ("env_steps", ctypes.c_uint64),
        ("episodes", ctypes.c_uint64),
        ("env_restarts", ctypes.c_uint64),
        ("envs_quarantined", ctypes.c_uint64),
        ("stream_restarts", ctypes.c_uint64),
        ("verdict", ctypes.c_uint64),
        *((f"failures_{kind}", ctypes.c_uint64) for kind in FAILURE_KINDS),
        *((f"connects_{outcome}", ctypes.c_uint64) for outcome in CONNECT_OUTCOMES),
    )

    busy_since: float
    """time.monotonic() since when the environments compute, which all processes of a machine share; 0: they wait."""
    connected: int
    """1 while a learner has welcomed the stream."""
    listening: int
    """1 while the stream can be dialled."""
    env_steps: int
    """Rows of single environments that took an action."""
    episodes: int
    """Whole games that ended."""
    env_restarts: int
    """Environments made anew after a failure."""
    envs_quarantined: int
    """Environments that this process has given up."""
    stream_restarts: int
    """Processes started in place of one that ended."""
    verdict: int
    """ExitCode + 1 of a process that ended on its own account; 0: it runs, or died of something else."""
    failures_exception: int
    failures_reward: int
    failures_observation: int
    failures_hang: int
    failures_process: int
    connects_welcomed: int
    connects_lost: int
    connects_refused: int
    connects_unreachable: int

    def count_failure(self, kind: FailureKind) -> None:
        name = f"failures_{kind}"
        setattr(self, name, getattr(self, name) + 1)

    def failures(self, kind: FailureKind) -> int:
        count: int = getattr(self, f"failures_{kind}")
        return count

    def connects(self, outcome: ConnectOutcome) -> int:
        count: int = getattr(self, f"connects_{outcome}")
        return count

    def forget_process(self) -> None:
        """The process is gone; what it counted stays."""
        self.busy_since = 0.0
        self.connected = self.listening = self.envs_quarantined = self.verdict = 0
