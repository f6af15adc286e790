"""The metrics of an env-server for Prometheus: sums over its streams, so that no label grows with them.

Counters start at 0 with the env-server and outlive the processes of its streams.
"""

import ctypes
import platform
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import NamedTuple

from prometheus_client import CollectorRegistry
from prometheus_client.process_collector import ProcessCollector

from kubebeast_common.histogram import Histogram
from kubebeast_common.metrics import COUNTER, GAUGE, HISTOGRAM, Labelled, Row, TableCollector, Value, Values
from kubebeast_envserver.rows.stream_status import (
    CONNECT_OUTCOMES,
    EPISODE_ENDS,
    FAILURE_KINDS,
    GRPC_CODES,
    StreamStatus,
)

ENVSERVER = (
    Row(GAUGE, "kubebeast_envserver_streams", "Streams that are configured.", "streams"),
    Row(GAUGE, "kubebeast_envserver_envs", "Environments that are configured.", "envs"),
    Row(GAUGE, "kubebeast_envserver_streams_connected", "Streams that a learner has welcomed.", "connected"),
    Row(GAUGE, "kubebeast_envserver_streams_quarantined", "Streams that were given up.", "streams_quarantined"),
    Row(GAUGE, "kubebeast_envserver_envs_quarantined", "Environments that were given up.", "envs_quarantined"),
    Row(COUNTER, "kubebeast_envserver_env_steps", "Actions that environments took.", "env_steps"),
    Row(
        COUNTER,
        "kubebeast_envserver_episodes",
        "Whole games that ended: by their own rules, cut off, or by a failure of their environment.",
        {end: f"episodes_{end}" for end in EPISODE_ENDS},
        ("end",),
    ),
    Row(
        GAUGE,
        "kubebeast_envserver_episode_return_mean",
        "Mean unclipped return of the newest 100 whole games of each stream.",
        "episode_return_mean",
    ),
    Row(
        COUNTER,
        "kubebeast_envserver_env_failures",
        "Failures of environments, by kind.",
        {kind: f"failures_{kind}" for kind in FAILURE_KINDS},
        ("kind",),
    ),
    Row(COUNTER, "kubebeast_envserver_env_restarts", "Environments made again after a failure.", "env_restarts"),
    Row(COUNTER, "kubebeast_envserver_stream_restarts", "Stream processes that were replaced.", "stream_restarts"),
    Row(
        COUNTER,
        "kubebeast_envserver_connects",
        "What became of connections.",
        {outcome: f"connects_{outcome}" for outcome in CONNECT_OUTCOMES},
        ("outcome",),
    ),
    Row(
        COUNTER,
        "kubebeast_envserver_disconnects",
        "Connections that ended unasked or failed, by gRPC status.",
        {code: f"disconnects_{code}" for code in GRPC_CODES},
        ("code",),
    ),
    Row(COUNTER, "kubebeast_envserver_received_bytes", "Bytes of messages from the learner.", "received_bytes"),
    Row(COUNTER, "kubebeast_envserver_sent_bytes", "Bytes of messages to the learner.", "sent_bytes"),
    Row(HISTOGRAM, "kubebeast_envserver_step_seconds", "One step of all environments of a stream.", "step_seconds"),
    Row(
        HISTOGRAM,
        "kubebeast_envserver_reset_seconds",
        "The reset of one environment; Atari games are reset in a step.",
        "reset_seconds",
    ),
    Row(
        HISTOGRAM,
        "kubebeast_envserver_action_wait_seconds",
        "From Observations sent to Actions received: the way to the learner, its inference, and the way back.",
        "action_wait_seconds",
    ),
    Row(
        HISTOGRAM,
        "kubebeast_envserver_episode_length_steps",
        "Decisions in a whole game that ended.",
        "episode_lengths",
    ),
    Row(
        GAUGE,
        "kubebeast_envserver_build_info",
        "1, with what runs here as labels.",
        "build",
        ("version", "python", "env_id"),
    ),
)

_COUNTS = [name for name, kind, *_ in StreamStatus._fields_ if kind is ctypes.c_uint64]
_HISTOGRAMS = {name: kind for name, kind, *_ in StreamStatus._fields_ if issubclass(kind, Histogram)}


def make_registry(
    statuses: Sequence[StreamStatus], num_quarantined: Callable[[], int], *, env_id: str = "", envs_per_stream: int = 0
) -> CollectorRegistry:
    """The metrics of one env-server and of its supervisor's process; without statuses every counter is 0.

    num_quarantined: streams that were given up; from any thread.
    """
    build: Labelled = {(version("kubebeast-envserver"), platform.python_version(), env_id): 1.0}

    def read() -> Values:
        return {
            **_sums(statuses),
            "streams": len(statuses),
            "envs": len(statuses) * envs_per_stream,
            "streams_quarantined": num_quarantined(),
            "build": build,
        }

    registry = CollectorRegistry()
    registry.register(TableCollector(ENVSERVER, read))
    ProcessCollector(registry=registry)
    return registry


class _Merged(NamedTuple):
    """One histogram of several."""

    bounds: Sequence[float]
    counts: Sequence[int]
    sum: float


def _sums(statuses: Sequence[StreamStatus]) -> Values:
    values: dict[str, Value] = {name: sum(getattr(status, name) for status in statuses) for name in _COUNTS}
    for name, kind in _HISTOGRAMS.items():
        histograms: list[Histogram] = [getattr(status, name) for status in statuses]
        counts = [sum(histogram.counts[i] for histogram in histograms) for i in range(len(kind.bounds) + 1)]
        values[name] = _Merged(kind.bounds, counts, sum(histogram.sum for histogram in histograms))
    returns = [value for status in statuses for value in status.episode_returns.values()]
    if returns:
        values["episode_return_mean"] = sum(returns) / len(returns)
    return values
