"""Status of a stream, in memory that its process shares with the supervisor."""

import ctypes
from typing import Literal, get_args

from kubebeast_common.histogram import LengthHistogram, Newest, SecondsHistogram
from kubebeast_common.spec.limits import MAX_RUN_BYTES

FailureKind = Literal["exception", "reward", "observation", "hang", "process"]
"""The environment raised, or broke gymnasium's interface otherwise; its reward is not finite; its observation has a
wrong form or is not finite; it took too long; the whole process died.
"""
ConnectOutcome = Literal["welcomed", "lost", "refused", "unreachable"]
"""The learner accepted the stream; ended an accepted one; refused it; could not be reached, or did not answer."""
EpisodeEnd = Literal["terminated", "truncated", "interrupted"]
"""The game ended by its own rules; was cut off; was interrupted by a failure of the environment."""

FAILURE_KINDS: tuple[FailureKind, ...] = get_args(FailureKind)
CONNECT_OUTCOMES: tuple[ConnectOutcome, ...] = get_args(ConnectOutcome)
EPISODE_ENDS: tuple[EpisodeEnd, ...] = get_args(EpisodeEnd)
GRPC_CODES = (
    *("ok", "cancelled", "unknown", "invalid_argument", "deadline_exceeded", "not_found", "already_exists"),
    *("permission_denied", "resource_exhausted", "failed_precondition", "aborted", "out_of_range", "unimplemented"),
    *("internal", "unavailable", "data_loss", "unauthenticated"),
)
"""Names of grpc.StatusCode (https://grpc.io/docs/guides/status-codes/), lower case; the supervisor imports no gRPC."""

_MAX_INSTANCE_ID_BYTES = 64


class StreamStatus(ctypes.Structure):
    """Status of one stream, over the lives of all its processes. Each field has one writer at a time.

    Shared by `multiprocessing.RawValue(StreamStatus)`: numbers of a machine word, which no reader sees half written,
    and two names, which a reader may see half written.
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
        ("run_id_utf8", ctypes.c_char * (4 * MAX_RUN_BYTES)),
        ("instance_id_utf8", ctypes.c_char * _MAX_INSTANCE_ID_BYTES),
    )

    busy_since: float
    """time.monotonic() since which the environments compute, the same clock in all processes of a machine; 0: they
    wait.
    """
    connected: int
    """1 while a learner has welcomed the stream."""
    listening: int
    """1 while the stream can be dialed."""
    run_finished: int
    """1 if the learner reports that its run is over: there is nothing to play."""
    env_steps: int
    """Rows of single environments that took an action."""
    env_restarts: int
    """Environments created again after a failure."""
    envs_quarantined: int
    """Environments that this process has given up."""
    stream_restarts: int
    """Processes started in place of one that ended."""
    received_bytes: int
    """Bytes of messages from the learner, without the framing of gRPC."""
    sent_bytes: int
    """Bytes of Hello and Observations, without the framing of gRPC."""
    verdict: int
    """ExitCode + 1 of a process that ended by itself; 0 while it runs, or if it died otherwise."""
    connects_welcomed: int
    connects_lost: int
    connects_refused: int
    connects_unreachable: int
    episodes_interrupted: int
    step_seconds: SecondsHistogram
    """Durations of a step of all environments."""
    reset_seconds: SecondsHistogram
    """Durations of the reset of one environment, if they are reset one by one."""
    action_wait_seconds: SecondsHistogram
    """Times from Observations sent to Actions received."""
    episode_lengths: LengthHistogram
    """Decisions per whole game."""
    episode_returns: Newest
    """Unclipped returns of whole games."""
    run_id_utf8: bytes
    instance_id_utf8: bytes

    @property
    def run_id(self) -> str:
        """Run id of the learner that welcomed the stream last; at most 253 characters."""
        return self.run_id_utf8.decode(errors="replace")

    @run_id.setter
    def run_id(self, run_id: str) -> None:
        self.run_id_utf8 = run_id.encode(errors="replace")

    @property
    def instance_id(self) -> str:
        """Instance id of the newest process; "" before it is known."""
        return self.instance_id_utf8.decode(errors="replace")

    @instance_id.setter
    def instance_id(self, instance_id: str) -> None:
        self.instance_id_utf8 = instance_id.encode(errors="replace")

    @property
    def num_failures(self) -> int:
        """Failures of all kinds."""
        return sum(getattr(self, f"failures_{kind}") for kind in FAILURE_KINDS)

    def count_failure(self, kind: FailureKind) -> None:
        self._count(f"failures_{kind}")

    def count_disconnect(self, code: str) -> None:
        """Counts a disconnect. `code` is one of GRPC_CODES."""
        self._count(f"disconnects_{code}")

    def count_episode(self, end: EpisodeEnd, episode_return: float, length: int) -> None:
        """Counts a whole game that its environment ended."""
        self._count(f"episodes_{end}")
        self.episode_lengths.observe(length)
        self.episode_returns.add(episode_return)

    def forget_process(self) -> None:
        """Clears the state of a process that is gone; its counters stay."""
        self.busy_since = 0.0
        self.connected = self.listening = self.run_finished = self.envs_quarantined = self.verdict = 0

    def _count(self, name: str) -> None:
        setattr(self, name, getattr(self, name) + 1)
