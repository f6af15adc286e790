"""Processes of `kubebeast train` and `kubebeast learner`: training on env-servers."""

import contextlib
import importlib
import json
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import TypeVar

from kubebeast_common.cli.settings import as_flags
from kubebeast_common.http_endpoint import HttpEndpoint
from kubebeast_common.process import open_files
from kubebeast_learner.actors.base import Actors, spread
from kubebeast_learner.actors.remote.access import check_files, warn_about_access
from kubebeast_learner.actors.remote.actors import RemoteActors, make_pool
from kubebeast_learner.actors.remote.dialing import Dialer
from kubebeast_learner.actors.remote.lagged_actors import LaggedActors, make_schedule, with_room
from kubebeast_learner.actors.remote.local_fleet import LocalFleet
from kubebeast_learner.actors.remote.stream_list import encode_streams
from kubebeast_learner.commands import recorded
from kubebeast_learner.config import (
    ConfigError,
    FleetTrainingConfig,
    LearnerConfig,
    LocalFleetConfig,
    PoolConfig,
    RanksConfig,
    TrainConfig,
)
from kubebeast_learner.config.checks import require
from kubebeast_learner.metrics import make_registry
from kubebeast_learner.ranks.devices import choose_inference_devices
from kubebeast_learner.ranks.launch import launch
from kubebeast_learner.ranks.place import Place
from kubebeast_learner.training import run as training
from kubebeast_learner.training.deciding import undecided
from kubebeast_learner.training.monitor import Monitor
from kubebeast_learner.training.process import open_process
from kubebeast_learner.training.run import Run, open_run
from kubebeast_native import ActorPool

logger = logging.getLogger(__name__)

FILES_PER_STREAM = 2
"""Open files per stream: its socket, and the duplicate that the native pool watches."""

ConfigT = TypeVar("ConfigT", bound=FleetTrainingConfig)

LONGEST_SOCKET_PATH = 100
"""Maximum length of a path in bytes: sun_path holds 108 on Linux, 104 on macOS (unix(7))."""


def train(config: TrainConfig) -> int:
    """Runs `kubebeast train`: the learner and its env-servers on this machine. Returns the exit status."""
    refuse_settings_of_strangers(config.pool)
    _require_packages(config.pool)
    importlib.import_module("kubebeast_envserver")  # checks that it is installed: its processes run it
    place = Place.read(os.environ)
    if config.fleet.num_learners > 1 and place.is_alone:
        flags = as_flags(config, without=undecided(config))
        return launch(config.fleet.num_learners, ["train", f"--recipe={config.recipe}", *flags])
    of_rank(config, place)  # raises before the run's folder is touched

    def num_busy_servers(config: TrainConfig) -> int:
        keeps_cores = config.rollout.keeps_cores(config.fleet.lag)
        return share_of_fleet(config.fleet, place).num_servers if keeps_cores else 0

    with private_address() as private, open_process(config, place, config.ranks) as process:
        address = place.address(config.pool.address) or private
        is_done = False
        while not is_done:
            with (
                open_run(process, num_local_processes=num_busy_servers, monitor=_monitor(config.ranks, place)) as run,
                _open_actors(run, address, make_fleet=partial(_local_fleet, run)) as actors,
            ):
                is_done = training.train(run, actors, linger_s=config.pool.longest_linger_s)
    return process.exit_status


def learn(config: LearnerConfig) -> int:
    """Runs `kubebeast learner`: the learner, for env-servers elsewhere. Returns the exit status."""
    if config.fleet.from_recording is not None:
        return recorded.learn(config, config.fleet.from_recording, Place.read(os.environ))
    address = config.pool.listen_address
    if not address and not config.pool.dial:
        raise ConfigError("address = '': env-servers elsewhere need an address to dial, or dial names theirs")
    if config.sharing.broker:
        reason = "is for env-servers that dial the learner: give an address as well as dial"
        require(address != "", "broker", config.sharing.broker, reason)
        importlib.import_module(
            "kubebeast_learner.actors.remote.registration"
        )  # checks that its packages are installed
    check_files(config.pool)
    _require_packages(config.pool)
    place = Place.read(os.environ)
    of_rank(config, place)  # raises before the run's folder is touched
    with open_process(config, place, config.ranks) as process:
        is_done = False
        while not is_done:
            with (
                open_run(process, num_local_processes=lambda _: 0, monitor=_monitor(config.ranks, place)) as run,
                _open_actors(run, place.address(address)) as actors,
            ):
                is_done = training.train(run, actors, linger_s=config.pool.longest_linger_s)
    return process.exit_status


