"""Prometheus metrics of a broker. Labels are runs with a learner, of which there are at most max_learners."""

import platform
from collections.abc import Callable
from importlib.metadata import version

from prometheus_client import CollectorRegistry
from prometheus_client.process_collector import ProcessCollector

from kubebeast_broker.view import View
from kubebeast_common.metrics import COUNTER, GAUGE, Labelled, Row, TableCollector, Values

BROKER = (
    Row(GAUGE, "kubebeast_broker_learners", "Learners that are registered.", "learners"),
    Row(GAUGE, "kubebeast_broker_streams", "Streams of env-servers that are connected to the broker.", "streams"),
    Row(GAUGE, "kubebeast_broker_streams_unassigned", "Connected streams without a learner.", "unassigned"),
    Row(GAUGE, "kubebeast_broker_run_weight", "Sum of the weights of a run's learners.", "weights", ("run_id",)),
    Row(
        GAUGE,
        "kubebeast_broker_run_usable_streams",
        "Streams that a run's learners could use, 0 for any number.",
        "usable",
        ("run_id",),
    ),
    Row(
        GAUGE,
        "kubebeast_broker_run_share",
        "Streams that a run is due, by weights and by the number it can use; a fraction.",
        "shares",
        ("run_id",),
    ),
    Row(GAUGE, "kubebeast_broker_run_streams", "Streams that are assigned to a run.", "assigned", ("run_id",)),
    Row(GAUGE, "kubebeast_broker_run_streams_playing", "Streams that play for a run.", "playing", ("run_id",)),
    Row(
        COUNTER,
        "kubebeast_broker_run_stream_seconds",
        "Time that streams have played for a run, summed over streams.",
        "seconds",
        ("run_id",),
    ),
    Row(COUNTER, "kubebeast_broker_moves", "Streams that had to leave a learner for another.", "moves"),
    Row(
        COUNTER,
        "kubebeast_broker_learners_lost",
        "Learners that lost their connection and did not come back.",
        "learners_lost",
    ),
    Row(
        COUNTER,
        "kubebeast_broker_calls_refused",
        "Calls that were refused, by gRPC status.",
        "refused",
        ("code",),
    ),
    Row(
        GAUGE,
        "kubebeast_broker_build_info",
        "Always 1; the labels hold the versions.",
        "build",
        ("version", "python"),
    ),
)


def make_registry(look: Callable[[], View]) -> CollectorRegistry:
    """Returns the metrics of a broker and of its process. `look` is called at each scrape, from any thread."""
    build: Labelled = {(version("kubebeast-broker"), platform.python_version()): 1.0}
    registry = CollectorRegistry()
    registry.register(TableCollector(BROKER, lambda: {**_values(look()), "build": build}))
    ProcessCollector(registry=registry)
    return registry


def _values(view: View) -> Values:
    return {
        "learners": sum(run.learners for run in view.runs),
        "streams": len(view.streams),
        "unassigned": sum(stream.run_id == "" for stream in view.streams),
        "weights": {(run.run_id,): run.weight for run in view.runs},
        "usable": {(run.run_id,): float(run.usable_streams) for run in view.runs},
        "shares": {(run.run_id,): run.share for run in view.runs},
        "assigned": {(run.run_id,): float(run.streams) for run in view.runs},
        "playing": {(run.run_id,): float(run.playing) for run in view.runs},
        "seconds": {(run.run_id,): run.stream_seconds for run in view.runs},
        "moves": view.num_moves,
        "learners_lost": view.num_lost,
        "refused": {(code,): float(count) for code, count in view.num_refused.items()},
    }
