"""Learners that all tests of a worker attack, and that stay unharmed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.processes.learner_process import WAIT_S
from tests.attacks.siege import Siege


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(3 * WAIT_S))


@pytest.fixture(scope="session", params=["plain", "tls"])
def siege(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Siege]:
    """A siege in which no host is blocked, so that each attack meets the limits of its own connection."""
    with Siege(tmp_path_factory.mktemp("siege"), "--max-offences=0", tls=request.param == "tls") as siege:
        yield siege
