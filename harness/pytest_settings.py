"""Settings for every test: no accelerator, one thread per operation, and no settings, terminal or proxy from the
environment, so that results do not depend on the machine.

They apply from the import on, to this process and its children: the conftest.py at the top of each tree of tests
imports this module and its fixtures before anything imports torch.
"""

import os
import signal
from collections.abc import Iterator

import pytest

from kubebeast_common import log
from kubebeast_common.variables import PREFIX

_TERMINAL = ("COLUMNS", "LINES", "FORCE_COLOR", "NO_COLOR")

os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
os.environ.setdefault("OMP_NUM_THREADS", "1")
for _name in [name for name in os.environ if name.startswith(PREFIX) or name in _TERMINAL]:
    del os.environ[_name]
_direct = os.environ.get("no_proxy") or os.environ.get("NO_PROXY")
os.environ["no_proxy"] = os.environ["NO_PROXY"] = ",".join(filter(None, (_direct, "localhost,127.0.0.1,::1")))

# Background processes of a shell ignore SIGINT, and so would all processes that the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def nameless_log_lines() -> Iterator[None]:
    """Clears the ids of a test's learner or env-server in this process from the log lines of the next test."""
    yield
    log.note(run_id="", env_server_id="", instance_id="")
