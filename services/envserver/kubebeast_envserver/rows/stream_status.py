"""What a stream's process tells its supervisor, in shared memory."""

import ctypes
from typing import Literal, get_args

from kubebeast_common.histogram import LengthHistogram, Newest, SecondsHistogram

FailureKind = Literal["exception", "reward", "observation", "hang", "process"]
"""Raised or broke gymnasium's interface otherwise; not finite; wrong form or not finite; took too long; the whole
process died."""
ConnectOutcome = Literal["welcomed", "lost", "refused", "unreachable"]
"""A learner accepted the stream; ended an accepted one; refused it; could not be reached, or did not answer."""
EpisodeEnd = Literal["terminated", "truncated", "interrupted"]
"""By the game's own rules; cut off; by a failure of the environment."""

FAILURE_KINDS: tuple[FailureKind, ...] = get_args(FailureKind)
CONNECT_OUTCOMES: tuple[ConnectOutcome, ...] = get_args(ConnectOutcome)
EPISODE_ENDS: tuple[EpisodeEnd, ...] = get_args(EpisodeEnd)
GRPC_CODES = (
    *("ok", "cancelled", "unknown", "invalid_argument", "deadline_exceeded", "not_found", "already_exists"),
    *("permission_denied", "resource_exhausted", "failed_precondition", "aborted", "out_of_range", "unimplemented"),
    *("internal", "unavailable", "data_loss", "unauthenticated"),
)
"""Names of grpc.StatusCode (https://grpc.io/docs/guides/status-codes/), lower case; the supervisor imports no gRPC."""

_MAX_RUN_ID_BYTES = 4 * 253
_MAX_INSTANCE_ID_BYTES = 64


class StreamStatus(ctypes.Structure):
    """Of one stream, over the lives of all its processes. Each field has one writer at a time.

    Shared by `multiprocessing.RawValue(StreamStatus)`: numbers of a machine word, which no reader sees half written,
    and two names, of which one may.
    """

    _fields_ = (
        ("busy_since", ctypes.c_double),
        *((name, ctypes.c_uint64) for name in ("connected", "listening", "run_finished", "env_steps", "env_restarts")),
        *((name, ctypes.c_uint64) for name in ("envs_quarantined", "stream_restarts", "received_bytes", "sent_bytes")),
        ("verdict", ctypes.c_uint64),
        *((f"episodes_{end}", ctypes.c_uint64) for end in EPISODE_ENDS),
        *((f"failures_{kind}", ctypes.c_uint64) for kind in FAILURE_KINDS),
        *((f"connects_{outcome}", ctypes.c_uint64) for outcome in CONNECT_OUTCOMES),
        *((f"disconnects_{code}", ctypes.c_uint64) for code in GRPC_CODES),
        ("step_seconds", SecondsHistogram),
        ("reset_seconds", SecondsHistogram),
        ("action_wait_seconds", SecondsHistogram),
        ("episode_lengths", LengthHistogram),
        ("episode_returns", Newest),
        ("run_id_utf8", ctypes.c_char * _MAX_RUN_ID_BYTES),
        ("instance_id_utf8", ctypes.c_char * _MAX_INSTANCE_ID_BYTES),
    )

    busy_since: float
    """time.monotonic() since when the environments compute, which all processes of a machine share; 0: they wait."""
    connected: int
    """1 while a learner has welcomed the stream."""
    listening: int
    """1 while the stream can be dialed."""
    run_finished: int
    """1 while the learner says that its run is over: there is nothing to play."""
    env_steps: int
    """Rows of single environments that took an action."""
    env_restarts: int
    """Environments made again after a failure."""
    envs_quarantined: int
    """Environments that this process has given up."""
    stream_restarts: int
    """Processes started in place of one that ended."""
    received_bytes: int
    """Of messages from the learner, without the framing of gRPC."""
    sent_bytes: int
    """Of Hello and Observations, without the framing of gRPC."""
    verdict: int
    """ExitCode + 1 of a process that ended on its own account; 0: it runs, or died of something else."""
    connects_welcomed: int
    connects_lost: int
    connects_refused: int
    connects_unreachable: int
    episodes_interrupted: int
    step_seconds: SecondsHistogram
    """One step of all environments."""
    reset_seconds: SecondsHistogram
    """The reset of one environment, of those that are reset one by one."""
    action_wait_seconds: SecondsHistogram
    """From Observations sent to Actions received."""
    episode_lengths: LengthHistogram
    """Decisions in whole games."""
    episode_returns: Newest
    """Unclipped, of whole games."""
    run_id_utf8: bytes
    instance_id_utf8: bytes

    @property
    def run_id(self) -> str:
        """Of the learner that welcomed the stream last; at most 253 characters."""
        return self.run_id_utf8.decode(errors="replace")

    @run_id.setter
    def run_id(self, run_id: str) -> None:
        self.run_id_utf8 = run_id.encode(errors="replace")

    @property
    def instance_id(self) -> str:
        """Of the newest process; "" before it is known."""
        return self.instance_id_utf8.decode(errors="replace")

    @instance_id.setter
    def instance_id(self, instance_id: str) -> None:
        self.instance_id_utf8 = instance_id.encode(errors="replace")

    def count_failure(self, kind: FailureKind) -> None:
        self._count(f"failures_{kind}")

    def count_disconnect(self, code: str) -> None:
        """code: one of GRPC_CODES."""
        self._count(f"disconnects_{code}")

    def count_episode(self, end: EpisodeEnd, episode_return: float, length: int) -> None:
        """A whole game that its environment ended."""
        self._count(f"episodes_{end}")
        self.episode_lengths.observe(length)
        self.episode_returns.add(episode_return)

    def forget_process(self) -> None:
        """The process is gone; what it counted stays."""
        self.busy_since = 0.0
        self.connected = self.listening = self.run_finished = self.envs_quarantined = self.verdict = 0

    def _count(self, name: str) -> None:
        setattr(self, name, getattr(self, name) + 1)
