"""Learners for all tests of a worker that leave them alive."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.processes.learner_process import WAIT_S
from tests.system.environments import LEISURELY_MS
from tests.system.halves import Halves


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Limits each test, so that a failed wait is reported with its logs before the limit of the run ends everything."""
    for item in items:
        if Path(__file__).parent in item.path.parents and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(3 * WAIT_S))


@pytest.fixture(scope="session")
def halves(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Halves]:
    """Learner and neighbor, in which every row travels whole."""
    with Halves(tmp_path_factory.mktemp("halves"), env_ms=LEISURELY_MS) as halves:
        yield halves


@pytest.fixture(scope="session")
def stacked_halves(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Halves]:
    """Learner and neighbor, in which rows are stacks of four frames and only the newest frame travels."""
    with Halves(tmp_path_factory.mktemp("stacked"), frames=4, env_ms=LEISURELY_MS) as halves:
        yield halves
