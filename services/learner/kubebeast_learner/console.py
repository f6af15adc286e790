"""The script `kubebeast`, with silent Ctrl-C until the command runs."""

import sys
from typing import NoReturn

from kubebeast_common.process.leaving import quiet_interrupts


def main() -> NoReturn:
    """Runs the command line of this process, and ends it."""
    with quiet_interrupts():
        from kubebeast_learner import cli
    sys.exit(cli.main())
