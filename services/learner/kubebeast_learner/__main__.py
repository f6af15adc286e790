"""`python -m kubebeast_learner` is the `kubebeast` command."""

import sys

from kubebeast_learner.cli import main

sys.exit(main())
