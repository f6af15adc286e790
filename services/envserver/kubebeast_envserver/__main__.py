"""Command line of the env-server: `kubebeast-envserver`, or `python -m kubebeast_envserver`."""

import sys
from collections.abc import Sequence

from kubebeast_envserver import log
from kubebeast_envserver.config import ConfigError, parse
from kubebeast_envserver.shutdown import Shutdown
from kubebeast_envserver.supervisor import STREAM_GRACE_S, Supervisor
from kubebeast_envserver.worker import ExitCode, run_stream


def main(arguments: Sequence[str] | None = None) -> int:
    """Hosts environments until SIGTERM or SIGINT; returns an ExitCode."""
    try:
        config = parse(sys.argv[1:] if arguments is None else arguments)
    except ConfigError as error:
        print(f"kubebeast-envserver: {error}", file=sys.stderr)
        return ExitCode.USAGE
    log.configure(config.log_level)
    shutdown = Shutdown()
    if config.num_streams == 1:
        shutdown.install(STREAM_GRACE_S)
        return run_stream(config, 0, shutdown)
    shutdown.install(STREAM_GRACE_S + 0.5)
    return Supervisor(config, shutdown).run()


if __name__ == "__main__":
    sys.exit(main())
