"""Training on one machine: the process behind `kubebeast mono`."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from kubebeast_learner import app
from kubebeast_learner.actors import Actors
from kubebeast_learner.config import MonoConfig
from kubebeast_learner.env_spec import EnvSpec
from kubebeast_learner.mono.actors import MonoActors, num_processes


def train(config: MonoConfig) -> int:
    """`kubebeast mono`: the learner and its actor processes. Returns the exit status."""
    return app.run(config, _actors, num_local_processes=num_processes(config))


@contextlib.contextmanager
def _actors(config: MonoConfig, folder: Path, spec: EnvSpec | None) -> Iterator[Actors]:
    actors = MonoActors(config, folder)
    try:
        yield actors
    finally:
        actors.stop()
