"""Entry point of `python -m kubebeast_learner`, which is the `kubebeast` command."""

import sys

# Python puts the working directory first, and its files could shadow modules of the standard library.
sys.path += [] if sys.flags.safe_path else [sys.path.pop(0)]

from kubebeast_common.cli.console import main

main()
