"""A stream whose env-server dials: plays, waits, dials again."""

import logging

from kubebeast_common.access.addresses import is_local
from kubebeast_common.access.tls_files import TlsError, TlsFiles
from kubebeast_common.access.token_file import TokenFileError
from kubebeast_common.backoff import Backoff
from kubebeast_envserver.config import EnvServerConfig
from kubebeast_envserver.rows.rows import HostedEnv
from kubebeast_envserver.rows.stream_status import StreamStatus
from kubebeast_envserver.stream.codec import ProtocolError
from kubebeast_envserver.stream.connection import RUN_FINISHED, DisconnectedError, RefusedError, code_name, open_stream
from kubebeast_envserver.stream.dial_advice import DialAdvice
from kubebeast_envserver.stream.exit_code import ExitCode
from kubebeast_envserver.stream.session import Identity, Session
from kubebeast_envserver.stream.shutdown import Shutdown

STEADY_S = 5.0
"""A stream that was played for so long makes the next wait a short one; being welcomed alone does not."""

logger = logging.getLogger(__name__)


def serve_stream(
    config: EnvServerConfig, env: HostedEnv, identity: Identity, shutdown: Shutdown, status: StreamStatus
) -> ExitCode:
    """Plays one stream after the other until the shutdown, max_steps, a refusal or max_redials.

    With max_steps it is over at once where the run is finished: there is nothing to play.

    Raises EnvironmentFailure.
    """
    if config.token_file and not config.tls_ca and not is_local(config.address):
        logger.warning("token_file without tls_ca: the bearer token travels to %s in the clear", config.address)
    backoff, num_failed, advice = Backoff(), 0, DialAdvice(config)
    while not shutdown.is_requested():
        try:
            played_s, reason = _play_once(config, env, identity, shutdown, status)
        except RefusedError as error:
            status.connects_refused += 1
            status.count_disconnect(code_name(error))
            logger.error("the learner at %s refuses this env-server: %s", config.address, error)
            return ExitCode.REFUSED
        if shutdown.is_requested() or not reason:
            break
        num_failed = num_failed + 1 if played_s is None else 0
        if played_s is not None:
            advice.note_success()
            logger.warning("lost the learner at %s: %s", config.address, reason)
            if played_s >= STEADY_S:
                backoff.reset()
        elif status.run_finished and config.max_steps:
            logger.info("nothing to play at %s: %s", config.address, reason)
            break
        else:
            status.connects_unreachable += not status.run_finished
            if hint := advice.note_failure(reason):
                logger.warning(
                    "the learner at %s does not let this env-server in: %s (%s)", config.address, hint, reason
                )
            elif num_failed & (num_failed - 1) == 0:  # 1, 2, 4, 8, ...: a long wait stays a short log
                logger.info("waiting for the learner at %s: %s", config.address, reason)
        if 0 < config.max_redials < num_failed:
            logger.error("no learner at %s after %d redials: %s", config.address, config.max_redials, reason)
            return ExitCode.UNREACHABLE
        shutdown.wait(backoff.next_delay_s())
    return ExitCode.OK


def _play_once(
    config: EnvServerConfig, env: HostedEnv, identity: Identity, shutdown: Shutdown, status: StreamStatus
) -> tuple[float | None, str]:
    """One stream to its end: for how many seconds it was played, None if never welcomed, and how it was lost, if so."""
    session = None
    try:
        tls = TlsFiles(config.tls_cert, config.tls_key, config.tls_ca)
        with open_stream(config.address, tls, config.tls_server_name, config.token_file) as stream:
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
            if not shutdown.is_requested():
                session.run()
            return session.played_s, ""
    except (DisconnectedError, ProtocolError, TlsError, TokenFileError) as error:
        status.count_disconnect(code_name(error))
        status.run_finished = isinstance(error, DisconnectedError) and error.code is RUN_FINISHED
        return session.played_s if session is not None else None, f"{type(error).__name__}: {error}"
    finally:
        shutdown.on_request = None
