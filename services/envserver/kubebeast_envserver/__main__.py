"""Command line of the env-server: `kubebeast-envserver`, or `python -m kubebeast_envserver`."""

import contextlib
import logging
import sys
from collections.abc import Sequence

from kubebeast_envserver import log
from kubebeast_envserver.config import ConfigError, EnvServerConfig, parse
from kubebeast_envserver.exit_code import ExitCode
from kubebeast_envserver.shutdown import Shutdown
from kubebeast_envserver.stream_process import STREAM_GRACE_S
from kubebeast_envserver.supervisor import Supervisor

logger = logging.getLogger(__name__)


def main(arguments: Sequence[str] | None = None) -> int:
    """Hosts environments until SIGTERM or SIGINT; returns an ExitCode."""
    try:
        config = parse(sys.argv[1:] if arguments is None else arguments)
    except ConfigError as error:
        print(f"kubebeast-envserver: {error}", file=sys.stderr)
        return ExitCode.USAGE
    log.configure(config.log_level, config.log_format)
    log.note(env_server_id=config.env_server_id)
    shutdown = Shutdown()
    shutdown.install(STREAM_GRACE_S + 1.0)
    supervisor = Supervisor(config, shutdown)
    try:
        endpoint = _endpoint(config, supervisor)
    except OSError as error:
        logger.error("http_address = %r: %s", config.http_address, error)
        return ExitCode.USAGE
    with endpoint:
        return supervisor.run()


def _endpoint(config: EnvServerConfig, supervisor: Supervisor) -> contextlib.AbstractContextManager[object]:
    if not config.http_address:
        return contextlib.nullcontext()
    # Memory of the supervisor that only those pay who ask for it.
    from kubebeast_envserver.http_endpoint import HttpEndpoint
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
