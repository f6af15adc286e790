"""Settings for every test: no accelerator, one thread an operation, so that results do not depend on the machine.

They hold from the import on, for this process and for all that it starts: each tree of tests has a conftest.py at its
top that imports this module, and the fixtures in it, before anything imports torch.
"""

import os
import signal
from collections.abc import Iterator

import pytest

from kubebeast_common import log

os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
os.environ.setdefault("OMP_NUM_THREADS", "1")

# A shell makes what it runs in the background deaf to SIGINT, and so all that the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def nameless_log_lines() -> Iterator[None]:
    """What one test's learner or env-server in this process is called is not on the lines of the next one's."""
    yield
    log.note(run_id="", env_server_id="", instance_id="")