def refuse_settings_of_strangers(pool: PoolConfig) -> None:
    """Raises ConfigError if a setting is used that only env-servers elsewhere need."""
    for name in ("dial", "tls_cert", "tls_key", "tls_ca", "token_file"):
        value = getattr(pool, name)
        reason = "is for kubebeast learner; the env-servers of kubebeast train know no such"
        require(not value, name, str(value), reason)


def of_rank(config: ConfigT, place: Place) -> ConfigT:
    """Returns the configuration of a rank's own actors: seed, dial targets, HTTP address and inference devices.

    Raises ConfigError if there are fewer dial targets than ranks, if a device does not exist, or if a setting is for a
    single rank.
    """
    pool = config.pool
    config.opponents.require_fit(config.tasks, config.curriculum, num_learners=place.num_ranks)
    targets = pool.dial_targets[place.rank :: place.num_ranks]
    reason = f"names fewer than {place.num_ranks}, one for each learner"
    require(not pool.dial or len(targets) > 0, "dial", pool.dial, reason)
    devices = choose_inference_devices(pool.inference_devices, place)
    own_pool = replace(
        pool,
        dial=",".join(targets),
        http_address=place.address(pool.http_address),
        inference_device=",".join(map(str, devices)) or "auto",
    )
    return replace(config, run=replace(config.run, seed=place.seed(config.run.seed)), pool=own_pool)


def share_of_fleet(fleet: LocalFleetConfig, place: Place) -> LocalFleetConfig:
    """Returns the part of one learner in the fleet on this machine, as a fleet with a single learner."""
    num_servers, num_actors = (
        spread(total, place.num_local_ranks)[place.local_rank] for total in (fleet.num_servers, fleet.num_actors)
    )
    return replace(fleet, num_servers=num_servers, num_actors=num_actors, num_learners=1)


@contextlib.contextmanager
def private_address() -> Iterator[str]:
    """Yields a unix socket in a private folder, removed afterwards; loopback if the path would be too long."""
    folder = tempfile.mkdtemp(prefix="kubebeast-")
    path = f"{folder}/pool.sock"
    try:
        yield f"unix:{path}" if len(path.encode()) <= LONGEST_SOCKET_PATH else "127.0.0.1:0"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _local_fleet(run: Run[TrainConfig], address: str) -> LocalFleet:
    """Returns env-servers of this machine that will dial `address`."""
    place = run.process.place
    config = of_rank(run.config, place)
    return LocalFleet(
        share_of_fleet(config.fleet, place),
        address=address,
        seed=config.run.seed,
        version=0 if run.checkpoint is None else run.checkpoint.learner["version"],
        run=config.run.xpid,
        log_path=run.log.folder / ("env-servers.log" if place.is_first else f"env-servers-{place.rank}.log"),
        tasks=config.tasks.tasks,
        serves_metrics=bool(config.pool.http_address),
        group_size=None if config.fleet.lag is None else make_schedule(config).group_size,
    )


@contextlib.contextmanager
def _open_actors(
    run: Run[TrainConfig] | Run[LearnerConfig], address: str, make_fleet: Callable[[str], LocalFleet] | None = None
) -> Iterator[Actors]:
    """Opens a pool that listens, dials or both, and its HTTP endpoint.

    make_fleet makes env-servers of this machine that dial the given address. Other env-servers of a resumed run must
    have its environment. In a new one, the first env-server of the named environment, or of any if none is named,
    decides.
    """
    place, opening_env = run.process.place, run.config.fleet.env
    config: TrainConfig | LearnerConfig = of_rank(run.config, place)
    if isinstance(config, TrainConfig):
        config = with_room(config)
    # Of our own env-servers none is expected: the model's check reports a wrong environment.
    decided = run.process.env_spec if run.checkpoint is None else run.checkpoint.env_spec
    expected = decided if make_fleet is None else None
    # For gRPC in the native core: it would log each failed TLS handshake, which a peer can repeat forever.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    open_files.make_room("max_streams", config.pool.max_streams, FILES_PER_STREAM)
    has_lag = isinstance(config, TrainConfig) and config.fleet.lag is not None
    pool = make_pool(config, address, expected, opening_env, has_lag=has_lag)
    pool.start()
    if address:
        is_private = not config.pool.address
        logger.log(logging.DEBUG if is_private else logging.INFO, "listening on %s", pool.address)
    warn_about_access(config.pool, address)
    local_fleet = make_fleet(pool.address) if make_fleet is not None else None
    is_named = expected is not None or opening_env != ""
    actors = RemoteActors(
        config, pool, local_fleet, is_environment_named=is_named, levels=run.levels, league=run.league
    )
    if isinstance(config, TrainConfig) and local_fleet is not None and config.fleet.lag is not None:
        actors = LaggedActors(config, pool, local_fleet)
    # Closed in reverse order: the pool ends its streams before the processes behind them are stopped.
    with (
        local_fleet or contextlib.nullcontext(),
        contextlib.closing(pool),
        _dialer(config.pool, pool),
        _step_tracer(config, pool),
        _registration(config, pool, actors, run.monitor, place),
        _http_endpoint(config, actors, run.monitor, local_fleet, place),
    ):
        yield actors


