"""One stream for the life of its process: creates the environments, plays, creates them again if they fail together."""

import logging
import uuid
from dataclasses import replace

from kubebeast_common import log
from kubebeast_common.backoff import Retries
from kubebeast_common.seeds import derived_seed
from kubebeast_common.settings import ConfigError
from kubebeast_common.spec.limits import MAX_ENV_CONFIG_CHARACTERS
from kubebeast_envserver.config import EnvServerConfig
from kubebeast_envserver.envs.factory import make_vector_env, resolve_config
from kubebeast_envserver.faults.watched_env import WatchedEnv, watched
from kubebeast_envserver.rows.rows import AllQuarantined, EnvironmentFailure, HostedEnv
from kubebeast_envserver.rows.stream_status import StreamStatus
from kubebeast_envserver.stream import dialer, listener
from kubebeast_envserver.stream.exit_code import ExitCode as ExitCode
from kubebeast_envserver.stream.session import Identity
from kubebeast_envserver.stream.shutdown import Shutdown

logger = logging.getLogger(__name__)


def run_stream(config: EnvServerConfig, index: int, shutdown: Shutdown, status: StreamStatus | None = None) -> ExitCode:
    """Serves stream `index` until a shutdown, or an error that a retry cannot fix.

    `status` is shared with the stream's supervisor; by default, none reads it.
    """
    status = status or StreamStatus()
    identity = Identity(
        env_server_id=config.env_server_id,
        instance_id=f"{uuid.uuid4().hex}-{index}",
        env_id=config.env,
        run=config.run,
    )
    status.instance_id = identity.instance_id
    log.note(env_server_id=identity.env_server_id, instance_id=identity.instance_id)
    seed = _first_seed(config, index, status)
    retries = Retries(config.fault_policy)
    env = None
    while not shutdown.is_requested():
        steps_before = status.env_steps
        try:
            env = WatchedEnv(_make(config, seed, status), status)
            return _play(config, index, env, identity, shutdown, status)
        except AllQuarantined as error:
            logger.error("%s", error)
            return ExitCode.FAILED
        except EnvironmentFailure as failure:
            if env is None and not status.env_steps:
                logger.error("%s", failure)
                return ExitCode.FAILED
            logger.warning("the environments failed together and are created again: %s", failure, exc_info=True)
            status.env_restarts += config.envs_per_stream
        except (ValueError, ConfigError) as error:
            if not status.env_steps:
                logger.error("%s", error)
                return ExitCode.USAGE
            logger.warning("the environments that had worked cannot be created again: %s", error)
        seed = None  # the same seed would lead to the same failure
        delay_s = retries.note_failure((status.env_steps - steps_before) // config.envs_per_stream)
        if delay_s is None:
            logger.error("%d failures within %g s: giving up", config.max_failures, config.failure_window_s)
            return ExitCode.FAILED
        shutdown.wait(delay_s)
    return ExitCode.OK


def _first_seed(config: EnvServerConfig, index: int, status: StreamStatus) -> int | None:
    """Returns the seed of the stream's first environment; a process that replaces another must not play the same
    episodes.
    """
    if config.seed is None or status.stream_restarts == 0:
        return None if config.seed is None else config.seed + index * config.envs_per_stream
    return derived_seed(config.seed, index, status.stream_restarts)


def _play(
    config: EnvServerConfig, index: int, env: HostedEnv, identity: Identity, shutdown: Shutdown, status: StreamStatus
) -> ExitCode:
    """Plays one life of the environments, over as many connections as it takes."""
    identity = replace(identity, env_config=_env_config(config))
    try:
        if config.listen:
            return listener.serve_stream(config, index, env, identity, shutdown, status)
        return dialer.serve_stream(config, env, identity, shutdown, status)
    finally:
        try:
            env.close()
        except Exception:
            logger.warning("closing the environment failed", exc_info=True)


def _env_config(config: EnvServerConfig) -> str:
    """Returns the env_config of the Hello; empty, with a warning, if it cannot be sent."""
    try:
        told = resolve_config(config.env, config.preset, config.env_kwargs, config.wrappers, config.time_limit)
        text = told.to_json()
        if len(text) > MAX_ENV_CONFIG_CHARACTERS:
            raise ValueError(f"{len(text)} characters, at most {MAX_ENV_CONFIG_CHARACTERS}")
    except ValueError as error:
        logger.warning(
            "kubebeast eval will need flags, because the settings of the environment cannot be sent: %s", error
        )
        return ""
    return text


def _make(config: EnvServerConfig, seed: int | None, status: StreamStatus) -> HostedEnv:
    status.envs_quarantined = 0
    with watched(status):
        return make_vector_env(
            config.env,
            config.envs_per_stream,
            config.preset,
            config.env_kwargs,
            seed,
            wrappers=config.wrappers,
            time_limit=config.time_limit,
            full_stacks=False,
            policy=config.fault_policy,
            status=status,
        )
