"""One site for all tests of a file, because Prometheus takes half a minute to collect its history."""

import sys
from collections.abc import Iterator

import pytest

from harness.processes.env_server import ROOT
from tests.monitoring.site import Site

sys.path.append(str(ROOT / "deploy" / "helm"))  # the dashboard, which is no distribution


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site with a learner and three env-servers that match its speed, half a minute old."""
    with Site(tmp_path_factory.mktemp("site")) as site:
        site.start("one", "two", "three")
        site.wait_until_known()
        yield site
