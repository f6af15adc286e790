"""One stream for the life of its process: makes the environments, dials, plays, dials again."""

import enum
import logging
import uuid

from kubebeast_envserver.codec import ProtocolError
from kubebeast_envserver.config import EnvServerConfig
from kubebeast_envserver.connection import Backoff, DisconnectedError, RefusedError, open_channel
from kubebeast_envserver.envs import make_vector_env
from kubebeast_envserver.failures import FailureWindow
from kubebeast_envserver.rows import EnvironmentFailure, HostedEnv
from kubebeast_envserver.session import Identity, Session
from kubebeast_envserver.shutdown import Shutdown

logger = logging.getLogger(__name__)


class ExitCode(enum.IntEnum):
    """Exit status of an env-server and of its stream processes."""

    OK = 0
    """Ended by SIGTERM or SIGINT."""
    FAILED = 1
    """The environment, or a process, failed too often."""
    USAGE = 2
    """A flag, variable or environment id that cannot be used."""
    REFUSED = 3
    """The learner refuses this env-server: the log says why."""
    UNREACHABLE = 4
    """max_redials dials in a row failed."""


def run_stream(config: EnvServerConfig, index: int, shutdown: Shutdown) -> ExitCode:
    """Serves stream `index` until a shutdown or an error that trying again cannot mend."""
    identity = Identity(
        env_server_id=config.env_server_id, instance_id=f"{uuid.uuid4().hex}-{index}", env_id=config.env
    )
    seed = None if config.seed is None else config.seed + index * config.envs_per_stream
    failures = FailureWindow(config.max_failures, config.failure_window_s)
    backoff = Backoff()
    while not shutdown.is_requested():
        try:
            return _host(config, seed, identity, shutdown)
        except EnvironmentFailure:
            logger.exception("the environment failed and is made anew")
        except ValueError as error:
            logger.error("%s", error)
            return ExitCode.USAGE
        seed = None  # the same seed would lead to the same failure
        if failures.add():
            logger.error("%d failures within %g s: giving up", config.max_failures, config.failure_window_s)
            return ExitCode.FAILED
        shutdown.wait(backoff.next_delay_s())
    return ExitCode.OK


def _host(config: EnvServerConfig, seed: int | None, identity: Identity, shutdown: Shutdown) -> ExitCode:
    """One life of the environments, over as many connections as it takes."""
    env = make_vector_env(config.env, config.envs_per_stream, config.preset, config.env_kwargs, seed, full_stacks=False)
    try:
        return _dial_until_end(config, env, identity, shutdown)
    finally:
        try:
            env.close()
        except Exception:
            logger.warning("closing the environment failed", exc_info=True)


def _dial_until_end(config: EnvServerConfig, env: HostedEnv, identity: Identity, shutdown: Shutdown) -> ExitCode:
    backoff = Backoff()
    while not shutdown.is_requested():
        try:
            welcomed, reason = _connect(config, env, identity, shutdown)
        except RefusedError as error:
            logger.error("the learner at %s refuses this env-server: %s", config.address, error)
            return ExitCode.REFUSED
        if shutdown.is_requested():
            break
        if welcomed:
            backoff.reset()
            logger.warning("lost the learner at %s: %s", config.address, reason)
        elif backoff.tries & (backoff.tries - 1) == 0:  # tries 0, 1, 2, 4, 8, ...: a long wait stays a short log
            logger.info("waiting for the learner at %s: %s", config.address, reason)
        if config.max_redials and backoff.tries >= config.max_redials:
            logger.error("no learner at %s after %d redials: %s", config.address, backoff.tries, reason)
            return ExitCode.UNREACHABLE
        shutdown.wait(backoff.next_delay_s())
    return ExitCode.OK


def _connect(config: EnvServerConfig, env: HostedEnv, identity: Identity, shutdown: Shutdown) -> tuple[bool, str]:
    """One connection to its end: whether the learner welcomed it, and why it ended."""
    with open_channel(config.address) as channel:
        session = Session(
            channel, env, identity, lz4=config.compression == "lz4", welcome_timeout_s=config.welcome_timeout_s
        )
        shutdown.on_request = session.shut_down
        try:
            if not shutdown.is_requested():
                session.run()
            return session.welcomed, "shut down"
        except (DisconnectedError, ProtocolError) as error:
            return session.welcomed, f"{type(error).__name__}: {error}"
        finally:
            shutdown.on_request = None
