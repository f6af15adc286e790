"""Settings for every test: no accelerator, one thread an operation, so that results do not depend on the machine."""

import os
import signal
import sys
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


@pytest.fixture(scope="module", params=["native", "grpcio"])
def transport(request: pytest.FixtureRequest) -> Iterator[str]:
    """What carries the streams that env-servers dial, in this process and in those that it starts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBEBEAST_TRANSPORT", request.param)
        if request.param == "grpcio":
            patch.setitem(sys.modules, "kubebeast_native", None)  # as where it is not installed
        yield request.param
