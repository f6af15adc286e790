"""Exit status of an env-server."""

import enum


class ExitCode(enum.IntEnum):
    """Exit status of an env-server and of its stream processes."""

    OK = 0
    """Ended by SIGTERM or SIGHUP, or after max_steps; after SIGINT the status is 130."""
    FAILED = 1
    """The environment, or a process, failed too often."""
    USAGE = 2
    """A flag, variable or environment cannot be used: a restart changes nothing."""
    REFUSED = 3
    """The learner refuses this env-server: the log contains the reason."""
    UNREACHABLE = 4
    """max_redials dials in a row failed."""
