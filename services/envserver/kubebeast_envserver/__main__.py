"""Command line of the env-server: `kubebeast-envserver`, or `python -m kubebeast_envserver`."""

import sys

# `python -m` puts the working directory first, and a file in it may have the name of a module of Python.
sys.path += [sys.path.pop(0)] if __name__ == "__main__" and not sys.flags.safe_path else []

import contextlib
import logging
import os
import signal
from collections.abc import Sequence
from dataclasses import fields

from kubebeast_common import log
from kubebeast_common.process import open_files
from kubebeast_common.process.family import adopt_orphans, kill_descendants
from kubebeast_common.process.leaving import INTERRUPTED, leave
from kubebeast_common.settings import ConfigError
from kubebeast_common.text import replace_what_cannot_be_shown
from kubebeast_common.variables import unknown_variables
from kubebeast_envserver.config import EnvServerConfig, parse
from kubebeast_envserver.process.stream_process import STREAM_GRACE_S
from kubebeast_envserver.process.supervisor import Supervisor
from kubebeast_envserver.stream.exit_code import ExitCode
from kubebeast_envserver.stream.shutdown import Shutdown

logger = logging.getLogger(__name__)

FILES_PER_STREAM = 4
"""Files that the supervisor keeps open for the process of a stream."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Hosts environments until SIGTERM, SIGHUP or SIGINT, or checks one (`check ENV`).

    Returns the exit status: an ExitCode, or 130 after Ctrl-C.

    If `arguments` is None, takes those of the process and exits the process.
    """
    if arguments is None:
        checks = sys.argv[1:2] == ["check"]
        if checks:
            adopt_orphans()
        leave(_run(sys.argv[1:]), kill_descendants if checks else lambda: None)
    return _run(arguments)


def _run(arguments: Sequence[str]) -> int:
    replace_what_cannot_be_shown()
    try:
        if arguments[:1] == ["check"]:
            return _check(arguments[1:])
        config = _parse(arguments)
    except ConfigError as error:
        print(f"kubebeast-envserver: {error}", file=sys.stderr)
        return ExitCode.USAGE
    except BrokenPipeError:  # the reader has gone; https://docs.python.org/3/library/signal.html#note-on-sigpipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    log.configure(config.log_level, config.log_format)
    log.note(env_server_id=config.env_server_id)
    for sentence in unknown_variables(os.environ, [option.name for option in fields(EnvServerConfig)], slips_only=True):
        logger.warning("%s", sentence)
    open_files.make_room("num_streams", config.num_streams, FILES_PER_STREAM)
    shutdown = Shutdown()
    shutdown.install(STREAM_GRACE_S + 1.0, last=kill_descendants)
    supervisor = Supervisor(config, shutdown)
    try:
        endpoint = _endpoint(config, supervisor)
    except OSError as error:
        logger.error("http_address = %r: %s", config.http_address, error)
        return ExitCode.USAGE
    with endpoint:
        code = supervisor.run()
    return INTERRUPTED if shutdown.is_interrupted and code == ExitCode.OK else code


def _check(arguments: Sequence[str]) -> int:
    # Imported here because of the memory: a supervisor needs no environment.
    from kubebeast_envserver.trial import command

    try:
        return command.run(arguments)
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        sys.stdout.flush()


def _parse(arguments: Sequence[str]) -> EnvServerConfig:
    try:
        return parse(arguments)
    finally:
        sys.stdout.flush()  # the output of --help


def _endpoint(config: EnvServerConfig, supervisor: Supervisor) -> contextlib.AbstractContextManager[object]:
    if not config.http_address:
        return contextlib.nullcontext()
    # Imported here because of the memory: only supervisors with an http_address need it.
    from kubebeast_common.http_endpoint import HttpEndpoint
    from kubebeast_envserver.metrics import make_registry

    registry = make_registry(
        supervisor.statuses,
        lambda: supervisor.num_quarantined,
        env_id=config.env,
        envs_per_stream=config.envs_per_stream,
    )
    endpoint = HttpEndpoint(
        config.http_address, health=supervisor.illness, readiness=supervisor.unreadiness, registry=registry
    )
    logger.info("serving HTTP on port %d", endpoint.port)
    return endpoint


if __name__ == "__main__":
    sys.exit(main())
