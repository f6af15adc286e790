"""The metrics of a fleet: the native pool's, and the books of what a vector environment hands out."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry
from prometheus_client.process_collector import ProcessCollector

from kubebeast_common.metrics import COUNTER, GAUGE, Row, TableCollector, Values
from kubebeast_common.pool.metrics import INFERENCE, STEPS, STREAMS

FLEET = (
    Row(
        COUNTER,
        "kubebeast_fleet_rows",
        "Rows handed out: of a reset, of a step, or in place of a lost environment's; those of steps are "
        "kubebeast_steps_total delivered.",
        {"first": "rows_first", "step": "rows_step", "lost": "rows_lost"},
        ("kind",),
    ),
    Row(GAUGE, "kubebeast_fleet_streams_in_reserve", "Streams that wait for room in the fleet.", "streams_in_reserve"),
)


def make_registry(read: Callable[[], Values]) -> CollectorRegistry:
    """The metrics of one fleet and of this process. read: values by name, from any thread."""
    registry = CollectorRegistry()
    registry.register(TableCollector((*STEPS, *STREAMS, *INFERENCE, *FLEET), read))
    ProcessCollector(registry=registry)
    return registry
