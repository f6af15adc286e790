"""The metrics of an env-server, read from its streams' statuses at every scrape."""

from collections.abc import Callable, Iterator, Sequence

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from kubebeast_envserver.stream_status import CONNECT_OUTCOMES, FAILURE_KINDS, StreamStatus

_PREFIX = "kubebeast_envserver_"


class StreamMetrics(Collector):
    """Sums over all streams: no label grows with the fleet."""

    def __init__(self, statuses: Sequence[StreamStatus], num_quarantined: Callable[[], int]) -> None:
        """num_quarantined: streams that were given up."""
        self._statuses = statuses
        self._num_quarantined = num_quarantined

    def collect(self) -> Iterator[Metric]:
        statuses = self._statuses
        for name, text, count in (
            ("env_steps", "Actions that environments took.", sum(s.env_steps for s in statuses)),
            ("episodes", "Whole games that ended.", sum(s.episodes for s in statuses)),
            ("env_restarts", "Environments made anew after a failure.", sum(s.env_restarts for s in statuses)),
            ("stream_restarts", "Stream processes that were replaced.", sum(s.stream_restarts for s in statuses)),
        ):
            yield CounterMetricFamily(_PREFIX + name, text, count)
        failures = CounterMetricFamily(_PREFIX + "env_failures", "Failures of environments.", labels=["kind"])
        for kind in FAILURE_KINDS:
            failures.add_metric([kind], sum(status.failures(kind) for status in statuses))
        yield failures
        connects = CounterMetricFamily(_PREFIX + "connects", "What became of connections.", labels=["outcome"])
        for outcome in CONNECT_OUTCOMES:
            connects.add_metric([outcome], sum(status.connects(outcome) for status in statuses))
        yield connects
        for name, text, value in (
            ("envs_quarantined", "Environments that were given up.", sum(s.envs_quarantined for s in statuses)),
            ("streams_quarantined", "Streams that were given up.", self._num_quarantined()),
            ("streams_connected", "Streams that a learner has welcomed.", sum(s.connected for s in statuses)),
        ):
            yield GaugeMetricFamily(_PREFIX + name, text, value)


def make_registry(statuses: Sequence[StreamStatus], num_quarantined: Callable[[], int]) -> CollectorRegistry:
    """With nothing but these metrics."""
    registry = CollectorRegistry()
    registry.register(StreamMetrics(statuses, num_quarantined))
    return registry
