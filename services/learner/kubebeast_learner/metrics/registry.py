"""The tables, filled at every scrape."""

from collections.abc import Callable, Mapping
from typing import Protocol

from prometheus_client import CollectorRegistry
from prometheus_client.process_collector import ProcessCollector

from kubebeast_envserver.metric_table import Distribution, TableCollector, Values
from kubebeast_learner.metrics.actors import ACTORS
from kubebeast_learner.metrics.machine import MACHINE, machine_reader
from kubebeast_learner.metrics.training import TRAINING
from kubebeast_learner.monitor import Monitor
from kubebeast_learner.task_returns import TaskReturn


class WatchedActors(Protocol):
    """RemoteActors are. From any thread."""

    def stats(self) -> Mapping[str, int]: ...
    def histograms(self) -> Mapping[str, Distribution]: ...
    def task_returns(self) -> Mapping[str, TaskReturn]: ...


def make_registry(actors: WatchedActors, monitor: Monitor, run_id: str) -> CollectorRegistry:
    """The metrics of one training and of its process."""
    registry = CollectorRegistry()
    for table, read in (
        (ACTORS, _actors_reader(actors)),
        (TRAINING, _training_reader(monitor)),
        (MACHINE, machine_reader(run_id)),
    ):
        registry.register(TableCollector(table, read))
    ProcessCollector(registry=registry)
    return registry


def _actors_reader(actors: WatchedActors) -> Callable[[], Values]:
    def read() -> Values:
        tasks = actors.task_returns()
        return {
            **actors.stats(),
            **actors.histograms(),
            "task_episodes": {(name,): task.num_episodes for name, task in tasks.items()},
            "task_returns": {(name,): task.mean_return for name, task in tasks.items()},
        }

    return read


def _training_reader(monitor: Monitor) -> Callable[[], Values]:
    def read() -> Values:
        newest = monitor.snapshot
        return {
            **({} if newest is None else newest.flat()),
            **{f"update_{phase}": seconds for phase, seconds in monitor.phases.seconds.items()},
            "checkpoint_seconds": monitor.checkpoint_seconds,
        }

    return read
