"""Metrics of a fleet: those of the native pool, and the rows that a vector environment returns."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry
from prometheus_client.process_collector import ProcessCollector

from kubebeast_common.metrics import COUNTER, GAUGE, Row, TableCollector, Values
from kubebeast_common.pool.metrics import INFERENCE, STEPS, STREAMS

FLEET = (
    Row(
        COUNTER,
        "kubebeast_fleet_rows",
        "Rows handed out: of a reset (first), of a step (step), or in place of a lost environment's row (lost). The "
        "rows of steps are the delivered ones of kubebeast_steps_total.",
        {"first": "rows_first", "step": "rows_step", "lost": "rows_lost"},
        ("kind",),
    ),
    Row(
        GAUGE, "kubebeast_fleet_streams_in_reserve", "Streams that wait for a place in the fleet.", "streams_in_reserve"
    ),
)


def make_registry(read: Callable[[], Values]) -> CollectorRegistry:
    """Returns the metrics of one fleet and of this process. read returns values by name; any thread may call it."""
    registry = CollectorRegistry()
    registry.register(TableCollector((*STEPS, *STREAMS, *INFERENCE, *FLEET), read))
    ProcessCollector(registry=registry)
    return registry
