"""`kubebeast learner` whose health endpoint allows a turn of the training loop seconds instead of minutes."""

import sys

from kubebeast_learner.cli import main
from kubebeast_learner.training import monitor

monitor.FIRST_UPDATE_S = 60.0
monitor.LATER_UPDATE_S = 5.0

if __name__ == "__main__":
    sys.exit(main())
