"""A stream of an env-server that dials: plays, waits, dials again."""

import logging
from typing import NamedTuple

from kubebeast_common.access.addresses import is_local
from kubebeast_common.access.proxy import proxy_of
from kubebeast_common.access.tls_files import TlsError, TlsFiles
from kubebeast_common.access.token_file import TokenFileError
from kubebeast_common.backoff import Backoff
from kubebeast_envserver.config import DNS, EnvServerConfig
from kubebeast_envserver.rows.rows import HostedEnv
from kubebeast_envserver.rows.stream_status import StreamStatus
from kubebeast_envserver.stream.codec import ProtocolError
from kubebeast_envserver.stream.connection import RUN_FINISHED, DisconnectedError, RefusedError, code_name
from kubebeast_envserver.stream.dial_advice import DialAdvice
from kubebeast_envserver.stream.exit_code import ExitCode
from kubebeast_envserver.stream.learners import Learners, UnresolvedError
from kubebeast_envserver.stream.session import Identity, Session
from kubebeast_envserver.stream.shutdown import Shutdown
from kubebeast_envserver.stream.transport import choose_transport, open_stream

STEADY_S = 5.0
"""Seconds of play after which the next wait is a short one; a Welcome alone is not enough."""

logger = logging.getLogger(__name__)


def serve_stream(
    config: EnvServerConfig, env: HostedEnv, identity: Identity, shutdown: Shutdown, status: StreamStatus
) -> ExitCode:
    """Plays one stream after the other until the shutdown, max_steps, a refusal or max_redials.

    With max_steps, it returns at once if the run is finished, as there is nothing to play. Raises ConfigError if the
    transport cannot be used, and EnvironmentFailure.
    """
    transport = choose_transport(config.transport)
    logger.info("dialing the learner at %s by %s", config.address, transport)
    for part in config.addresses:
        if proxy := proxy_of(part.removeprefix(DNS), "", config.use_proxy):
            logger.info("the learner at %s is dialed through the proxy %s", part, proxy)
    if config.token_file and not config.tls_ca and not all(map(is_local, config.addresses)):
        logger.warning("token_file without tls_ca: the bearer token travels to %s in the clear", config.address)
    learners = Learners(config.addresses, identity.instance_id)
    backoff, num_failed, advice = Backoff(), 0, DialAdvice(config)
    while not shutdown.is_requested():
        try:
            end = _play_once(config, learners, env, identity, shutdown, status)
        except RefusedError as error:
            status.connects_refused += 1
            status.count_disconnect(code_name(error))
            logger.error("the learner at %s refuses this env-server: %s", config.address, error)
            return ExitCode.REFUSED
        learners.note_end(was_welcomed=end.played_s is not None)
        if end.has_left:
            logger.info("leaving the learner at %s for the one that this stream belongs to", end.address)
            continue
        if shutdown.is_requested() or not end.reason:
            break
        num_failed = num_failed + 1 if end.played_s is None else 0
        if end.played_s is not None:
            advice.note_success()
            logger.warning("lost the learner at %s: %s", end.address, end.reason)
            if end.played_s >= STEADY_S:
                backoff.reset()
        elif status.run_finished and config.max_steps:
            logger.info("nothing to play at %s: %s", end.address, end.reason)
            break
        else:
            status.connects_unreachable += not status.run_finished
            if hint := advice.note_failure(end.reason):
                logger.warning(
                    "the learner at %s does not let this env-server in: %s (%s)", end.address, hint, end.reason
                )
            elif num_failed & (num_failed - 1) == 0:  # 1, 2, 4, 8, ...: a long wait stays a short log
                logger.info("waiting for the learner at %s: %s", end.address, end.reason)
        if 0 < config.max_redials < num_failed:
            logger.error("no learner at %s after %d redials: %s", config.address, config.max_redials, end.reason)
            return ExitCode.UNREACHABLE
        shutdown.wait(backoff.next_delay_s())
    return ExitCode.OK


class _End(NamedTuple):
    """End of a stream."""

    address: str
    played_s: float | None
    """Seconds since the Welcome; None if there was none."""
    reason: str = ""
    """Error that ended the connection; empty if there was none."""
    has_left: bool = False
    """True if the stream left for the learner that it prefers."""


def _play_once(
    config: EnvServerConfig,
    learners: Learners,
    env: HostedEnv,
    identity: Identity,
    shutdown: Shutdown,
    status: StreamStatus,
) -> _End:
    """Plays one stream to its end."""
    session, address = None, config.address
    try:
        learner = learners.next()
        proxy = proxy_of(learner.address, learner.certificate_name, config.use_proxy)
        address = f"{learner.address} through the proxy {proxy}" if proxy else learner.address
        tls = TlsFiles(config.tls_cert, config.tls_key, config.tls_ca)
        certificate_name = config.tls_server_name or learner.certificate_name
        access = tls, certificate_name, config.token_file
        with open_stream(learner.address, *access, config.transport, use_proxy=bool(proxy)) as stream:
            lz4 = config.compression == "lz4"
            session = Session(
                stream,
                env,
                identity,
                lz4=lz4,
                welcome_timeout_s=config.welcome_timeout_s,
                max_steps=config.max_steps,
                status=status,
            )
            shutdown.on_request = session.shut_down
            with learners.calling_home(learner, session.leave):
                if not shutdown.is_requested():
                    session.run()
            return _End(address, session.played_s, has_left=session.has_left)
    except (DisconnectedError, ProtocolError, TlsError, TokenFileError, UnresolvedError) as error:
        status.count_disconnect(code_name(error))
        status.run_finished = isinstance(error, DisconnectedError) and error.code is RUN_FINISHED
        played_s = session.played_s if session is not None else None
        return _End(address, played_s, f"{type(error).__name__}: {error}")
    finally:
        shutdown.on_request = None
