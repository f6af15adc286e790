"""Registry of the metric tables, filled at every scrape."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from prometheus_client import CollectorRegistry
from prometheus_client.process_collector import ProcessCollector

from kubebeast_common.metrics import Distribution, Labelling, TableCollector, Values
from kubebeast_learner.metrics.actors import ACTORS
from kubebeast_learner.metrics.machine import MACHINE, machine_reader
from kubebeast_learner.metrics.training import TRAINING
from kubebeast_learner.ranks.place import ALONE, Place
from kubebeast_learner.run.task_returns import TaskReturn
from kubebeast_learner.training.monitor import Monitor
from kubebeast_runs.files.room import volume_of


class WatchedActors(Protocol):
    """The metrics of RemoteActors. Thread-safe."""

    def stats(self) -> Mapping[str, int]: ...
    def histograms(self) -> Mapping[str, Distribution]: ...
    def task_returns(self) -> Mapping[str, TaskReturn]: ...


def make_registry(actors: WatchedActors, monitor: Monitor, run_id: str, place: Place = ALONE) -> CollectorRegistry:
    """Returns the metrics of one training and of its process; with several ranks, all have the label `rank`."""
    registry = CollectorRegistry()
    collectors = (
        TableCollector(ACTORS, lambda: _of_actors(actors)),
        TableCollector(TRAINING, lambda: _of_training(monitor)),
        TableCollector(MACHINE, machine_reader(run_id)),
        ProcessCollector(registry=None),
    )
    for collector in collectors:
        registry.register(collector if place.is_alone else Labelling(collector, rank=str(place.rank)))
    return registry


def _of_actors(actors: WatchedActors) -> Values:
    tasks = actors.task_returns()
    return {
        **actors.stats(),
        **actors.histograms(),
        "task_episodes": {(name,): task.num_episodes for name, task in tasks.items()},
        "task_returns": {(name,): task.mean_return for name, task in tasks.items()},
    }


def _of_training(monitor: Monitor) -> Values:
    newest, turns = monitor.snapshot, monitor.turns
    return {
        **({} if turns is None else {"empty_shares": turns.num_empty}),
        **({} if newest is None else newest.flat()),
        "loss_parts": {} if newest is None else newest.own_loss_parts(),
        "episode_infos": {} if newest is None else newest.labelled_infos(),
        "curriculum": {} if newest is None else newest.labelled_curriculum(),
        "league": {} if newest is None else newest.labelled_league(),
        "num_crashes": monitor.num_crashes,
        "node_notice_failures": monitor.notices.num_failures,
        "task_steps": {} if newest is None else {(task,): stats.process_steps for task, stats in newest.tasks.items()},
        **{f"update_{phase}": seconds for phase, seconds in monitor.phases.seconds.items()},
        "checkpoint_seconds": monitor.checkpoint_seconds,
        "write_failures": {(file,): count for file, count in dict(monitor.write_failures).items()},
        **_of_volume(monitor.folder),
    }


def _of_volume(folder: Path | None) -> Values:
    volume = None if folder is None else volume_of(folder)
    return {} if volume is None else {"run_free_bytes": volume.free_bytes, "run_volume_bytes": volume.size_bytes}
