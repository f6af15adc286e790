"""Training on env-servers: the process behind `kubebeast train` and `kubebeast learner`."""

import contextlib
import logging
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from kubebeast_learner import app
from kubebeast_learner.actors import Actors
from kubebeast_learner.config import ConfigError, LearnerConfig, LocalFleetConfig, TrainConfig
from kubebeast_learner.local_fleet import LocalFleet
from kubebeast_learner.remote_actors import RemoteActors, make_pool

logger = logging.getLogger(__name__)

LONGEST_SOCKET_PATH = 100
"""sun_path holds 108 bytes on Linux, 104 on macOS (unix(7))."""


def train(config: TrainConfig) -> int:
    """`kubebeast train`: the learner and its env-servers on this machine. Returns the exit status."""
    with private_address() as private:
        address = config.pool.address or private
        return app.run(
            config,
            lambda resolved, folder: _actors(resolved, address, config.fleet, folder),
            num_local_processes=config.fleet.num_servers,
        )


def learn(config: LearnerConfig) -> int:
    """`kubebeast learner`: the learner, for env-servers that dial in. Returns the exit status."""
    address = config.pool.address
    if not address:
        raise ConfigError("address = '': env-servers elsewhere need an address to dial")
    return app.run(config, lambda resolved, folder: _actors(resolved, address, None, folder), num_local_processes=0)


@contextlib.contextmanager
def private_address() -> Iterator[str]:
    """A unix socket in a folder of our own, removed afterwards; loopback where the path would be too long."""
    folder = tempfile.mkdtemp(prefix="kubebeast-")
    path = f"{folder}/pool.sock"
    try:
        yield f"unix:{path}" if len(path.encode()) <= LONGEST_SOCKET_PATH else "127.0.0.1:0"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _actors(
    config: LearnerConfig, address: str, fleet_config: LocalFleetConfig | None, folder: Path
) -> Iterator[Actors]:
    """A listening pool and, where fleet_config is given, the env-servers that dial it."""
    pool = make_pool(config, address)
    pool.start()
    logger.info("listening on %s", pool.address)
    fleet = None
    if fleet_config is not None:
        log_path = folder / "env-servers.log"
        fleet = LocalFleet(fleet_config, address=pool.address, seed=config.run.seed, log_path=log_path)
    # Left in reverse: the pool ends its streams before the processes behind them are stopped.
    with fleet or contextlib.nullcontext(), contextlib.closing(pool):
        yield RemoteActors(config, pool, fleet)
