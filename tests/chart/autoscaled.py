"""A simulated fleet that scales by the demand ratio: learner, inference, pods that start slowly, an autoscaler.

The ratio is that of kubebeast_observe.top.verdict, over series as Prometheus would have them; the algorithm is
that of a HorizontalPodAutoscaler:
https://kubernetes.io/docs/concepts/workloads/autoscaling/horizontal-pod-autoscale/#algorithm-details
"""

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kubebeast_common.pool.demand import demand_ratio, make_loads

SCRAPE_S = 15
SYNC_S = 15
"""Interval of the autoscaler."""
LOOK_OFFSET_S = 7
"""Offset that puts the autoscaler's looks at the metric between two scrapes."""
LEARNER_WINDOW_S = 30
"""Window of the learner's own ratios."""
DEMAND_WINDOW_S = 120
TOLERANCE = 0.1
NUM_CPUS = 4.0
FIRST_CPU_S = 1e6
"""A start value far from 0, at which Prometheus would cut an extrapolation off."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Plant:
    """The simulated system. Rates are env-steps a second; variable ones are functions of the time in seconds."""

    pod_rate: float = 100.0
    """Rate of an env-server that is never held back."""
    learner_rate: Callable[[int], float] = lambda now_s: 1000.0
    inference_rate: float = math.inf
    cpu_rate: float = math.inf
    """Rate that the CPUs of the learner's container can sustain."""
    start_s: Callable[[int], int] = lambda now_s: 20
    """Time until a pod that is created at the given time plays."""
    lag_of_pod: float = 0.1
    """Policy lag, in updates, that a pod's unrolls in progress cause."""


@dataclass(frozen=True, slots=True)
class Scaling:
    """The group's settings as rendered in the HorizontalPodAutoscaler."""

    target: float
    min_replicas: int
    max_replicas: int
    behavior: Mapping[str, Any]


@dataclass(slots=True)
class History:
    """The scraped series, every SCRAPE_S, and the autoscaler's looks and answers, every SYNC_S."""

    starved: list[float] = field(default_factory=list)
    inference_busy: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)
    lag: list[float] = field(default_factory=list)
    streams: list[float] = field(default_factory=list)
    parked: list[float] = field(default_factory=list)
    ratios: list[tuple[int, float]] = field(default_factory=list)
    """Time in seconds, and the ratio."""
    replicas: list[int] = field(default_factory=list)

    def ratio(self) -> float:
        """Returns the demand ratio at the newest look, as PromQL computes it."""
        num = DEMAND_WINDOW_S // SCRAPE_S
        cpu, parked, streams, lag = (values[-num:] for values in (self.cpu_s, self.parked, self.streams, self.lag))
        span_s = SCRAPE_S * (len(cpu) - 1)
        loads = make_loads(
            starved_ratio=self.starved[-1],
            inference_busy_ratio=self.inference_busy[-1],
            cpu_busy_ratio=(cpu[-1] - cpu[0]) / span_s / NUM_CPUS if span_s else None,
            policy_lag_updates=sum(lag) / len(lag),
        )
        return demand_ratio(loads, sum(parked) / max(float(len(streams)), sum(streams)))


