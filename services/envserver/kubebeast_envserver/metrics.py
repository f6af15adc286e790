"""Prometheus metrics of an env-server: sums over its streams, so that no label grows with them.

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
    Row(GAUGE, "kubebeast_envserver_streams", "Configured streams.", "streams"),
    Row(GAUGE, "kubebeast_envserver_envs", "Configured environments.", "envs"),
    Row(GAUGE, "kubebeast_envserver_streams_connected", "Streams that a learner has accepted.", "connected"),
    Row(
        GAUGE,
        "kubebeast_envserver_streams_quarantined",
        "Quarantined streams: they failed too often and are not started again.",
        "streams_quarantined",
    ),
    Row(
        GAUGE,
        "kubebeast_envserver_envs_quarantined",
        "Quarantined environments: they failed too often and are not created again.",
        "envs_quarantined",
    ),
    Row(COUNTER, "kubebeast_envserver_env_steps", "Actions that environments executed.", "env_steps"),
    Row(
        COUNTER,
        "kubebeast_envserver_episodes",
        "Whole games by their end: terminated by their own rules, truncated, or interrupted by a failure of the "
        "environment.",
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
    Row(COUNTER, "kubebeast_envserver_env_restarts", "Environments created again after a failure.", "env_restarts"),
    Row(COUNTER, "kubebeast_envserver_stream_restarts", "Replaced stream processes.", "stream_restarts"),
    Row(
        COUNTER,
        "kubebeast_envserver_connects",
        "Connections by outcome. A lost connection also counts as welcomed.",
        {outcome: f"connects_{outcome}" for outcome in CONNECT_OUTCOMES},
        ("outcome",),
    ),
    Row(
        COUNTER,
        "kubebeast_envserver_disconnects",
        "Connections that failed or ended unexpectedly, by gRPC status.",
        {code: f"disconnects_{code}" for code in GRPC_CODES},
        ("code",),
    ),
    Row(COUNTER, "kubebeast_envserver_received_bytes", "Bytes of messages from the learner.", "received_bytes"),
    Row(COUNTER, "kubebeast_envserver_sent_bytes", "Bytes of messages to the learner.", "sent_bytes"),
    Row(
        HISTOGRAM,
        "kubebeast_envserver_step_seconds",
        "Time of one step of all environments of a stream.",
        "step_seconds",
    ),
    Row(
        HISTOGRAM,
        "kubebeast_envserver_reset_seconds",
        "Time to reset one environment. Atari games are reset within a step.",
        "reset_seconds",
    ),
    Row(
        HISTOGRAM,
        "kubebeast_envserver_action_wait_seconds",
        "Time from Observations sent to Actions received: the network in both directions and the learner's inference.",
        "action_wait_seconds",
    ),
    Row(
        HISTOGRAM,
        "kubebeast_envserver_episode_length_steps",
        "Decisions per whole game.",
        "episode_lengths",
    ),
    Row(
        GAUGE,
        "kubebeast_envserver_build_info",
        "Always 1; the labels hold the versions and the environment id.",
        "build",
        ("version", "python", "env_id"),
    ),
)

_COUNTS = [name for name, kind, *_ in StreamStatus._fields_ if kind is ctypes.c_uint64]
_HISTOGRAMS = {name: kind for name, kind, *_ in StreamStatus._fields_ if issubclass(kind, Histogram)}


def make_registry(
    statuses: Sequence[StreamStatus], num_quarantined: Callable[[], int], *, env_id: str = "", envs_per_stream: int = 0
) -> CollectorRegistry:
    """Returns the metrics of one env-server and of its supervisor's process; without statuses every counter is 0.

    `num_quarantined` returns the number of streams that were given up; it is called from any thread.
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
    """Merger of several histograms into one."""

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
