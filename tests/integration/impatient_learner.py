"""`kubebeast learner` with a health endpoint that allows an iteration of the training loop seconds, not minutes."""

import sys

from kubebeast_common.cli.main import main
from kubebeast_learner.training import monitor

monitor.FIRST_UPDATE_S = 60.0
monitor.LATER_UPDATE_S = 5.0

if __name__ == "__main__":
    sys.exit(main())
