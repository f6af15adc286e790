"""Settings for every test, and what carries streams in those that need both."""

import sys
from collections.abc import Iterator

import pytest

from harness.pytest_settings import nameless_log_lines

__all__ = ["nameless_log_lines", "transport"]


@pytest.fixture(scope="module", params=["native", "grpcio"])
def transport(request: pytest.FixtureRequest) -> Iterator[str]:
    """What carries the streams that env-servers dial, in this process and in those that it starts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBEBEAST_TRANSPORT", request.param)
        if request.param == "grpcio":
            patch.setitem(sys.modules, "kubebeast_native", None)  # as where it is not installed
        yield request.param
