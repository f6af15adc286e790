"""The script `kubebeast`, with silent Ctrl-C until the command runs."""

import sys
from typing import NoReturn

from kubebeast_common.process.leaving import quiet_interrupts


def main() -> NoReturn:
    """Runs the command line of this process, and ends it."""
    try:
        with quiet_interrupts():
            from kubebeast_common.cli import main as cli
    except ModuleNotFoundError as error:
        if error.name != "tyro":
            raise
        sys.exit("kubebeast: commands come with the packages kubebeast-learner, kubebeast-observe, and others")
    sys.exit(cli.main())
