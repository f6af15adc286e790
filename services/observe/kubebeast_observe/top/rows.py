"""Rows of a learner's env-servers: activity, speed and outliers."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Literal

from kubebeast_observe.fleet.state import PodState
from kubebeast_observe.numbers import mean, total
from kubebeast_observe.top.streams_json import StreamReading

Order = Literal["env", "steps", "wait", "age", "name"]

SLOW_FACTOR = 2.0
"""Multiple of the fleet's median step time above which environments are slow."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EnvServer:
    """An env-server, or one of its streams; unknown values are None. Rates are over the window between two looks."""

    name: str
    """The env-server's id; the peer for a stream."""
    env_id: str = ""
    num_streams: int = 0
    envs: int = 0
    steps_per_second: float | None = None
    """Env-steps."""
    env_s: float | None = None
    """Mean time of one step of all environments of a stream, with the round trip."""
    action_wait_s: float | None = None
    """Mean wait for actions per such step."""
    parked_ratio: float | None = None
    """Share of the time that its streams were held back by a full rollout queue."""
    phase: str
    """Current phases of its streams; the pod's status for a pod without a stream."""
    age_s: float
    """Age of its oldest stream, or of a pod without a stream."""
    is_slow: bool = False
    pod: str = ""
    """Name of the pod; "" outside of Kubernetes."""
    node: str = ""
    restarts: int | None = None
    streams: tuple["EnvServer", ...] = ()


def make_rows(
    before: Sequence[StreamReading], now: Sequence[StreamReading], elapsed_s: float, pods: Mapping[str, PodState]
) -> list[EnvServer]:
    """Returns a row for each env-server and for each pod without a stream, unordered.

    Args:
        elapsed_s: Time between the two looks; 0 if there was only one.
        pods: Pods by name, which is the env-server's id in the chart.
    """
    earlier = {stream.key: stream for stream in before} if elapsed_s > 0 else {}
    servers: dict[str, list[EnvServer]] = {}
    for stream in now:
        row = _stream_row(earlier.get(stream.key), stream, elapsed_s)
        servers.setdefault(stream.env_server_id, []).append(row)
    rows = [_with_pod(_server_row(name, streams), pods.get(name)) for name, streams in servers.items()]
    known = [row.env_s for row in rows if row.env_s is not None]
    slow_s = SLOW_FACTOR * median(known) if known else 0.0
    rows = [replace(row, is_slow=row.env_s is not None and row.env_s > slow_s) for row in rows]
    idle = [pod for pod in pods.values() if pod.name not in servers]
    return rows + [_with_pod(EnvServer(name=pod.name, phase=pod.status, age_s=pod.age_s), pod) for pod in idle]


def sorted_rows(rows: Iterable[EnvServer], order: Order) -> list[EnvServer]:
    """Sorts rows by descending value, then by name; unknown values are last."""
    names = {"env": "env_s", "steps": "steps_per_second", "wait": "action_wait_s", "age": "age_s"}

    def key(row: EnvServer) -> tuple[float, str]:
        value = getattr(row, names[order]) if order in names else None
        return 1.0 if value is None else -value, row.name

    return sorted(rows, key=key)


def _stream_row(before: StreamReading | None, now: StreamReading, elapsed_s: float) -> EnvServer:
    row = EnvServer(
        name=now.peer, env_id=now.env_id, num_streams=1, envs=now.num_envs, phase=now.phase, age_s=now.connected_s
    )
    if before is None or now.connected_s < before.connected_s or now.steps < before.steps:
        return row
    steps = (now.steps - before.steps) / max(1, now.num_envs)
    env_s, action_s = now.env_s - before.env_s, now.action_s - before.action_s
    return replace(
        row,
        steps_per_second=(now.steps - before.steps) / elapsed_s,
        env_s=_per_step(env_s, steps, now.phase == "env"),
        action_wait_s=_per_step(action_s, steps, now.phase == "inference"),
        parked_ratio=min(1.0, max(0.0, now.parked_s - before.parked_s) / elapsed_s),
    )


def _per_step(spent_s: float, steps: float, is_under_way: bool) -> float | None:
    """Returns the mean time of a step; for a step longer than the window, its time so far in the window."""
    if steps >= 1:
        return max(0.0, spent_s) / steps
    return spent_s if is_under_way and spent_s > 0 else None


def _server_row(name: str, streams: Sequence[EnvServer]) -> EnvServer:
    phases = Counter(row.phase for row in streams)
    several = len(phases) > 1
    return EnvServer(
        name=name,
        env_id=", ".join(sorted({row.env_id for row in streams})),
        num_streams=len(streams),
        envs=sum(row.envs for row in streams),
        steps_per_second=total(row.steps_per_second for row in streams),
        env_s=mean(row.env_s for row in streams),
        action_wait_s=mean(row.action_wait_s for row in streams),
        parked_ratio=mean(row.parked_ratio for row in streams),
        phase=", ".join(f"{count} {phase}" if several else phase for phase, count in sorted(phases.items())),
        age_s=max(row.age_s for row in streams),
        streams=tuple(sorted(streams, key=lambda row: row.name)),
    )


def _with_pod(row: EnvServer, pod: PodState | None) -> EnvServer:
    return row if pod is None else replace(row, pod=pod.name, node=pod.node, restarts=pod.restarts)