def _monitor(config: RanksConfig, place: Place) -> Monitor:
    """Returns the monitor of a rank, with the timeout of the process group as longest wait for other ranks."""
    return Monitor(longest_wait_s=0.0 if place.is_alone else config.rank_timeout_s)


def _dialer(config: PoolConfig, pool: ActorPool) -> AbstractContextManager[object]:
    if not config.dial:
        return contextlib.nullcontext()
    logger.info("dialing %s", config.dial)
    return Dialer(pool.dial, config.dial_targets, max_endpoints=config.max_streams)


def _registration(
    config: TrainConfig | LearnerConfig, pool: ActorPool, actors: RemoteActors, monitor: Monitor, place: Place
) -> AbstractContextManager[object]:
    if not isinstance(config, LearnerConfig) or not config.sharing.broker:
        return contextlib.nullcontext()
    from kubebeast_learner.actors.remote.registration import Registration, advertised  # needs an extra

    return Registration(
        config.pool,
        config.sharing,
        run_id=config.run.xpid,
        address=place.address(config.sharing.advertise_address) or advertised(pool.address),
        weight=config.sharing.broker_weight / place.num_ranks,
        actors=actors,
        snapshot=lambda: monitor.snapshot,
    )


def _require_packages(config: PoolConfig) -> None:
    """Raises ModuleNotFoundError, before the run begins, if traces are enabled without their packages."""
    if config.trace_endpoint:
        importlib.import_module("kubebeast_learner.profiling.tracing")


def _step_tracer(config: FleetTrainingConfig, pool: ActorPool) -> AbstractContextManager[object]:
    endpoint, interval_s = config.pool.trace_endpoint, config.pool.trace_interval_s
    if not endpoint:
        return contextlib.nullcontext()
    from kubebeast_learner.profiling.tracing import StepTracer  # needs an extra

    logger.info("tracing a step every %g s to %s", interval_s, endpoint)
    return StepTracer(pool, endpoint, interval_s=interval_s, run_id=config.run.xpid)


def _http_endpoint(
    config: FleetTrainingConfig, actors: RemoteActors, monitor: Monitor, fleet: LocalFleet | None, place: Place
) -> AbstractContextManager[object]:
    """Opens the HTTP endpoint, or none for "". Raises ConfigError if http_address cannot be bound."""
    address, run_id = config.pool.http_address, config.run.xpid
    if not address:
        return contextlib.nullcontext()

    def readiness() -> str:
        # True without env-servers, too: a Service routes to ready pods only, so they could never connect otherwise.
        return "draining" if actors.is_draining and not monitor.is_finished else ""

    def ranks() -> bytes:
        # Empty for a single learner, and before the first exchange of statistics.
        listed = () if monitor.snapshot is None else monitor.snapshot.ranks
        return json.dumps({"ranks": [each._asdict() for each in listed]}).encode()

    try:
        endpoint = HttpEndpoint(
            address,
            health=monitor.problem,
            readiness=readiness,
            registry=make_registry(actors, monitor, run_id, place),
            pages={
                "/streams": lambda: encode_streams(run_id, actors.streams()),
                "/ranks": ranks,
                "/targets": lambda: json.dumps(fleet.targets() if fleet else []).encode(),
            },
        )
    except OSError as error:
        raise ConfigError(f"http_address = {address!r}: {error.strerror}") from error
    logger.info("serving HTTP on port %d", endpoint.port)
    return endpoint
