"""A stream of an env-server that dials: plays, waits, dials again."""

import contextlib
import logging
from dataclasses import replace
from typing import NamedTuple

from kubebeast_common.access.addresses import is_local
from kubebeast_common.access.kept_call import Service
from kubebeast_common.access.proxy import proxy_of
from kubebeast_common.access.tls_files import TlsError, TlsFiles
from kubebeast_common.access.token_file import TokenFileError
from kubebeast_common.backoff import Backoff
from kubebeast_envserver.config import BROKER, DNS, EnvServerConfig
from kubebeast_envserver.rows.rows import HostedEnv
from kubebeast_envserver.rows.stream_status import StreamStatus
from kubebeast_envserver.stream.broker import METHOD, BrokeredLearners, UnassignedError
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


Choice = Learners | BrokeredLearners
"""The source of learners."""


def serve_stream(
    config: EnvServerConfig, env: HostedEnv, identity: Identity, shutdown: Shutdown, status: StreamStatus
) -> ExitCode:
    """Plays one stream after the other until the shutdown, max_steps, a refusal or max_redials.

    With max_steps, it returns at once if the run is finished, as there is nothing to play. With a broker there may be
    others, and a refusal or the end of a run ends nothing. Raises ConfigError if the transport cannot be used, and
    EnvironmentFailure.
    """
    transport = choose_transport(config.transport)
    logger.info("dialing the learner at %s by %s", config.address, transport)
    _log_access(config)
    backoff, num_failed, advice = Backoff(), 0, DialAdvice(config)
    with contextlib.closing(_open_choice(config, identity, shutdown)) as learners:
        while not shutdown.is_requested():
            try:
                end = _play_once(config, learners, env, identity, shutdown, status)
            except RefusedError as error:
                status.connects_refused += 1
                status.count_disconnect(code_name(error))
                logger.error("the learner at %s refuses this env-server: %s", config.address, error)
                if not learners.note_refusal():
                    return ExitCode.REFUSED
                continue
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
            elif end.is_finished and not learners.note_refusal() and config.max_steps:
                logger.info("nothing to play at %s: %s", end.address, end.reason)
                break
            else:
                status.connects_unreachable += not status.run_finished
                _log_failure(end, num_failed, advice.note_failure(end.reason))
            if 0 < config.max_redials < num_failed:
                logger.error("no learner at %s after %d redials: %s", config.address, config.max_redials, end.reason)
                return ExitCode.UNREACHABLE
            if not end.has_waited:
                shutdown.wait(backoff.next_delay_s())
    return ExitCode.OK


def _open_choice(config: EnvServerConfig, identity: Identity, shutdown: Shutdown) -> Choice:
    if not config.broker:
        return Learners(config.addresses, identity.instance_id)
    broker = Service(
        name="the broker",
        address=config.broker,
        method=METHOD,
        tls=TlsFiles(config.tls_cert, config.tls_key, config.tls_ca),
        tls_server_name=config.tls_server_name,
        token_file=config.token_file,
        use_proxy=bool(proxy_of(config.broker, "", config.use_proxy)),
    )
    return BrokeredLearners(broker, identity, shutdown)


def _log_access(config: EnvServerConfig) -> None:
    """Logs the proxies, and a warning if the token can be read by others."""
    addresses = [part.removeprefix(DNS).removeprefix(BROKER) for part in config.addresses]
    for address in addresses:
        if proxy := proxy_of(address, "", config.use_proxy):
            logger.info("the learner at %s is dialed through the proxy %s", address, proxy)
    if config.token_file and not config.tls_ca and not all(map(is_local, addresses)):
        logger.warning("token_file without tls_ca: the bearer token travels to %s in the clear", config.address)


def _log_failure(end: "_End", num_failed: int, hint: str) -> None:
    """Logs a dial without a Welcome. `hint` is the advice that is due."""
    if hint:
        logger.warning("the learner at %s does not let this env-server in: %s (%s)", end.address, hint, end.reason)
    elif num_failed & (num_failed - 1) == 0:  # 1, 2, 4, 8, ...: a long wait stays a short log
        logger.info("waiting for the learner at %s: %s", end.address, end.reason)


class _End(NamedTuple):
    """End of a stream."""

    address: str
    played_s: float | None
    """Seconds since the Welcome; None if there was none."""
    reason: str = ""
    """Error that ended the connection; empty if there was none."""
    has_left: bool = False
    """True if the stream left for the learner that it prefers."""
    is_finished: bool = False
    """True if the run of the learner is over."""
    has_waited: bool = False
    """True if no learner was dialed, after a wait for one."""


def _play_once(
    config: EnvServerConfig,
    learners: Choice,
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
                replace(identity, run=learner.run or identity.run),
                lz4=lz4,
                welcome_timeout_s=config.welcome_timeout_s,
                max_steps=config.max_steps,
                status=status,
            )
            session.on_welcome = learners.note_welcome
            shutdown.on_request = session.shut_down
            with learners.calling_home(learner, session.leave):
                if not shutdown.is_requested():
                    session.run()
            return _End(address, session.played_s, has_left=session.has_left)
    except UnassignedError as error:
        status.run_finished = error.is_idle
        return _End(address, None, str(error), has_waited=True)
    except (DisconnectedError, ProtocolError, TlsError, TokenFileError, UnresolvedError) as error:
        status.count_disconnect(code_name(error))
        is_finished = isinstance(error, DisconnectedError) and error.code is RUN_FINISHED
        status.run_finished = is_finished
        played_s = session.played_s if session is not None else None
        return _End(address, played_s, f"{type(error).__name__}: {error}", is_finished=is_finished)
    finally:
        shutdown.on_request = None
