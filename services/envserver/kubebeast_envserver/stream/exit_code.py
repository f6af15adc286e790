"""How an env-server ends."""

import enum


class ExitCode(enum.IntEnum):
    """Exit status of an env-server and of its stream processes."""

    OK = 0
    """Ended by SIGTERM or SIGINT, or after max_steps."""
    FAILED = 1
    """The environment, or a process, failed too often."""
    USAGE = 2
    """A flag, variable or environment that cannot be used: starting again changes nothing."""
    REFUSED = 3
    """The learner refuses this env-server: the log says why."""
    UNREACHABLE = 4
    """max_redials dials in a row failed."""
