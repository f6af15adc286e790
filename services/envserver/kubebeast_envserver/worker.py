"""One stream for the life of its process: makes the environments, plays, makes them anew where they fail together."""

import logging
import uuid

import numpy as np

from kubebeast_envserver import dialler, listener, log
from kubebeast_envserver.backoff import Backoff
from kubebeast_envserver.config import EnvServerConfig
from kubebeast_envserver.envs import FaultPolicy, make_vector_env
from kubebeast_envserver.exit_code import ExitCode as ExitCode
from kubebeast_envserver.failures import FailureWindow
from kubebeast_envserver.rows import AllQuarantined, EnvironmentFailure, HostedEnv
from kubebeast_envserver.session import Identity
from kubebeast_envserver.shutdown import Shutdown
from kubebeast_envserver.stream_status import StreamStatus
from kubebeast_envserver.watched_env import WatchedEnv, watched

logger = logging.getLogger(__name__)


def run_stream(config: EnvServerConfig, index: int, shutdown: Shutdown, status: StreamStatus | None = None) -> ExitCode:
    """Serves stream `index` until a shutdown or an error that trying again cannot mend.

    status: what the stream's supervisor reads; by default nobody does.
    """
    status = status or StreamStatus()
    identity = Identity(
        env_server_id=config.env_server_id, instance_id=f"{uuid.uuid4().hex}-{index}", env_id=config.env
    )
    status.instance_id = identity.instance_id
    log.note(env_server_id=identity.env_server_id, instance_id=identity.instance_id)
    seed = _first_seed(config, index, status)
    failures = FailureWindow(config.max_failures, config.failure_window_s)
    backoff = Backoff()
    while not shutdown.is_requested():
        try:
            return _host(config, index, seed, identity, shutdown, status)
        except AllQuarantined as error:
            logger.error("%s", error)
            return ExitCode.FAILED
        except EnvironmentFailure:
            logger.exception("the environments failed together and are made anew")
            status.env_restarts += config.envs_per_stream
        except ValueError as error:
            logger.error("%s", error)
            return ExitCode.USAGE
        seed = None  # the same seed would lead to the same failure
        if failures.add():
            logger.error("%d failures within %g s: giving up", config.max_failures, config.failure_window_s)
            return ExitCode.FAILED
        shutdown.wait(backoff.next_delay_s())
    return ExitCode.OK


def _first_seed(config: EnvServerConfig, index: int, status: StreamStatus) -> int | None:
    """Of the stream's first environment; the process that replaces another one must not play the same episodes."""
    if config.seed is None or status.stream_restarts == 0:
        return None if config.seed is None else config.seed + index * config.envs_per_stream
    return int(np.random.SeedSequence([config.seed, index, status.stream_restarts]).generate_state(1)[0])


def _host(
    config: EnvServerConfig,
    index: int,
    seed: int | None,
    identity: Identity,
    shutdown: Shutdown,
    status: StreamStatus,
) -> ExitCode:
    """One life of the environments, over as many connections as it takes."""
    env = WatchedEnv(_make(config, seed, status), status)
    try:
        if config.listen:
            return listener.serve_stream(config, index, env, identity, shutdown, status)
        return dialler.serve_stream(config, env, identity, shutdown, status)
    finally:
        try:
            env.close()
        except Exception:
            logger.warning("closing the environment failed", exc_info=True)


def _make(config: EnvServerConfig, seed: int | None, status: StreamStatus) -> HostedEnv:
    status.envs_quarantined = 0
    with watched(status):
        return make_vector_env(
            config.env,
            config.envs_per_stream,
            config.preset,
            config.env_kwargs,
            seed,
            full_stacks=False,
            policy=FaultPolicy(max_failures=config.max_failures, failure_window_s=config.failure_window_s),
            status=status,
        )
