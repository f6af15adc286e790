"""Process of `kubebeast mono`: training on one machine."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from kubebeast_learner.actors.base import Actors
from kubebeast_learner.actors.mono.actors import MonoActors, num_processes
from kubebeast_learner.config import MonoConfig
from kubebeast_learner.run.state import Checkpoint
from kubebeast_learner.training import process


def train(config: MonoConfig) -> int:
    """Runs `kubebeast mono`: the learner and its actor processes. Returns the exit status."""
    return process.run(config, _actors, num_local_processes=num_processes(config))


@contextlib.contextmanager
def _actors(config: MonoConfig, folder: Path, saved: Checkpoint | None) -> Iterator[Actors]:
    actors = MonoActors(config, folder, saved.env_statistics if saved else ())
    try:
        yield actors
    finally:
        actors.stop()