def simulate(plant: Plant, scaling: Scaling, *, first_replicas: int, minutes: int) -> History:
    """Simulates second by second. The fleet has settled at first_replicas before the autoscaler begins."""
    history, autoscaler = History(), Autoscaler(scaling)
    made_s = [-10_000] * first_replicas
    starved, busy = deque[float](maxlen=LEARNER_WINDOW_S), deque[float](maxlen=LEARNER_WINDOW_S)
    cpu_s = FIRST_CPU_S
    for now_s in range(60 * minutes):
        ready = [made for made in made_s if now_s - made >= plant.start_s(made)]
        able, learner_rate = plant.pod_rate * len(ready), plant.learner_rate(now_s)
        rate = min(able, plant.inference_rate, plant.cpu_rate, learner_rate)
        starved.append(1 - rate / learner_rate)
        busy.append(rate / plant.inference_rate)
        cpu_s += NUM_CPUS * rate / plant.cpu_rate
        if now_s % SCRAPE_S == 0:
            # Streams are held back only if the learner is fully busy.
            held_back = 1 - rate / able if able and rate == learner_rate else 0.0
            history.starved.append(sum(starved) / len(starved))
            history.inference_busy.append(sum(busy) / len(busy))
            history.cpu_s.append(cpu_s)
            history.lag.append(plant.lag_of_pod * len(ready))
            history.streams.append(float(len(ready)))
            history.parked.append(held_back * len(ready))
        if now_s % SYNC_S == LOOK_OFFSET_S:
            ratio = history.ratio()
            history.ratios.append((now_s, ratio))
            wanted = autoscaler.sync(now_s, ratio, replicas=len(made_s), ready=len(ready))
            made_s = sorted(made_s)[:wanted] + [now_s] * (wanted - len(made_s))
            history.replicas.append(wanted)
    return history


class Autoscaler:
    """One HorizontalPodAutoscaler with an external metric of type Value."""

    def __init__(self, scaling: Scaling) -> None:
        self._scaling = scaling
        self._recommended: list[tuple[int, int]] = []
        self._changes: list[tuple[int, int]] = []
        """Time, and the number of pods added or removed."""

    def sync(self, now_s: int, ratio: float, *, replicas: int, ready: int) -> int:
        """Returns the wanted number of replicas. The metric counts for ready pods only."""
        usage = ratio / self._scaling.target
        wanted = replicas if abs(usage - 1) <= TOLERANCE else math.ceil(usage * ready)
        wanted = self._limited(now_s, self._stabilized(now_s, wanted, replicas), replicas)
        wanted = max(self._scaling.min_replicas, min(self._scaling.max_replicas, wanted))
        if wanted != replicas:
            self._changes.append((now_s, wanted - replicas))
        return wanted

    def _stabilized(self, now_s: int, wanted: int, replicas: int) -> int:
        """Limits growth to the lowest, and shrinking to the highest recommendation within the window."""
        if not self._recommended:
            self._recommended.append((now_s, replicas))
        self._recommended.append((now_s, wanted))
        up, down = (self._since(now_s - self._window_s(rules)) for rules in ("scaleUp", "scaleDown"))
        highest, lowest = min([wanted, *up]), max([wanted, *down])
        return highest if replicas < highest else lowest if replicas > lowest else replicas

    def _window_s(self, rules: str) -> int:
        default = 0 if rules == "scaleUp" else 300
        return int(self._scaling.behavior.get(rules, {}).get("stabilizationWindowSeconds", default))

    def _since(self, since_s: int) -> list[int]:
        return [wanted for at_s, wanted in self._recommended if at_s > since_s]

    def _limited(self, now_s: int, wanted: int, replicas: int) -> int:
        """Returns the number nearest to `wanted` that the most generous policy allows; all policies are percentages."""
        if wanted > replicas:
            most = [math.ceil(before * (1 + share)) for before, share in self._policies("scaleUp", now_s, replicas)]
            return min(wanted, max(replicas, *most))
        least = [int(before * (1 - share)) for before, share in self._policies("scaleDown", now_s, replicas)]
        return max(wanted, min(replicas, *least))

    def _policies(self, rules: str, now_s: int, replicas: int) -> list[tuple[int, float]]:
        """Returns the replicas at the start of each policy's period, and the share by which they may change."""
        policies: Sequence[Mapping[str, Any]] = self._scaling.behavior[rules]["policies"]
        assert all(policy["type"] == "Percent" for policy in policies)
        changes = [
            sum(by for at_s, by in self._changes if at_s > now_s - policy["periodSeconds"]) for policy in policies
        ]
        return [(replicas - change, policy["value"] / 100) for change, policy in zip(changes, policies, strict=True)]
