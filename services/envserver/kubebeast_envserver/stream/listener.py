"""A stream of an env-server that listens: one learner at a time dials in, plays and leaves."""

import logging

import grpc

from kubebeast_envserver.config import EnvServerConfig
from kubebeast_envserver.rows.rows import HostedEnv
from kubebeast_envserver.rows.stream_status import StreamStatus
from kubebeast_envserver.stream.codec import ProtocolError
from kubebeast_envserver.stream.connection import DisconnectedError, RefusedError, code_name
from kubebeast_envserver.stream.door import Door, Visit, open_server
from kubebeast_envserver.stream.exit_code import ExitCode
from kubebeast_envserver.stream.session import DRAIN_TIMEOUT_S, Identity, Session
from kubebeast_envserver.stream.shutdown import Shutdown

WELCOME_TIMEOUT_S = 10.0
"""Seconds that a learner has for its Welcome: it keeps others out, so one that is not ready yet has to dial again."""

logger = logging.getLogger(__name__)


def serve_stream(
    config: EnvServerConfig, index: int, env: HostedEnv, identity: Identity, shutdown: Shutdown, status: StreamStatus
) -> ExitCode:
    """Plays with one learner after the other until the shutdown, max_steps or a refusal; listens on port + index.

    Raises ConfigError if it cannot listen, and EnvironmentFailure.
    """
    door = Door(config.token_file)
    server = open_server(config, index, door)
    status.listening = 1
    try:
        while (visit := _next_visit(door, shutdown)) is not None:
            try:
                reason = _play_once(config, visit, env, identity, shutdown, status)
            except RefusedError as error:
                status.connects_refused += 1
                status.count_disconnect(code_name(error))
                logger.error("the learner at %s refuses this env-server: %s", visit.peer, error)
                return ExitCode.REFUSED
            finally:
                door.leave(visit)
            if not reason:
                break
            if not shutdown.is_requested():
                logger.warning("lost the learner at %s: %s", visit.peer, reason)
        return ExitCode.OK
    finally:
        status.listening = 0
        server.stop(DRAIN_TIMEOUT_S).wait()


def _next_visit(door: Door, shutdown: Shutdown) -> Visit | None:
    """Waits for a learner; returns None at the shutdown."""
    shutdown.on_request = door.wake
    try:
        return None if shutdown.is_requested() else door.visits.get()
    finally:
        shutdown.on_request = None


def _play_once(
    config: EnvServerConfig, visit: Visit, env: HostedEnv, identity: Identity, shutdown: Shutdown, status: StreamStatus
) -> str:
    """Plays one visit to its end; returns the error that lost the learner, or an empty string.

    Raises RefusedError and EnvironmentFailure.
    """
    timeout_s = min(WELCOME_TIMEOUT_S, config.welcome_timeout_s)
    lz4 = config.compression == "lz4"
    session = Session(
        visit.stream, env, identity, lz4=lz4, welcome_timeout_s=timeout_s, max_steps=config.max_steps, status=status
    )
    shutdown.on_request = session.shut_down
    try:
        if not shutdown.is_requested():
            session.run()
        return ""
    except RefusedError as error:
        visit.end(grpc.StatusCode.FAILED_PRECONDITION, str(error))
        raise
    except (DisconnectedError, ProtocolError) as error:
        status.count_disconnect(code_name(error))
        if isinstance(error, ProtocolError):
            visit.end(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        if session.played_s is None:
            status.connects_unreachable += 1
        return f"{type(error).__name__}: {error}"
    finally:
        shutdown.on_request = None
