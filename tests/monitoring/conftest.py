"""One site for all tests of a file: it takes Prometheus half a minute to learn what there is to know."""

import sys
from collections.abc import Iterator

import pytest

from harness.processes.env_server import ROOT
from tests.monitoring.site import Site

sys.path.append(str(ROOT / "deploy" / "helm"))  # the dashboard, which is no distribution


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """With a learner and three env-servers that suit each other, half a minute old."""
    with Site(tmp_path_factory.mktemp("site")) as site:
        site.start("one", "two", "three")
        site.wait_until_known()
        yield site
